"""The field `settings` of a scenario: kubelets, scheduler, batch scheduler and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter, StopAfterShare
from fairlead.engine.kubelet.eviction_config import (
    EvictionConfig,
    EvictionFlagError,
    eviction_of_flags,
)
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FEATURE_GATES
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    AUTO,
    CLUSTER_AUTOSCALER,
    KARPENTER,
    OFF,
    OPTION,
    AutoscaleOptions,
    Autoscaling,
    read_autoscalers,
    unsimulated_in_scenario,
)
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    DEFAULT_PROVIDER,
    ProviderSettings,
    StatedOutage,
)
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.configuration.release import NO_CHOICE, ReleaseChoice, Releases, read_releases
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.strict_form import FileName, StrictForm, field_duration
from fairlead.whatif.snapshot.manifest import Manifest

Duration = str | int | float

_KUBELET = "settings.kubelet"
_CONTROLLER_MANAGER = "settings.controller-manager"
_AUTOSCALERS: Final = (OFF, AUTO, CLUSTER_AUTOSCALER, KARPENTER)


class KubeletSettings(StrictForm, frozen=True, kw_only=True):
    """Delays and flags of the simulated kubelets.

    `stop_after` is the time that a pod takes to stop. `stop_share` states this time as a fraction
    of the pod's grace period. At most one of `stop_after` and `stop_share` is given. If neither is
    given, a pod takes its whole grace period. `flags` are the kubelet's eviction flags.
    """

    start_delay: Duration | None = None
    ready_delay: Duration | None = None
    stop_after: Duration | None = None
    stop_share: float | None = None
    removal_delay: Duration | None = None
    flags: dict[str, str | int] = {}


class ControllerManagerSettings(StrictForm, frozen=True, kw_only=True):
    """The `flags` of kube-controller-manager; `version` applies only to the node controllers."""

    version: str | float = ""
    flags: dict[str, str | int | float | bool] = {}

    @property
    def as_flags(self) -> dict[str, str]:
        """The flags as texts, keyed by name without leading dashes."""
        return {name.removeprefix("--"): _flag(value) for name, value in self.flags.items()}


class Settings(StrictForm, frozen=True, kw_only=True):
    """The field `settings` of a scenario; `scheduler` is a KubeSchedulerConfiguration.

    The fields `scheduler` and `batch` are each the name of a file, or `configmap/NAMESPACE/NAME`
    for a ConfigMap of the cluster.
    """

    kubelet: KubeletSettings = KubeletSettings()
    scheduler: FileName | None = None
    batch: FileName | None = None  # may also be the name of a shipped configuration
    controller_manager: ControllerManagerSettings = ControllerManagerSettings()
    # Whether CronJobs create Jobs, whose pods run for the time in the annotation
    # `fairlead.dev/run-duration`.
    cron_jobs: bool = False
    behave_like: str | float = ""  # the Kubernetes version to follow
    # Replaces the defaults of the feature gates of `behave_like`.
    feature_gates: dict[str, bool] = {}
    # The autoscaler: `off`, `auto`, `cluster-autoscaler` or `karpenter`. If it is `off`, settings
    # of an autoscaler are ignored. If it is None, no autoscaler acts, and settings of an autoscaler
    # are refused.
    autoscale: str | bool | None = None  # YAML reads an unquoted `off` as false
    node_groups: FileName | None = None
    instance_types: FileName | None = None
    node_pools: FileName | None = None
    # One duration for all machines, or a duration for each node group or NodePool.
    provision_time: Duration | dict[str, Duration] | None = None

    @property
    def is_autoscaler_off(self) -> bool:
        """Whether `autoscale` says that no autoscaler runs; False if it is None."""
        return self.autoscale in {OFF, False}


def autoscaling_of(
    source: str, folder: Path, settings: Settings, initial: Sequence[Manifest]
) -> Autoscaling:
    """Return the autoscaler that `settings` choose for the cluster `initial`.

    File names are relative to `folder`. If `autoscale` is set, settings that this autoscaler does
    not read have no effect, and a note names them. Such settings are not refused, because a sweep
    can vary the autoscaler. If `autoscale` is not set, all settings of autoscalers are refused.
    Raises InputError, which names the scenario `source`.
    """
    choice = str(settings.autoscale or OFF)
    if choice not in _AUTOSCALERS:
        hint = known_names(choice, _AUTOSCALERS)
        problem = f"no autoscaler {choice!r}; {hint}"
        raise InputError(source, problem, field="settings.autoscale")
    unused = _unused_settings(source, settings, choice)
    verb = "has" if len(unused) == 1 else "have"
    names = ", ".join(unused)
    notes = (f"{names} {verb} no effect with autoscale: {choice}.",) if unused else ()
    if choice == OFF:  # the author of a scenario chooses its controllers; all others are off
        idle = unsimulated_in_scenario(initial) if settings.autoscale is None else ()
        return Autoscaling(notes=(*notes, *idle))
    options = AutoscaleOptions(
        choice,
        "" if choice == KARPENTER else _path(folder, settings.node_groups) or "",
        _path(folder, settings.instance_types),
        None if choice == CLUSTER_AUTOSCALER else _path(folder, settings.node_pools),
    )
    with _named_settings(source, folder, settings):
        found = read_autoscalers(source, initial, options)
    return replace(found, notes=(*notes, *found.notes))


def _unused_settings(source: str, settings: Settings, choice: str) -> list[str]:
    """Return the names of the stated settings that the autoscaler `choice` does not read.

    If `settings.autoscale` is not set, raises InputError for the first of these settings. The error
    names the scenario `source`.
    """
    unused = []
    for name, stated, readers in (
        ("node-groups", settings.node_groups, (AUTO, CLUSTER_AUTOSCALER)),
        ("instance-types", settings.instance_types, (CLUSTER_AUTOSCALER, AUTO, KARPENTER)),
        ("node-pools", settings.node_pools, (AUTO, KARPENTER)),
        ("provision-time", settings.provision_time, (CLUSTER_AUTOSCALER, AUTO, KARPENTER)),
    ):
        if stated is None or choice in readers:
            continue
        unused.append(f"settings.{name}")
        if settings.autoscale is None:
            known = " or ".join(one for one in readers if one != AUTO)
            raise InputError(source, f"needs autoscale: {known}", field=unused[0])
    return unused


@contextmanager
def _named_settings(source: str, folder: Path, settings: Settings) -> Iterator[None]:
    """Add the name of the autoscaler setting to an InputError that the `with` block raises.

    An error about a file gets the name of the setting that names the file. Errors that are not
    about an autoscaler setting are unchanged.
    """
    files = {
        "node-groups": settings.node_groups,
        "instance-types": settings.instance_types,
        "node-pools": settings.node_pools,
    }
    try:
        yield
    except InputError as cause:
        for name, file in files.items():
            if cause.source == f"--{name}":
                raise InputError(source, cause.problem, field=f"settings.{name}") from None
            if file is not None and cause.source.startswith(str(folder / file)):
                raise InputError(source, str(cause), field=f"settings.{name}") from None
        if cause.source == OPTION:
            raise InputError(source, cause.problem, field="settings.autoscale") from None
        raise


def provider_of(
    source: str, settings: Settings, outages: Iterable[StatedOutage]
) -> ProviderSettings:
    """Return the settings of the simulated provider, with its `outages`.

    If `settings` say that no autoscaler runs, return DEFAULT_PROVIDER. Raises InputError, which
    names the scenario `source`.
    """
    if settings.is_autoscaler_off:
        return DEFAULT_PROVIDER
    name, stated = "settings.provision-time", settings.provision_time
    found = ProviderSettings(source=source, path=name, outages=tuple(outages))
    if not isinstance(stated, dict):
        return replace(found, provision_time=field_duration(source, name, stated))
    times = {
        group: field_duration(source, f"{name}.{group}", value) or 0
        for group, value in stated.items()
    }
    return replace(found, provision_times=times)


def _path(folder: Path, name: str | None) -> str | None:
    return None if name is None else str(folder / name)


def releases_of(source: str, settings: Settings, option: ReleaseChoice = NO_CHOICE) -> Releases:
    """Return the releases that `settings` choose, overridden by `option`. Raises InputError."""
    manager = settings.controller_manager
    return read_releases(
        ReleaseChoice(
            str(settings.behave_like),
            settings.feature_gates,
            source,
            "settings.behave-like",
            "settings.feature-gates",
        ),
        ReleaseChoice(
            str(manager.version),
            manager.as_flags.get(FEATURE_GATES, ""),
            source,
            f"{_CONTROLLER_MANAGER}.version",
            f"{_CONTROLLER_MANAGER}.flags.{FEATURE_GATES}",
        ),
        option,
    )


def node_lifecycle_config(
    source: str, settings: ControllerManagerSettings, release: Release
) -> NodeLifecycleConfig:
    """Return the node controllers' configuration in `release`.

    Raises InputError, which names the scenario `source`.
    """
    prefix = f"{_CONTROLLER_MANAGER}.flags."
    return controller_manager(release, settings.as_flags, source=source, prefix=prefix)


def _flag(value: str | float) -> str:
    """Return `value` as the text of a flag; YAML may have parsed it as a number or boolean."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def kubelet_config(
    source: str, settings: KubeletSettings, release: Release = CURRENT
) -> KubeletConfig:
    """Return the kubelets' configuration in `release`.

    Raises InputError, which names the scenario `source`.
    """
    default = KubeletConfig()
    start = field_duration(source, f"{_KUBELET}.start-delay", settings.start_delay)
    ready = field_duration(source, f"{_KUBELET}.ready-delay", settings.ready_delay)
    removal = field_duration(source, f"{_KUBELET}.removal-delay", settings.removal_delay)
    return KubeletConfig(
        start_delay=default.start_delay if start is None else start,
        ready_delay=default.ready_delay if ready is None else ready,
        stop=_stop(source, settings) or default.stop,
        removal_delay=default.removal_delay if removal is None else removal,
        eviction=_eviction(source, settings),
        renews_leases=release.node_leases,
    )


def _eviction(source: str, settings: KubeletSettings) -> EvictionConfig:
    flags = {name.removeprefix("--"): str(value) for name, value in settings.flags.items()}
    try:
        return eviction_of_flags(flags)
    except EvictionFlagError as refused:
        field = f"{_KUBELET}.flags.{refused.flag}"
        raise InputError(source, refused.problem, field=field) from None


def _stop(source: str, settings: KubeletSettings) -> StopAfter | StopAfterShare | None:
    after = field_duration(source, f"{_KUBELET}.stop-after", settings.stop_after)
    ratio = settings.stop_share
    if ratio is None:
        return None if after is None else StopAfter(after)
    if after is not None:
        raise InputError(
            source, "cannot be combined with stop-after", field=f"{_KUBELET}.stop-share"
        )
    if not 0 <= ratio <= 1:
        raise InputError(source, f"{ratio} is not from 0 to 1", field=f"{_KUBELET}.stop-share")
    return StopAfterShare(ratio)
