"""Beat: the instants at which something periodic happens, without doing it every time.

Between two beats at which something can change, the others need not be gone through; arithmetic
says which one comes next.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.core.instant import DurationNs, Instant


@dataclass(frozen=True, slots=True)
class Beat:
    """`first`, `first + period`, ... for ever."""

    first: Instant
    period: DurationNs

    def at_or_after(self, instant: Instant) -> Instant:
        """The first beat that is not before `instant`."""
        missing = max(0, instant - self.first)
        return self.first + -(-missing // self.period) * self.period

    def after(self, instant: Instant) -> Instant:
        """The first beat later than `instant`."""
        return self.at_or_after(instant + 1)

    def before(self, instant: Instant) -> Instant:
        """The last beat earlier than `instant`; `first - period` when there is none."""
        return self.at_or_after(instant) - self.period
