"""ScaleDownTimers: the start times of the delays that must pass before a node is removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.engine.core.instant import Instant

LONG_AGO: Final[Instant] = -(1 << 62)


class ScaleDownTimers(Struct, frozen=True):
    """The timers of an autoscaler that was running in the cluster before the simulated run.

    `unneeded_since` maps each unneeded node to the time since which it is unneeded. `scale_ups`
    maps node groups to the time of their last increase.
    """

    unneeded_since: Mapping[str, Instant] = field(default_factory=dict)
    scale_ups: Mapping[str, Instant] = field(default_factory=dict)

    @property
    def last_scale_up(self) -> Instant:
        """The time of the last increase of any group."""
        return max(self.scale_ups.values(), default=LONG_AGO)


NO_TIMERS: Final = ScaleDownTimers()
