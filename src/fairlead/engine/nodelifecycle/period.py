"""Period: the instants of a periodic task, computed without running it.

Most runs of a periodic task change nothing and are skipped; the next instant that matters is
computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.core.instant import DurationNs, Instant


@dataclass(frozen=True, slots=True)
class Period:
    """The instants `first`, `first + period`, `first + 2 * period`, ..."""

    first: Instant
    period: DurationNs

    def at_or_after(self, instant: Instant) -> Instant:
        """Return the first instant of the series at or after `instant`."""
        missing = max(0, instant - self.first)
        return self.first + -(-missing // self.period) * self.period

    def after(self, instant: Instant) -> Instant:
        """Return the first instant of the series after `instant`."""
        return self.at_or_after(instant + 1)

    def before(self, instant: Instant) -> Instant:
        """Return the last instant of the series before `instant`.

        `first - period` if there is none.
        """
        return self.at_or_after(instant) - self.period
