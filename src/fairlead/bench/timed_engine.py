"""TimedEngine: measures the CPU time of each unit of work of an engine.

A unit of work is a scheduling cycle, or a session of the batch scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from fairlead.engine.core.command import Issued
from fairlead.engine.core.instant import Instant
from fairlead.worlds.driver import CommandSource

_NS_PER_MS: Final = 1_000_000


class TimedEngine:
    """Passes all calls to `engine`; `cycles_ns` are the CPU times of its cycles, in order."""

    def __init__(self, engine: CommandSource) -> None:
        """Start without cycles."""
        self._engine = engine
        self.handle = engine.handle  # not measured, and frequent
        self.next_deadline = engine.next_deadline
        self.cycles_ns: list[int] = []

    def handle_deadline(self, now: Instant) -> Sequence[Issued]:
        """Do one unit of work that is due at `now`, and measure it."""
        started = time.process_time_ns()
        issued = self._engine.handle_deadline(now)
        self.cycles_ns.append(time.process_time_ns() - started)
        return issued


def first_ms(cycles_ns: Sequence[int]) -> float | None:
    """Return the time of the first cycle, None without cycles."""
    return cycles_ns[0] / _NS_PER_MS if cycles_ns else None


def p99_of_later_ms(cycles_ns: Sequence[int]) -> float | None:
    """Return the 99th percentile of all cycles but the first, None without such cycles.

    With fewer than a hundred later cycles, this is the longest of them.
    """
    later = sorted(cycles_ns[1:])
    return later[-(len(later) // 100) - 1] / _NS_PER_MS if later else None
