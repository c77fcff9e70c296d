"""Recurrence: workloads that keep displacing each other.

Displacements (preemptions, evictions in favour of another pod) form a graph of workloads, with an
edge from the workload that gained to the one that lost. A cycle means wasted work: A displaces B,
B's successor displaces A, and so on. A breadth-first search finds the smallest cycle that a new
displacement closes, so the report shows the displacements that drive it.

Also reported: workloads displaced more often than `starving_after`, and nominations that are never
used. Everything is bounded: the oldest edges and counts are dropped first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

from fairlead.engine.core.instant import Instant

Key = TypeVar("Key")
Value = TypeVar("Value")

_EDGES_MAX: Final = 10_000
_COUNTS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Displacement:
    """At time `at`, workload `by` displaced workload `victim`; `rule` names the deciding rule."""

    by: str
    victim: str
    rule: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Cycle:
    """Displacements that lead back to the first workload; the newest, which closes it, is last."""

    displacements: tuple[Displacement, ...]
    times: int

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads in the cycle, in order."""
        return tuple(displacement.by for displacement in self.displacements)


@dataclass(frozen=True, slots=True)
class Findings:
    """What one displacement revealed."""

    cycle: Cycle | None = None
    starving: str = ""
    displaced_times: int = 0


class DisplacementGraph:
    """Displacements so far; a workload starves after `starving_after` displacements."""

    def __init__(self, starving_after: int) -> None:
        """Start without displacements."""
        self._starving_after = starving_after
        self._edges: dict[tuple[str, str], Displacement] = {}
        self._gains: dict[str, dict[str, None]] = {}
        self._times: dict[str, int] = {}
        self._cycles: dict[tuple[str, ...], int] = {}

    def add(self, displacement: Displacement) -> Findings:
        """Record `displacement`; return what it reveals.

        A cycle is reported when it is first closed and each time its count doubles; starvation each
        time the count passes a multiple of `starving_after`.
        """
        cycle = self._closes(displacement)
        self._remember(displacement)
        times = self._times.pop(displacement.victim, 0) + 1
        self._times[displacement.victim] = times
        _bound(self._times, _COUNTS_MAX)
        starving = times > self._starving_after and times % self._starving_after == 1
        victim = displacement.victim if starving else ""
        return Findings(cycle, victim, times)

    def _remember(self, displacement: Displacement) -> None:
        key = (displacement.by, displacement.victim)
        self._edges.pop(key, None)
        self._edges[key] = displacement
        self._gains.setdefault(displacement.by, {})[displacement.victim] = None
        while len(self._edges) > _EDGES_MAX:
            by, victim = next(iter(self._edges))
            del self._edges[by, victim]
            del self._gains[by][victim]

    def _closes(self, newest: Displacement) -> Cycle | None:
        path = self._path(newest.victim, newest.by)
        if path is None:
            return None
        edges = tuple(self._edges[a, b] for a, b in pairwise(path))
        around = (*edges, newest)
        key = _rotated(tuple(edge.by for edge in around))
        times = self._cycles.get(key, 0) + 1
        self._cycles[key] = times
        _bound(self._cycles, _COUNTS_MAX)
        return Cycle(around, times) if times & (times - 1) == 0 else None

    def _path(self, start: str, end: str) -> list[str] | None:
        """The shortest chain of displacements from `start` to `end`, as workloads."""
        came_from: dict[str, str] = {start: ""}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here == end:
                return _traced(came_from, end)
            for there in self._gains.get(here, ()):
                if there not in came_from:
                    came_from[there] = here
                    waiting.append(there)
        return None


def _traced(came_from: dict[str, str], end: str) -> list[str]:
    path = [end]
    while came_from[path[-1]]:
        path.append(came_from[path[-1]])
    return path[::-1]


def _rotated(names: tuple[str, ...]) -> tuple[str, ...]:
    """The cycle in canonical rotation, independent of its first workload."""
    first = names.index(min(names))
    return names[first:] + names[:first]


def _bound(remembered: dict[Key, Value], most: int) -> None:
    """Drop the oldest entries beyond `most`."""
    while len(remembered) > most:
        del remembered[next(iter(remembered))]


class NominationLedger:
    """Pods that were nominated to nodes they never used, and how often in a row."""

    def __init__(self, wasted_after: int) -> None:
        """Report from `wasted_after` unused nominations in a row on."""
        self._wasted_after = wasted_after
        self._promised: dict[str, str] = {}
        self._wasted: dict[str, int] = {}

    def promised(self, pod: str, node: str) -> int:
        """Record the nomination of `pod` to `node`; return the wasted ones, 0 if too few."""
        before = self._promised.pop(pod, "")
        self._promised[pod] = node
        _bound(self._promised, _COUNTS_MAX)
        return self._count(pod) if before else 0

    def placed(self, pod: str, node: str) -> int:
        """Record the placement of `pod` on `node`; return as `promised` if nominated elsewhere."""
        before = self._promised.pop(pod, node)
        if before == node:
            self._wasted.pop(pod, None)
            return 0
        return self._count(pod)

    def _count(self, pod: str) -> int:
        times = self._wasted.pop(pod, 0) + 1
        self._wasted[pod] = times
        _bound(self._wasted, _COUNTS_MAX)
        return times if times % self._wasted_after == 0 else 0
