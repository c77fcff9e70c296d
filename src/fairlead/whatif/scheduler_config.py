"""KubeSchedulerConfiguration, accepted as far as the engine does what it says.

What changes no decision (clients, metrics, leader election) is read and left alone. What would
change decisions in a way that the engine does not offer yet is refused by name, never ignored:
a what-if under another scheduler than the user's would be worse than none.

    profiles[].plugins.multiPoint           enable (with weight) and disable
    profiles[].plugins.score                weights; disabling means weight 0
    profiles[].plugins.postFilter           disabling DefaultPreemption: no preemption
    profiles[].pluginConfig                 NodeResourcesFit; others only with default arguments;
                                            users' plugins with whatever they take

upstream: pkg/scheduler/apis/config/v1/default_plugins.go:mergePlugins
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.core.instant import seconds
from fairlead.core.tie_break import TieBreak
from fairlead.framework.nominator import Nominator
from fairlead.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.plugins.registry import Factory
from fairlead.scheduling.backoff import BackoffConfig
from fairlead.scheduling.compose import Beliefs, ProfileError, serve
from fairlead.scheduling.config import SchedulerConfig
from fairlead.state.cluster import Cluster
from fairlead.whatif.documents import Document, read_one
from fairlead.whatif.duration import LONGEST_NS
from fairlead.whatif.input_error import InputError, known_names
from fairlead.whatif.scheduler_config_form import (
    ConfigurationForm,
    PluginForm,
    PluginSetForm,
    PluginsForm,
    ProfileForm,
)
from fairlead.whatif.strict import decode_strictly
from fairlead.whatif.user_plugin import OPTION, UserPlugins

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
ALL: Final = "*"
WEIGHT_MAX: Final = 100_000

_INDISPENSABLE: Final = ("PrioritySort", "DefaultBinder")
# Arguments that mean what the engine does anyway (apis/config/v1/defaults.go). The engine tries
# every candidate node, which is what any sampling approximates.
_DEFAULT_ARGS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "DefaultPreemption": {
        "minCandidateNodesPercentage": (10, 100),
        "minCandidateNodesAbsolute": (100, 1_000_000),
    },
    "InterPodAffinity": {
        "hardPodAffinityWeight": (1,),
        "ignorePreferredTermsOfExistingPods": (False,),
    },
    "NodeAffinity": {},
    "NodeResourcesBalancedAllocation": {
        "resources": ([{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],),
    },
    "PodTopologySpread": {"defaultingType": ("System",)},
    "VolumeBinding": {"bindTimeoutSeconds": (600,)},
    "DynamicResources": {},
}
_WITH_ARGS: Final = ("NodeResourcesFit",)


def read_scheduler_config(path: str | None, plugins: UserPlugins | None = None) -> SchedulerConfig:
    """The configuration in the file `path`, the default one for None, with users' `plugins`.

    Raises InputError.
    """
    plugins = plugins or UserPlugins()
    if path is None:
        config = SchedulerConfig((plugins.placed(Profile()),), out_of_tree=plugins.factories())
    else:
        config = _read(path, plugins)
    for number, profile in enumerate(config.profiles):
        source, field = (path, f"profiles[{number}]") if path else (OPTION, "")
        _refuse_unserved(source, field, profile, config.out_of_tree)
    return config


def _refuse_unserved(
    source: str, field: str, profile: Profile, out_of_tree: Mapping[str, Factory]
) -> None:
    try:
        serve(profile, Beliefs(Cluster(), Nominator()), TieBreak(0), out_of_tree)
    except ProfileError as cause:
        raise InputError(source, str(cause), field=field) from None


def _read(path: str, plugins: UserPlugins) -> SchedulerConfig:
    document = read_one(path)
    _refuse_other_kinds(document)
    form = decode_strictly(document, ConfigurationForm)
    refusal = next(_unsupported(form), None)
    if refusal is not None:
        field, problem = refusal
        raise InputError(path, problem, field=field)
    forms = form.profiles or (ProfileForm(),)
    read = [_profile(path, number, each, plugins) for number, each in enumerate(forms)]
    mentioned = {name for each in forms for name in _mentioned(each.plugins)}
    profiles = tuple(plugins.placed(profile, mentioned) for profile in read)
    _refuse_repeated_names(path, profiles)
    return SchedulerConfig(profiles, _backoff(path, form), out_of_tree=plugins.factories())


def _mentioned(form: PluginsForm) -> Iterator[str]:
    """Every plugin that is switched on or off somewhere."""
    for point in PluginsForm.__struct_fields__:
        one: PluginSetForm = getattr(form, point)
        yield from (entry.name for entry in (*one.enabled, *one.disabled))


def _backoff(path: str, form: ConfigurationForm) -> BackoffConfig:
    """Raises InputError as upstream's validation refuses (apis/config/validation/validation.go)."""
    default = BackoffConfig()
    initial_s, maximum_s = form.pod_initial_backoff_seconds, form.pod_max_backoff_seconds
    initial = default.initial if initial_s is None else seconds(initial_s)
    maximum = default.maximum if maximum_s is None else seconds(maximum_s)
    if not 0 < initial <= LONGEST_NS:
        raise InputError(path, "must be greater than 0", field="podInitialBackoffSeconds")
    if not initial <= maximum <= LONGEST_NS:
        problem = "must not be less than podInitialBackoffSeconds"
        raise InputError(path, problem, field="podMaxBackoffSeconds")
    return BackoffConfig(initial, maximum)


def _refuse_other_kinds(document: Document) -> None:
    value = document.value if isinstance(document.value, dict) else {}
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(field) != expected:
            raise InputError(document.source, f"must be {expected}", field=field)


