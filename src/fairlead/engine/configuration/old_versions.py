"""Versions of KubeSchedulerConfiguration before v1, and their conversion to v1.

Unset fields get the same defaults as in v1, whatever the version of the file. Each version in this
list has the fields of the version in the line above, with these differences:

    v1beta3   has the same fields as v1
    v1beta2   adds healthzBindAddress and metricsBindAddress, which have no effect
    v1beta1   has a separate plugin for each of the three scoring strategies
    v1alpha2  adds disablePreemption and bindTimeoutSeconds
    v1alpha1  adds algorithmSource and hardPodAffinitySymmetricWeight; has the fields of a single
              profile instead of `profiles`; lacks some newer fields, such as `extenders`

upstream: staging/src/k8s.io/kube-scheduler/config/{v1alpha1,v1alpha2,v1beta1,v1beta2,v1beta3}/
types.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.engine.configuration.error import ConfigurationError, at
from fairlead.engine.configuration.v1 import (
    ConfigurationForm,
    PluginConfigForm,
    PluginForm,
    PluginSetForm,
    PluginsForm,
    ProfileForm,
    V1Form,
)
from fairlead.engine.framework.profile import ALL, DEFAULT_SCHEDULER

FIT: Final = "NodeResourcesFit"
LEAST_ALLOCATED: Final = "NodeResourcesLeastAllocated"
# Plugins that became scoring strategies of NodeResourcesFit.
STRATEGIES: Final = {
    LEAST_ALLOCATED: "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
_BY_PLUGINS: Final = ("v1beta1", "v1alpha2")
_PROVIDERS: Final = {
    "DefaultProvider": None,
    "ClusterAutoscalerProvider": {"scoringStrategy": {"type": "MostAllocated"}},
}
_NO_POLICY: Final = "a Policy is not read; name its predicates and priorities as plugins instead"
_NO_UNRESERVE: Final = "is not an extension point any more; Reserve plugins undo what they did"
_replace = msgspec.structs.replace


class OldPluginsForm(PluginsForm, frozen=True, kw_only=True):
    """The plugins of an old profile, with the extension point unreserve (now part of Reserve)."""

    unreserve: PluginSetForm = PluginSetForm()


class OldProfileForm(ProfileForm, frozen=True, kw_only=True):
    """One entry of `profiles` in a version before v1."""

    plugins: OldPluginsForm = OldPluginsForm()


class Beta3Form(ConfigurationForm, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration file in version v1beta3."""

    profiles: tuple[OldProfileForm, ...] = ()


