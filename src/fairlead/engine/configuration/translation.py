"""scheduler_config: converts a KubeSchedulerConfiguration to a SchedulerConfig.

Invalid settings are refused in upstream's words, with the path of the field. Settings that do not
affect decisions are accepted and ignored.
upstream: pkg/scheduler/apis/config/{v1/defaults.go,validation/validation.go}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import without_nulls
from fairlead.api.text.field_problem import duplicate, invalid, required
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration
from fairlead.engine.configuration.enabled_plugins import (
    REMOVED,
    WAS_INVALID,
    PluginChoice,
    UsualWeight,
)
from fairlead.engine.configuration.error import ConfigurationError, at
from fairlead.engine.configuration.extender import extenders_of, ignored_resources
from fairlead.engine.configuration.feature_gate import check_required_gates
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.configuration.v1 import (
    ConfigurationForm,
    LeaderElectionForm,
    PluginConfigForm,
    ProfileForm,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.profile import DEFAULT_SCHEDULER, Profile
from fairlead.engine.plugins.registry import IN_TREE, IN_TREE_ARGS, Factory
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.node_sample import ADAPTIVE
from fairlead.engine.scheduling.preemption.args import DefaultPreemptionArgs
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.version import SchedulerVersion

# The argument type of each plugin; Fairlead's other plugins take none.
ARGS: Final[Mapping[str, type[msgspec.Struct]]] = {
    **IN_TREE_ARGS,
    "DefaultPreemption": DefaultPreemptionArgs,
}
FIT: Final = "NodeResourcesFit"
SECONDS_MAX: Final = 10 * 365 * 24 * 3600
_ALL_NODES: Final = 100

Args = Mapping[str, Any]
CheckArgs = Callable[[str, str, Args], None]
# upstream: config/v1alpha1/defaults.go: RecommendedDefaultLeaderElectionConfiguration
_RESOURCE_LOCK: Final = "leases"
_LEASE_DURATION: Final = 15 * NANOSECONDS_PER_SECOND
_RENEW_DEADLINE: Final = 10 * NANOSECONDS_PER_SECOND
_RETRY_PERIOD: Final = 2 * NANOSECONDS_PER_SECOND


class UserPluginSource(Struct, frozen=True):
    """Functions that supply users' plugins and check plugin arguments.

    `usual_weight` returns the default weight of a user's plugin, or None if the name is unknown.
    `factories` returns the factories of users' plugins by name. `check_args(field, plugin, args)`
    refuses invalid arguments of a built-in plugin.
    """

    usual_weight: UsualWeight
    check_args: CheckArgs
    factories: Callable[[], Mapping[str, Factory]]


def scheduler_config(
    form: ConfigurationForm,
    user_plugins: UserPluginSource,
    release: Release = CURRENT,
    *,
    only_profile: bool = False,
) -> SchedulerConfig:
    """Return the SchedulerConfig for `form`. Raises ConfigurationError if `form` is invalid.

    Unset fields have the defaults of `release`. The feature gates of `release` take precedence over
    those in the file. If `only_profile` is set, `form` has only one profile. Errors then name the
    fields of this profile without the prefix `profiles[0]`.
    """
    release = release.with_defaults(form.feature_gates, field="featureGates.")
    check_required_gates(release.version, release.gates, "featureGates")
    if form.parallelism is not None and form.parallelism <= 0:
        problem = invalid(form.parallelism, "should be an integer value greater than zero")
        raise ConfigurationError("parallelism", problem)
    _check_leader_election(form.leader_election, release)
    connection = form.client_connection
    if connection is not None and (connection.burst or 0) < 0:
        problem = invalid(connection.burst, "must be non-negative")
        raise ConfigurationError("clientConnection.burst", problem)
    extenders = extenders_of(form.extenders)
    percentage = _percentage("percentageOfNodesToScore", form.percentage_of_nodes_to_score)
    ignored = ignored_resources(form.extenders)
    profiles = []
    for number, each in enumerate(form.profiles or (ProfileForm(),)):
        where = "" if only_profile else f"profiles[{number}]"
        reader = _ProfileReader(where, each, user_plugins, release.scheduler)
        # Unlike kube-scheduler, Fairlead evaluates all nodes if percentageOfNodesToScore is not
        # set. A 0 outside of the profiles counts as not set, because upstream writes the default as
        # 0.
        profiles.append(reader.profile(percentage or None, ignored))
    named = _named(form.profiles or (ProfileForm(),), profiles)
    return SchedulerConfig(
        named,
        _backoff(form, release.scheduler.backoff),
        out_of_tree=user_plugins.factories(),
        extenders=extenders,
        version=release.scheduler,
        gates=release.gates,
    )


class _ProfileReader(Struct, frozen=True):
    """Reads the profile `form`; error messages name its path in the file, `where`."""

    where: str
    form: ProfileForm
    user_plugins: UserPluginSource
    version: SchedulerVersion

    def profile(self, percentage: int | None, ignored: Sequence[str]) -> Profile:
        field, default = at(self.where, "plugins"), self.version.plugins
        choice = PluginChoice(field, self.user_plugins.usual_weight, default)
        args = {**self.version.args, **self._args()}
        if ignored:
            # Extenders take precedence over the plugin's arguments (scheduler.go: buildExtenders).
            args[FIT] = {**args.get(FIT, {}), "ignoredResources": list(ignored)}
        own = self.form.percentage_of_nodes_to_score
        if own is not None:
            percentage = _percentage(at(self.where, "percentageOfNodesToScore"), own)
        return Profile(
            self.form.scheduler_name or "",
            choice.everywhere(self.form.plugins.multi_point),
            args,
            choice.at_points(self.form.plugins),
            None if percentage == _ALL_NODES else percentage,
        )

    def _args(self) -> dict[str, Args]:
        args: dict[str, Args] = {}
        for place, config in enumerate(self.form.plugin_config):
            field = at(self.where, f"pluginConfig[{place}]")
            if config.name in args:
                raise ConfigurationError(field, duplicate(config.name))
            args[config.name] = self._checked(field, config)
        return args

    def _checked(self, field: str, config: PluginConfigForm) -> Args:
        given = {k: v for k, v in config.args.items() if k not in ("apiVersion", "kind")}
        is_users = self.user_plugins.usual_weight(config.name) is not None
        given = given if is_users else without_nulls(given)
        kind = config.args.get("kind", f"{config.name}Args")
        if not is_users and config.name not in ARGS:
            _refuse_arguments(field, config.name, given)
        elif not is_users and kind != f"{config.name}Args":
            raise ConfigurationError(f"{field}.args.kind", f"must be {config.name}Args")
        elif not is_users:
            self.user_plugins.check_args(f"{field}.args", config.name, given)
        return given


def _refuse_arguments(field: str, plugin: str, args: Args) -> None:
    if plugin in REMOVED:
        raise ConfigurationError(field, invalid(plugin, WAS_INVALID))
    known = ", ".join(ARGS)
    if plugin not in IN_TREE:
        raise ConfigurationError(f"{field}.name", f"no plugin {plugin!r}; with arguments: {known}")
    if args:
        raise ConfigurationError(f"{field}.name", f"{plugin} takes no arguments; {known} do")


def _percentage(field: str, given: int | None) -> int | None:
    if given is not None and not ADAPTIVE <= given <= _ALL_NODES:
        raise ConfigurationError(field, invalid(given, "not in valid range [0-100]"))
    return given


def _named(forms: Sequence[ProfileForm], profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Return `profiles`; a single profile without schedulerName gets the default name.

    Raises ConfigurationError if a name occurs twice, if one of several profiles has no name, or if
    a name is "".
    """
    if len(forms) == 1 and forms[0].scheduler_name is None:
        return (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    names = [profile.scheduler_name for profile in profiles]
    for number, name in enumerate(names):
        field = f"profiles[{number}].schedulerName"
        if not name:
            raise ConfigurationError(field, required())
        if name in names[:number]:
            first = f"profiles[{names.index(name)}].schedulerName"
            raise ConfigurationError(field, duplicate(first))
    return tuple(profiles)


def _backoff(form: ConfigurationForm, default: BackoffConfig) -> BackoffConfig:
    initial_s, maximum_s = form.pod_initial_backoff_seconds, form.pod_max_backoff_seconds
    initial = default.initial if initial_s is None else seconds(_bounded(initial_s))
    maximum = default.maximum if maximum_s is None else seconds(_bounded(maximum_s))
    if initial <= 0:
        problem = invalid(initial_s, "must be greater than 0")
        raise ConfigurationError("podInitialBackoffSeconds", problem)
    if maximum < initial:
        problem = "must be greater than or equal to PodInitialBackoffSeconds"
        shown = maximum // seconds(1)
        raise ConfigurationError("podMaxBackoffSeconds", invalid(shown, problem))
    return replace(default, initial=initial, maximum=maximum)


def _bounded(given_s: int) -> int:
    """Return the smaller of `given_s` and SECONDS_MAX (ten years, in effect no limit)."""
    return min(given_s, SECONDS_MAX)


def _check_leader_election(form: LeaderElectionForm | None, release: Release) -> None:
    """Raise ConfigurationError if a setting in `form` is invalid and leader election is on.

    These settings do not affect decisions, but kube-scheduler does not start if they are invalid.
    """
    # upstream: component-base/config/validation/validation.go: ValidateLeaderElectionConfiguration,
    # pkg/scheduler/apis/config/validation/validation.go: ValidateKubeSchedulerConfiguration
    if form is None or form.leader_elect is False:
        return
    lease = _duration("leaseDuration", form.lease_duration, _LEASE_DURATION)
    renewal = _duration("renewDeadline", form.renew_deadline, _RENEW_DEADLINE)
    _duration("retryPeriod", form.retry_period, _RETRY_PERIOD)
    if lease <= renewal:
        problem = invalid(form.lease_duration or "15s", "must be greater than renewDeadline")
        raise ConfigurationError("leaderElection.leaseDuration", problem)
    # Old releases also know the locks endpoints and configmaps.
    if release.version == CURRENT.version and form.resource_lock not in ("", _RESOURCE_LOCK):
        problem = invalid(form.resource_lock, f'resourceLock value must be "{_RESOURCE_LOCK}"')
        raise ConfigurationError("leaderElection.resourceLock", problem)


def _duration(name: str, text: str | None, default: int) -> int:
    """Return the duration `text` in ns, or `default` if `text` is None or a duration of 0."""
    try:
        found = parse_duration(text) if text is not None else 0
    except ValueError as cause:
        raise ConfigurationError(f"leaderElection.{name}", str(cause)) from None
    if found < 0:
        problem = invalid(text, "must be greater than zero")
        raise ConfigurationError(f"leaderElection.{name}", problem)
    return found or default