def _unsupported(form: ConfigurationForm) -> Iterator[tuple[str, str]]:
    """Field and problem of each thing that the engine does not offer."""
    if form.extenders:
        yield "extenders", "are not called yet"
    sampled = {"percentageOfNodesToScore": form.percentage_of_nodes_to_score}
    for number, profile in enumerate(form.profiles):
        field = f"profiles[{number}].percentageOfNodesToScore"
        sampled[field] = profile.percentage_of_nodes_to_score
    for field, percentage in sampled.items():
        if percentage not in (None, 0, 100):
            yield field, "every node is scored: only 100 (or 0, to leave it open) is supported yet"


def _refuse_repeated_names(path: str, profiles: tuple[Profile, ...]) -> None:
    names = [profile.scheduler_name for profile in profiles]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError(
                path, f"{name!r} has a profile already", field=f"profiles[{number}].schedulerName"
            )


def _profile(path: str, number: int, form: ProfileForm, users: UserPlugins) -> Profile:
    where = f"profiles[{number}]"
    plugins = _enabled(path, f"{where}.plugins", form.plugins, users)
    args: dict[str, Mapping[str, Any]] = {}
    for place, config in enumerate(form.plugin_config):
        field = f"{where}.pluginConfig[{place}]"
        given = {k: v for k, v in config.args.items() if k not in ("apiVersion", "kind")}
        if config.name in args:
            raise InputError(path, f"{config.name} is configured twice", field=field)
        is_users = users.find(config.name) is not None
        if not is_users:
            _refuse_args(path, field, config.name, given)
        args[config.name] = given if is_users or config.name in _WITH_ARGS else {}
    return Profile(form.scheduler_name, tuple(plugins.items()), args)


def _refuse_args(path: str, field: str, plugin: str, args: Mapping[str, Any]) -> None:
    if plugin in _WITH_ARGS:
        return
    known = _DEFAULT_ARGS.get(plugin)
    if known is None:
        known_plugins = known_names(plugin, (*_WITH_ARGS, *_DEFAULT_ARGS))
        raise InputError(
            path, f"{plugin} takes no arguments; {known_plugins}", field=f"{field}.name"
        )
    for name, value in args.items():
        if value not in known.get(name, ()):
            raise InputError(
                path,
                f"{plugin} is supported with default arguments only yet",
                field=f"{field}.args.{name}",
            )


def _enabled(path: str, where: str, form: PluginsForm, users: UserPlugins) -> dict[str, int]:
    """The plugins in order with their score weights."""
    weights = dict(DEFAULT_PLUGINS)
    _apply_multi_point(path, f"{where}.multiPoint", form.multi_point, weights, users)
    _apply_score(path, f"{where}.score", form.score, weights)
    for entry in form.post_filter.disabled:
        if entry.name in ("DefaultPreemption", ALL):
            weights.pop("DefaultPreemption", None)
    for name in PluginsForm.__struct_fields__:
        _refuse_rest(path, where, name, getattr(form, name))
    for name in _INDISPENSABLE:
        if name not in weights:
            raise InputError(path, f"{name} cannot be done without", field=f"{where}.multiPoint")
    return weights


def _apply_multi_point(
    path: str, where: str, form: PluginSetForm, weights: dict[str, int], users: UserPlugins
) -> None:
    for number, entry in enumerate(form.disabled):
        if entry.name == ALL:
            weights.clear()
        elif weights.pop(entry.name, None) is None and users.find(entry.name) is None:
            raise _unknown_plugin(path, f"{where}.disabled[{number}].name", entry.name)
    defaults = dict(DEFAULT_PLUGINS)
    for number, entry in enumerate(form.enabled):
        own = users.find(entry.name)
        if entry.name not in defaults and own is None:
            raise _unknown_plugin(path, f"{where}.enabled[{number}].name", entry.name)
        usual = defaults[entry.name] if own is None else own.weight
        weights[entry.name] = _weight(path, f"{where}.enabled[{number}]", entry) or usual


def _apply_score(path: str, where: str, form: PluginSetForm, weights: dict[str, int]) -> None:
    for number, entry in enumerate(form.disabled):
        if entry.name == ALL:
            weights.update(dict.fromkeys(weights, 0))
        elif not weights.get(entry.name):
            raise _unknown_plugin(path, f"{where}.disabled[{number}].name", entry.name)
        else:
            weights[entry.name] = 0
    for number, entry in enumerate(form.enabled):
        field = f"{where}.enabled[{number}]"
        if not dict(DEFAULT_PLUGINS).get(entry.name):
            raise _unknown_plugin(path, f"{field}.name", entry.name)
        if entry.name not in weights:
            raise InputError(
                path, "enabling a plugin for scores alone is not supported yet", field=field
            )
        weights[entry.name] = _weight(path, field, entry) or 1


def _refuse_rest(path: str, where: str, name: str, form: PluginSetForm) -> None:
    """Extension points at which nothing can be chosen yet."""
    field = f"{where}.{_camel(name)}"
    if name in ("multi_point", "score"):
        return
    if name == "post_filter" and not form.enabled:
        for entry in form.disabled:
            if entry.name not in ("DefaultPreemption", ALL):
                raise _unknown_plugin(path, field, entry.name)
        return
    if form.enabled or form.disabled:
        raise InputError(path, "is not supported yet; use multiPoint", field=field)


def _weight(path: str, field: str, entry: PluginForm) -> int:
    if not 0 <= entry.weight <= WEIGHT_MAX:
        raise InputError(
            path, f"{entry.weight} is not from 0 to {WEIGHT_MAX}", field=f"{field}.weight"
        )
    return entry.weight


def _unknown_plugin(path: str, field: str, name: str) -> InputError:
    known = known_names(name, dict(DEFAULT_PLUGINS))
    return InputError(path, f"no plugin {name!r} to be found here; {known}", field=field)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
