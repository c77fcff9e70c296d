"""Agenda: which nodes the coming monitor passes must look at, and which passes can be left out.

Upstream looks at every node every five seconds. What it finds is the same as before unless the
node, its lease or its place changed (`note`), or a time has come (`plan`); a pass in which neither
is the case for any node finds nothing and need not happen.
"""

from __future__ import annotations

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.nodelifecycle.beat import Beat


class Agenda:
    """Names of nodes; `last_pass` is when the last pass was that happened."""

    def __init__(self, passes: Beat) -> None:
        """`passes` are the instants of all passes."""
        self._passes = passes
        self.last_pass = passes.first - passes.period
        self._noted: dict[str, None] = {}
        self._noted_for: Instant | None = None
        self._planned: dict[str, Instant] = {}
        self._queued: dict[str, Instant] = {}  # at most one timer per name, never too late
        self._timers: TimerQueue[str] = TimerQueue()

    def note(self, name: str, now: Instant) -> None:
        """Something about the node changed at `now`: the next pass looks at it."""
        self._noted[name] = None
        if self._noted_for is None:
            self._noted_for = max(self._passes.at_or_after(now), self._passes.after(self.last_pass))

    def plan(self, name: str, due: Instant | None) -> None:
        """The pass at `due`, or none (None), looks at the node instead of what was planned."""
        if due is None:
            self._planned.pop(name, None)
            return
        self._planned[name] = due
        if name not in self._queued or due < self._queued[name]:
            self._queue(name, due)

    def _queue(self, name: str, due: Instant) -> None:
        self._queued[name] = due
        self._timers.add(due, name)

    def next_pass(self) -> Instant | None:
        """When the next pass is that may find something."""
        planned = self._timers.next_due()
        if planned is None or self._noted_for is None:
            return planned if self._noted_for is None else self._noted_for
        return min(planned, self._noted_for)

    def begin(self, now: Instant) -> list[str]:
        """The pass at `now` begins; the nodes it must look at, in order of their names."""
        self.last_pass, self._noted_for = now, None
        due, self._noted = self._noted, {}
        for name in self._timers.pop_due(now):
            if self._queued.get(name, now + 1) > now:
                continue  # a later timer took its place
            del self._queued[name]
            planned = self._planned.get(name)
            if planned is not None and planned <= now:
                del self._planned[name]
                due[name] = None
            elif planned is not None:
                self._queue(name, planned)
        return sorted(due)
