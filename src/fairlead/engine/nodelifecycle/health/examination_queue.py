"""ExaminationQueue: the nodes that the next monitor passes must examine.

Upstream examines every node every five seconds. Here, a pass examines a node if the node, its lease
or its zone changed (`add`). A pass also examines a node if a deadline of the node has passed
(`schedule`). All other nodes are not examined, because the result would be the same as before.
"""

from __future__ import annotations

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.nodelifecycle.period import Period


class ExaminationQueue:
    """The nodes to examine, by name. `last_pass` is the time of the last monitor pass that ran."""

    def __init__(self, passes: Period) -> None:
        """`passes` are the times of all monitor passes."""
        self._passes = passes
        self.last_pass = passes.first - passes.period
        self._noted: dict[str, None] = {}
        self._noted_for: Instant | None = None
        self._planned: dict[str, Instant] = {}
        self._queued: dict[
            str, Instant
        ] = {}  # the timer of each name, at or before its time in `_planned`
        self._timers: TimerQueue[str] = TimerQueue()

    def add(self, name: str, now: Instant) -> None:
        """Let the next pass examine the node `name`, which changed at `now`."""
        self._noted[name] = None
        if self._noted_for is None:
            self._noted_for = max(self._passes.at_or_after(now), self._passes.after(self.last_pass))

    def schedule(self, name: str, due: Instant | None) -> None:
        """Let the pass at `due` examine the node `name`.

        `due` replaces the time that an earlier call set for the node. If `due` is None, the earlier
        time is removed, and no new time is set.
        """
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
        """Return the time of the next pass that has nodes to examine; None if there is none."""
        planned = self._timers.next_due()
        if planned is None or self._noted_for is None:
            return planned if self._noted_for is None else self._noted_for
        return min(planned, self._noted_for)

    def begin_pass(self, now: Instant) -> list[str]:
        """Start the pass at `now`; return the nodes to examine, ordered by name."""
        self.last_pass, self._noted_for = now, None
        due, self._noted = self._noted, {}
        for name in self._timers.pop_due(now):
            if self._queued.get(name, now + 1) > now:
                continue  # replaced by another timer
            del self._queued[name]
            planned = self._planned.get(name)
            if planned is not None and planned <= now:
                del self._planned[name]
                due[name] = None
            elif planned is not None:
                self._queue(name, planned)
        return sorted(due)