class Beta2Form(Beta3Form, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration file in version v1beta2 or v1beta1."""

    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None


class Alpha2Form(Beta2Form, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration file in version v1alpha2."""

    disable_preemption: bool = False
    bind_timeout_seconds: int | None = None


# The form of each version that has `profiles`.
OLD_FORMS: Final[dict[str, type[Beta3Form]]] = {
    "v1beta3": Beta3Form,
    "v1beta2": Beta2Form,
    "v1beta1": Beta2Form,
    "v1alpha2": Alpha2Form,
}


class AlgorithmSource(V1Form, frozen=True, kw_only=True):
    """The field algorithmSource: a provider by name, or a Policy."""

    provider: str | None = None
    policy: Any = None


class AlphaForm(V1Form, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration file in version v1alpha1."""

    api_version: str = ""
    kind: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    algorithm_source: AlgorithmSource = AlgorithmSource()
    hard_pod_affinity_symmetric_weight: int | None = None
    leader_election: Any = None
    client_connection: Any = None
    healthz_bind_address: Any = None
    metrics_bind_address: Any = None
    enable_profiling: Any = None
    enable_contention_profiling: Any = None
    disable_preemption: bool = False
    percentage_of_nodes_to_score: int | None = None
    bind_timeout_seconds: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    plugins: OldPluginsForm = OldPluginsForm()
    plugin_config: tuple[PluginConfigForm, ...] = ()


class _OldSettings(Struct, frozen=True):
    """The settings that apply to all profiles of a configuration in an old version.

    `by_plugins` tells whether the version has a separate plugin for each scoring strategy.
    """

    no_preemption: bool = False
    bind_timeout_s: int | None = None
    by_plugins: bool = False


def beta_as_v1(form: Beta3Form) -> ConfigurationForm:
    """Return `form` converted to v1; raises ConfigurationError if that is not possible."""
    by_plugins = form.api_version.endswith(_BY_PLUGINS)
    old_settings = _OldSettings(by_plugins=by_plugins)
    if isinstance(form, Alpha2Form):
        old_settings = _OldSettings(form.disable_preemption, form.bind_timeout_seconds, by_plugins)
    profiles = [
        _converted_profile(f"profiles[{number}]", profile, old_settings)
        for number, profile in enumerate(form.profiles or (OldProfileForm(),))
    ]
    own = {name: getattr(form, name) for name in ConfigurationForm.__struct_fields__}
    return ConfigurationForm(**(own | {"profiles": tuple(profiles)}))


def alpha_as_v1(form: AlphaForm) -> ConfigurationForm:
    """Return `form` converted to v1; raises ConfigurationError if that is not possible."""
    args = list(form.plugin_config)
    weight = form.hard_pod_affinity_symmetric_weight
    if weight is not None:
        args.append(
            PluginConfigForm(name="InterPodAffinity", args={"hardPodAffinityWeight": weight})
        )
    scoring = _provider_args(form.algorithm_source)
    if scoring is not None:
        args.append(PluginConfigForm(name=FIT, args=scoring))
    profile = OldProfileForm(
        scheduler_name=form.scheduler_name, plugins=form.plugins, plugin_config=tuple(args)
    )
    old_settings = _OldSettings(form.disable_preemption, form.bind_timeout_seconds, by_plugins=True)
    return ConfigurationForm(
        percentage_of_nodes_to_score=form.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=form.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=form.pod_max_backoff_seconds,
        profiles=(_converted_profile("", profile, old_settings),),
    )


def _provider_args(source: AlgorithmSource) -> dict[str, Any] | None:
    """Return the NodeResourcesFit arguments that the algorithm provider implies.

    Returns None if the provider is DefaultProvider.

    Raises ConfigurationError if the provider is unknown or a Policy is given.
    """
    if source.policy is not None:
        raise ConfigurationError("algorithmSource.policy", _NO_POLICY)
    provider = "DefaultProvider" if source.provider is None else source.provider
    if provider not in _PROVIDERS:
        known = ", ".join(_PROVIDERS)
        raise ConfigurationError(
            "algorithmSource.provider", f"no provider {provider!r}; known: {known}"
        )
    return _PROVIDERS[provider]


def _converted_profile(where: str, form: OldProfileForm, old_settings: _OldSettings) -> ProfileForm:
    if form.plugins.unreserve.enabled:
        raise ConfigurationError(at(where, "plugins.unreserve"), _NO_UNRESERVE)
    points = {name: getattr(form.plugins, name) for name in PluginsForm.__struct_fields__}
    args = list(form.plugin_config)
    if old_settings.by_plugins:
        strategy = _strategy(at(where, "plugins.score"), points["score"])
        points["score"] = _converted_scores(points["score"], strategy)
        args = list(_converted_args(args, strategy))
    if old_settings.no_preemption:
        points["post_filter"] = _without_preemption(points["post_filter"])
    if old_settings.bind_timeout_s is not None and all(one.name != "VolumeBinding" for one in args):
        timeout = {"bindTimeoutSeconds": old_settings.bind_timeout_s}
        args.append(PluginConfigForm(name="VolumeBinding", args=timeout))
    return ProfileForm(
        scheduler_name=form.scheduler_name,
        percentage_of_nodes_to_score=form.percentage_of_nodes_to_score,
        plugins=PluginsForm(**points),
        plugin_config=tuple(args),
    )


def _without_preemption(form: PluginSetForm) -> PluginSetForm:
    plugin = PluginForm(name="DefaultPreemption")
    enabled = tuple(one for one in form.enabled if one.name != plugin.name)
    return PluginSetForm(enabled=enabled, disabled=(*form.disabled, plugin))


def _strategy(field: str, form: PluginSetForm) -> str:
    """Return the name of the enabled strategy plugin; "" if all are disabled.

    LEAST_ALLOCATED is enabled by default. Raises ConfigurationError if several are enabled.
    """
    disabled = {one.name for one in form.disabled}
    chosen = [one.name for one in form.enabled if one.name in STRATEGIES]
    if not {LEAST_ALLOCATED, ALL} & disabled and LEAST_ALLOCATED not in chosen:
        chosen.append(LEAST_ALLOCATED)
    if len(chosen) > 1:
        raise ConfigurationError(
            field, f"{' and '.join(chosen)} are strategies of NodeResourcesFit now; enable only one"
        )
    return chosen[0] if chosen else ""


def _converted_scores(form: PluginSetForm, strategy: str) -> PluginSetForm:
    """Return `form` with NodeResourcesFit in place of the strategy plugins.

    Returns `form` itself if it contains no strategy plugin.
    """
    named = {one.name for one in (*form.enabled, *form.disabled)}
    if not named & STRATEGIES.keys():
        return form
    enabled = tuple(
        _replace(one, name=FIT) if one.name == strategy else one for one in form.enabled
    )
    disabled = tuple(one for one in form.disabled if one.name not in STRATEGIES)
    if not strategy:
        disabled = (*disabled, PluginForm(name=FIT))
    return PluginSetForm(enabled=enabled, disabled=disabled)


def _converted_args(
    configs: Sequence[PluginConfigForm], strategy: str
) -> Iterator[PluginConfigForm]:
    """Yield the plugin arguments, with those of `strategy` merged into those of NodeResourcesFit.

    `strategy` is the name of a plugin in `STRATEGIES`, or "". The arguments of all other plugins in
    `STRATEGIES` are dropped.
    """
    fit: dict[str, Any] = {}
    is_given = False
    for config in configs:
        if config.name == FIT:
            fit, is_given = {**config.args, **fit}, True
        elif config.name == strategy:
            fit["scoringStrategy"] = _strategy_args(strategy, config.args)
        elif config.name not in STRATEGIES:
            yield config
    if strategy not in ("", LEAST_ALLOCATED):
        fit.setdefault("scoringStrategy", _strategy_args(strategy, {}))
    if fit or is_given:
        yield PluginConfigForm(name=FIT, args=fit)


def _strategy_args(strategy: str, args: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
    shape = given.pop("shape", None)
    ratio = {} if shape is None else {"requestedToCapacityRatio": {"shape": shape}}
    return {"type": STRATEGIES[strategy], **given, **ratio}
