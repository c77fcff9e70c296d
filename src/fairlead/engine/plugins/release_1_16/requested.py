"""Scores nodes from 0 to 10 by requested resources: least requested, most requested, balanced.

All three scores use the cpu and memory requests of the incoming pod and the placed pods. A
container without a request counts as requesting 100m and 200 MiB.
upstream: priorities/{resource_allocation,least_requested,most_requested,
balanced_resource_allocation}.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY

PRIORITY_MAX: Final = 10
Ints = npt.NDArray[np.int64]


class Sums(Protocol):
    """Computes the requests of one pod, or of all pods on a node, as (millicores, memory bytes)."""

    def requested(self, pod: PodInfo) -> tuple[int, int]:
        """Return the requests of `pod`, including default requests."""
        ...

    def used(self, node: NodeInfo) -> tuple[int, int]:
        """Return (millicores, memory bytes), the total requests of the pods on `node`."""
        ...

    def used_columns(self, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """Return two arrays: millicores and memory bytes requested on each node in `rows`."""
        ...


class NodeSums:
    """Reads the sums of requests that `NodeInfo` and the node table maintain."""

    def requested(self, pod: PodInfo) -> tuple[int, int]:
        """Return the requests of `pod`, including default requests."""
        return pod.shape.nonzero_requests

    def used(self, node: NodeInfo) -> tuple[int, int]:
        """Return (millicores, memory bytes), the total requests of the pods on `node`."""
        return node.nonzero_cpu, node.nonzero_memory

    def used_columns(self, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """Return two arrays: millicores and memory bytes requested on each node in `rows`."""
        return table.nonzero_cpu[rows], table.nonzero_memory[rows]


class Rating(Protocol):
    """A scoring rule. `one` scores one node, and `many` scores several nodes at once.

    `cpu` and `memory` are the requested amounts. `cpu_offered` and `memory_offered` are the node's
    allocatable amounts. cpu is in millicores, memory in bytes.
    """

    def one(self, cpu: int, cpu_offered: int, memory: int, memory_offered: int) -> int:
        """Return the score of one node, from 0 to 10."""
        ...

    def many(self, cpu: Ints, cpu_offered: Ints, memory: Ints, memory_offered: Ints) -> Scores:
        """Return the scores of many nodes, from 0 to 10."""
        ...


class _ByMean:
    """Scores a node by the mean of its cpu and memory scores.

    A resource scores 0 if the node lacks it, or if its requests exceed the allocatable amount.
    """

    def __init__(self, one: Callable[[int, int], int], many: Callable[[Ints, Ints], Ints]) -> None:
        self._one = one
        self._many = many

    def one(self, cpu: int, cpu_offered: int, memory: int, memory_offered: int) -> int:
        return (self._one(cpu, cpu_offered) + self._one(memory, memory_offered)) // 2

    def many(self, cpu: Ints, cpu_offered: Ints, memory: Ints, memory_offered: Ints) -> Scores:
        both = self._many(cpu, cpu_offered) + self._many(memory, memory_offered)
        means: Scores = both // 2
        return means


def _least_one(used: int, offered: int) -> int:
    return (offered - used) * PRIORITY_MAX // offered if 0 < offered >= used else 0


def _least_many(used: Ints, offered: Ints) -> Ints:
    scores: Ints = np.maximum(offered - used, 0) * PRIORITY_MAX // np.maximum(offered, 1)
    return scores


def _most_one(used: int, offered: int) -> int:
    return used * PRIORITY_MAX // offered if 0 < offered >= used else 0


def _most_many(used: Ints, offered: Ints) -> Ints:
    scores = used * PRIORITY_MAX // np.maximum(offered, 1)
    return np.where((offered > 0) & (used <= offered), scores, 0)


class _Balanced:
    """Scores 10 if equal fractions of cpu and memory are used, and less if the fractions differ.

    The score is 0 if cpu or memory is used up.
    """

    def one(self, cpu: int, cpu_offered: int, memory: int, memory_offered: int) -> int:
        cpu_fraction = cpu / (cpu_offered or 1)
        memory_fraction = memory / (memory_offered or 1)
        if cpu_fraction >= 1 or memory_fraction >= 1:
            return 0
        return int((1 - abs(cpu_fraction - memory_fraction)) * float(PRIORITY_MAX))

    def many(self, cpu: Ints, cpu_offered: Ints, memory: Ints, memory_offered: Ints) -> Scores:
        cpu_fraction = cpu / np.maximum(cpu_offered, 1)
        memory_fraction = memory / np.maximum(memory_offered, 1)
        scores = ((1 - np.abs(cpu_fraction - memory_fraction)) * float(PRIORITY_MAX)).astype(
            np.int64
        )
        full = (cpu_fraction >= 1) | (memory_fraction >= 1)
        return np.where(full, 0, scores)


least: Final[Rating] = _ByMean(_least_one, _least_many)
most: Final[Rating] = _ByMean(_most_one, _most_many)
balanced: Final[Rating] = _Balanced()


class RequestedScore:
    """Scores nodes by the requests on them (Score); a `Rating` computes the scores."""

    locality = Locality.ROW

    def __init__(self, name: str, rating: Rating, sums: Sums) -> None:
        """`name` is the plugin's name; `rating` scores the requests that `sums` computes."""
        self.name = name
        self._rating = rating
        self._sums = sums

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the score of `node` with `pod` on it, from 0 to 10."""
        cpu, memory = self._sums.requested(pod)
        used_cpu, used_memory = self._sums.used(node)
        offered = node.allocatable
        return self._rating.one(cpu + used_cpu, offered[CPU], memory + used_memory, offered[MEMORY])

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        cpu, memory = self._sums.requested(pod)
        used_cpu, used_memory = self._sums.used_columns(table, rows)
        offered = table.allocatable
        return self._rating.many(
            used_cpu + cpu, offered[CPU, rows], used_memory + memory, offered[MEMORY, rows]
        )
