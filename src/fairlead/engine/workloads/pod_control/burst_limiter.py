"""BurstLimiter: a maximum number of writes at one instant.

When another component reverts a write at once, for example an admission policy that changes
objects, controller and policy would alternate forever while the simulated time stands still.
Upstream's controllers are limited by their client's requests per second instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.instant import DurationNs, Instant, seconds

BURST_MAX: Final = 200
REST: Final[DurationNs] = seconds(1)


@dataclass(slots=True)
class BurstLimiter:
    """Counts writes by key, only at the newest instant."""

    _now: Instant = 0
    _times: dict[object, int] = field(default_factory=dict)

    def record(self, key: object, now: Instant, times: int = 1) -> None:
        """Counts `times` writes for `key`."""
        if now != self._now:
            self._now, self._times = now, {}
        self._times[key] = self._times.get(key, 0) + times

    def is_exceeded(self, key: object, now: Instant, maximum: int = BURST_MAX) -> bool:
        """Whether `key` has reached `maximum` writes at this instant and must pause."""
        return now == self._now and self._times.get(key, 0) >= maximum
