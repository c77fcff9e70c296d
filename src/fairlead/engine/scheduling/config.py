"""SchedulerConfig: a scheduler's configuration, with profiles, extenders and queue settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.scheduling.extender.extender import Extender
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.version import V1_36, SchedulerVersion


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The configuration of a pod scheduler: profiles, extenders and queue settings.

    `profiles` have distinct scheduler names. A pod is ignored if its schedulerName is not one of
    these names. `cycle_time` is the duration of a scheduling cycle in ns. At the end of this time,
    the cycle's decision takes effect and the next cycle starts. Profiles may use `out_of_tree`
    plugins in addition to Fairlead's own plugins, or instead of them. `extenders` apply to all
    profiles. `meter` measures plugin durations and does not affect decisions. `version` holds the
    rules of the Kubernetes version to follow. `gates` are the feature gates that were set
    explicitly, including the gates in the configuration file.
    """

    profiles: tuple[Profile, ...] = (Profile(),)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    cycle_time: DurationNs = 0
    out_of_tree: Mapping[str, Factory] = field(default_factory=dict)
    extenders: tuple[Extender, ...] = ()
    meter: Meter | None = field(default=None, compare=False)
    version: SchedulerVersion = V1_36
    gates: Mapping[str, bool] = field(default_factory=dict)
