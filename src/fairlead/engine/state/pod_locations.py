"""PodLocations: the rows of the pods of one class or with one term, and the counts that follow."""

from __future__ import annotations

from typing import Protocol


class Counter(Protocol):
    """Keeps sums over rows; see `engine.state.domain_counts`."""

    def count(self, row: int, weight: int, pods: int) -> None:
        """`pods` more (or, below 0, fewer) on `row`, which changes the sum by `weight`."""
        ...

    def release(self, source: PodLocations) -> None:
        """`source` has no pods and will never have any again."""
        ...


class PodLocations:
    """`rows` maps row to number of pods, never 0; `counters` hear of every change."""

    __slots__ = ("counters", "rows")

    def __init__(self) -> None:
        """Nowhere, and nobody listens."""
        self.rows: dict[int, int] = {}
        self.counters: list[tuple[Counter, int]] = []

    def ignore(self, counter: Counter) -> None:
        """`counter` does not want to hear of these pods any more."""
        self.counters = [entry for entry in self.counters if entry[0] is not counter]

    def add(self, row: int) -> None:
        """One more on `row`; undone by `remove`."""
        self.rows[row] = self.rows.get(row, 0) + 1
        for counter, weight in self.counters:
            counter.count(row, weight, 1)

    def remove(self, row: int) -> None:
        """One fewer on `row`."""
        left = self.rows[row] - 1
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        for counter, weight in self.counters:
            counter.count(row, -weight, -1)
