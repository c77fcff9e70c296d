"""TimerQueue: items ordered by due time; items with equal due times are in order of insertion."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from fairlead.engine.core.instant import Instant

Item = TypeVar("Item")


class TimerQueue(Generic[Item]):
    """A heap of (due time, item)."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Item]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due: Instant, item: Item) -> None:
        """Add `item`, to be popped at `due`."""
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, item))

    def next_due(self) -> Instant | None:
        """Return the time at which the first item is due; None if there are no items."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: Instant) -> list[Item]:
        """Remove all items that are due at or before `now`, and return them in order."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due
