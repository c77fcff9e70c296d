"""Restraint: how often something may be done at one instant.

What somebody else undoes at once, as an admission policy that changes what controllers write, would
be done again for ever while no time passes. Upstream's controllers are held back by how many
requests a second they may send.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.instant import DurationNs, Instant, seconds

TIMES_MAX: Final = 200
REST: Final[DurationNs] = seconds(1)


@dataclass(slots=True)
class Restraint:
    """Counts by key, and only what is done at the newest instant."""

    _now: Instant = 0
    _times: dict[object, int] = field(default_factory=dict)

    def note(self, key: object, now: Instant, times: int = 1) -> None:
        """It was done so often more."""
        if now != self._now:
            self._now, self._times = now, {}
        self._times[key] = self._times.get(key, 0) + times

    def holds(self, key: object, now: Instant, most: int = TIMES_MAX) -> bool:
        """Whether it was done as often as it may be, and has to rest."""
        return now == self._now and self._times.get(key, 0) >= most
