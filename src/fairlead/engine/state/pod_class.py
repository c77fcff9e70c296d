"""PodClass: pods with equal namespace and labels; either all or none of them are terminating."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

_ABOVE_ALL: Final = 1 << 31  # priorities are 32-bit integers


class PodClass:
    """The pods with one combination of namespace, labels and "is terminating", and their node rows.

    `engine.state.pod_index` has only one PodClass for each combination, so that a selector is
    evaluated once per class instead of once per pod. If `is_removed` is set, this PodClass is no
    longer in the index, and a pod that refers to it must get its class from
    `PodIndex.pod_class_of`.
    """

    __slots__ = ("labels", "namespace", "is_removed", "terminating", "where")

    def __init__(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> None:
        """Start without pods; `terminating` is set if the pods of this class are being deleted."""
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.where = PodLocations()
        self.is_removed = False

    def __repr__(self) -> str:
        """Return a short text, for failing tests."""
        return f"PodClass({self.namespace}, {dict(self.labels)}, {self.where.rows})"


class PodCounter(Protocol):
    """Protocol of a counter, such as `DomainCounts`; `PodLocations` calls it when pods change."""

    def count(self, row: int, weight: int, pods: int) -> None:
        """Update the sum after pods were added to the node at `row`, or removed from it.

        `pods` is the number of added pods; it is negative if pods were removed. `weight` is the
        amount to add to the sum.
        """
        ...

    def release(self, source: PodLocations) -> None:
        """Stop counting `source`, which has no pods and will never have pods again."""
        ...


class PodLocations:
    """The nodes of the pods of one class, or of the pods with one affinity term.

    `rows` maps the row of each node with such pods to the number of these pods on the node. Every
    pod has at least the priority `lowest_priority`. `lowest_priority` is not raised when pods are
    removed. `counters` are notified of every change.
    """

    __slots__ = ("counters", "lowest_priority", "rows")

    def __init__(self) -> None:
        """Start without pods and counters."""
        self.rows: dict[int, int] = {}
        self.lowest_priority = _ABOVE_ALL
        self.counters: list[tuple[PodCounter, int]] = []

    def ignore(self, counter: PodCounter) -> None:
        """Stop notifying `counter`."""
        self.counters = [entry for entry in self.counters if entry[0] is not counter]

    def add(self, row: int, priority: int) -> None:
        """Add one pod with `priority` on the node at `row`; `remove` undoes this."""
        self.rows[row] = self.rows.get(row, 0) + 1
        self.lowest_priority = min(self.lowest_priority, priority)
        for counter, weight in self.counters:
            counter.count(row, weight, 1)

    def add_all(self, rows: Sequence[int], priority: int) -> None:
        """Add one pod with `priority` on the node at each of `rows`.

        A row may occur several times.
        """
        if self.rows or self.counters:
            for row in rows:
                self.add(row, priority)
        else:
            self.rows.update(Counter(rows))
            self.lowest_priority = min(self.lowest_priority, priority)

    def remove(self, row: int) -> None:
        """Remove one pod from the node at `row`."""
        left = self.rows[row] - 1
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        for counter, weight in self.counters:
            counter.count(row, -weight, -1)
