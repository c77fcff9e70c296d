"""SchedulerConfig: what a scheduler is configured with, beside its plugins' arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.plugins.registry import Factory
from fairlead.engine.scheduling.extender.extender import Extender
from fairlead.engine.scheduling.queue.backoff import BackoffConfig


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """`profiles` have distinct scheduler names; pods that name another one are not ours.

    `cycle_time` is how long a scheduling cycle takes (ns): its decision is acted on that much later
    than it is taken, and the next pod's turn comes no sooner. `out_of_tree` are plugins that
    profiles may name beside Fairlead's own, or in place of them. `extenders` serve all profiles, in
    the order in which they are asked. `meter` counts how long plugins take; it changes no decision.
    """

    profiles: tuple[Profile, ...] = (Profile(),)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    cycle_time: DurationNs = 0
    out_of_tree: Mapping[str, Factory] = field(default_factory=dict)
    extenders: tuple[Extender, ...] = ()
    meter: Meter | None = field(default=None, compare=False)
