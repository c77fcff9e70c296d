"""Settings of a run: how simulated kubelets behave, what configures scheduler and controllers."""

from __future__ import annotations

from fairlead.engine.kubelet.config import KubeletConfig, StopAfter, StopAfterShare
from fairlead.engine.kubelet.eviction_config import (
    EvictionConfig,
    EvictionFlagError,
    eviction_of_flags,
)
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.controller_manager import controller_manager
from fairlead.whatif.input_error import InputError
from fairlead.whatif.strict import StrictForm, field_duration

Duration = str | int | float

_KUBELET = "settings.kubelet"
_CONTROLLER_MANAGER = "settings.controller-manager"


class KubeletSettings(StrictForm, frozen=True, kw_only=True):
    """Delays of the simulated kubelets, and their flags; what is left out keeps its default.

    `stop-after` is how long a pod takes to stop when asked, `stop-share` the share of its grace
    period (1 by default); one of the two at most. `flags` are those of eviction, named as on a
    kubelet's command line.
    """

    start_delay: Duration | None = None
    ready_delay: Duration | None = None
    stop_after: Duration | None = None
    stop_share: float | None = None
    removal_delay: Duration | None = None
    flags: dict[str, str | int] = {}


class ControllerManagerSettings(StrictForm, frozen=True, kw_only=True):
    """`version` is Kubernetes', such as "1.36"; `flags` are named as on its command line."""

    version: str | float = ""
    flags: dict[str, str | int | float | bool] = {}

    @property
    def as_flags(self) -> dict[str, str]:
        """The flags as on a command line, by name without dashes."""
        return {name.removeprefix("--"): _flag(value) for name, value in self.flags.items()}


class Settings(StrictForm, frozen=True, kw_only=True):
    """`settings:` of a scenario; `scheduler` is a KubeSchedulerConfiguration file.

    `batch` is how whole jobs are scheduled: a file, or the name of a shipped configuration.
    `cron_jobs`: CronJobs make their Jobs, which end as annotations say, or never.
    """

    kubelet: KubeletSettings = KubeletSettings()
    scheduler: str | None = None
    batch: str | None = None
    controller_manager: ControllerManagerSettings = ControllerManagerSettings()
    cron_jobs: bool = False


def node_lifecycle_config(source: str, settings: ControllerManagerSettings) -> NodeLifecycleConfig:
    """The node controllers' configuration. Raises InputError in the name of `source`."""
    return controller_manager(
        str(settings.version),
        settings.as_flags,
        source=source,
        of_version=f"{_CONTROLLER_MANAGER}.version",
        prefix=f"{_CONTROLLER_MANAGER}.flags.",
    )


def _flag(value: str | float) -> str:
    """`value` as on a command line; YAML has numbers and truth values of its own."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def kubelet_config(source: str, settings: KubeletSettings) -> KubeletConfig:
    """The kubelets' configuration. Raises InputError in the name of `source`."""
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
    share = settings.stop_share
    if share is None:
        return None if after is None else StopAfter(after)
    if after is not None:
        raise InputError(source, "cannot stand beside stop-after", field=f"{_KUBELET}.stop-share")
    if not 0 <= share <= 1:
        raise InputError(source, f"{share} is not from 0 to 1", field=f"{_KUBELET}.stop-share")
    return StopAfterShare(share)
