"""Period: the times of a periodic task, computed without running the task.

With these times, a controller can skip the runs that would change nothing.
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, Instant


class Period(Struct, frozen=True):
    """The times `first`, `first + period`, `first + 2 * period`, and so on."""

    first: Instant
    period: DurationNs

    def at_or_after(self, instant: Instant) -> Instant:
        """Return the time of the periodic task's first run at or after `instant`."""
        missing = max(0, instant - self.first)
        return self.first + -(-missing // self.period) * self.period

    def after(self, instant: Instant) -> Instant:
        """Return the time of the periodic task's first run after `instant`."""
        return self.at_or_after(instant + 1)

    def before(self, instant: Instant) -> Instant:
        """Return the time of the periodic task's last run before `instant`.

        Returns `first - period` if `instant` is not later than `first`.
        """
        return self.at_or_after(instant) - self.period
