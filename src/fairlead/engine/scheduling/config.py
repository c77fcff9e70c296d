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
    """The configuration of a pod scheduler: profiles, extenders and queue settings."""

    # These have distinct scheduler names. A pod is ignored if its schedulerName is not one of these
    # names.
    profiles: tuple[Profile, ...] = (Profile(),)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    # The duration of a scheduling cycle in ns. At the end of this time, the cycle's decision takes
    # effect and the next cycle starts.
    cycle_time: DurationNs = 0
    # Plugins that profiles may use in addition to Fairlead's own plugins, or instead of them.
    out_of_tree: Mapping[str, Factory] = field(default_factory=dict)
    extenders: tuple[Extender, ...] = ()  # for all profiles
    # Measures plugin durations and does not affect decisions.
    meter: Meter | None = field(default=None, compare=False)
    version: SchedulerVersion = V1_36  # the rules of the Kubernetes version to follow
    # The feature gates that were set explicitly, including the gates in the configuration file.
    gates: Mapping[str, bool] = field(default_factory=dict)
