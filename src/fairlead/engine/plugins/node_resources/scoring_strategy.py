"""The scoring strategies of NodeResourcesFit.

LeastAllocated, MostAllocated and RequestedToCapacityRatio score each resource by its allocatable
amount and its requested amount, including the pod's requests. The node's score is the weighted mean
of these scores, rounded down. RequestedToCapacityRatio rounds to the nearest integer instead, and
leaves out resources that score 0. As in upstream, a container without a request counts as
requesting 100m cpu and 200 MiB memory. Scalar resources, such as extended resources, are scored
only if the pod requests them. If a node lists none of an extended resource, the node's devices that
provide the resource are counted.

upstream: plugins/noderesources/{resource_allocation,least_allocated,most_allocated,
requested_to_capacity_ratio}.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Rows, Scores
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.node_resources.args import (
    CPU_AND_MEMORY,
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    FitArgs,
    ScoringStrategy,
    UtilizationShapePoint,
)
from fairlead.engine.plugins.node_resources.device_totals import DeviceTotals
from fairlead.engine.state.devices.extended_resources import may_be_devices
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import EXACT_BELOW, NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, FIRST_SCALAR, MEMORY
from fairlead.engine.state.shape_columns import ShapeColumns

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SHAPE_SCORE_MAX: Final = 10


class Strategy(Protocol):
    """Scores one node or many nodes for one pod, or one node for many pod specs (`Shape`)."""

    @property
    def reads_only_sums(self) -> bool:
        """Return whether the scores depend only on the node data that `SumsCache` compares."""
        ...

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the score of `node` for `pod`, from 0 to 100; higher is better."""
        ...

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        ...

    def score_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Scores | None:
        """Return the score of the node at `row` for each pod spec in `shapes`.

        Returns None if `score` must be called for each pod spec instead.
        """
        ...


def least_allocated(used: int, offered: int) -> int:
    """Return the free part of the allocatable amount `offered` in percent, rounded down.

    Returns 0 if `used` exceeds `offered`.
    """
    return 0 if used > offered else (offered - used) * SCORE_MAX // offered


def most_allocated(used: int, offered: int) -> int:
    """Return the used part of the allocatable amount `offered` in percent, rounded down.

    Returns 100 if `used`, which includes default requests, exceeds `offered`.
    """
    return min(used, offered) * SCORE_MAX // offered


class RequestedToCapacityRatio:
    """A score that is piecewise linear over utilisation.

    The score is constant below the utilisation of the first point. It is also constant above the
    utilisation of the last point.
    """

    def __init__(self, points: tuple[UtilizationShapePoint, ...]) -> None:
        """Scale the scores of `points` from 0..10 to 0..100.

        `points` must be sorted by utilisation.
        """
        scale = SCORE_MAX // _SHAPE_SCORE_MAX
        self._points = [(point.utilization, point.score * scale) for point in points]

    def __call__(self, used: int, offered: int) -> int:
        """Return the score for the utilisation `used` / `offered`.

        A utilisation above 100 % gets the score of 100 %.
        """
        at = SCORE_MAX if used > offered else used * SCORE_MAX // offered
        before_x, before_y = self._points[0]
        if at <= before_x:
            return before_y
        for x, y in self._points[1:]:
            if at <= x:
                # Go's integer division truncates toward zero; this also holds for negative slopes.
                rise = (y - before_y) * (at - before_x)
                return before_y + int(rise / (x - before_x))
            before_x, before_y = x, y
        return before_y


class ByNode:
    """Applies any scoring strategy to one node after the other."""

    def __init__(
        self,
        strategy: ScoringStrategy,
        rate: Callable[[int, int], int],
        handle: Handle,
        *,
        skip_zero: bool,
    ) -> None:
        """Create the scorer; it calls `rate(used, offered)` for the score of each resource.

        If `skip_zero` is set, resources that score 0 are left out. The node's score is then rounded
        to the nearest integer. If `skip_zero` is not set, the node's score is rounded down.
        """
        self._columns = columns = handle.cluster.table.resources
        self._resources = [
            (columns.column(spec.name), spec.effective_weight)
            for spec in strategy.effective_resources
        ]
        by_devices = any(may_be_devices(spec.name) for spec in strategy.effective_resources)
        self._devices = DeviceTotals(handle) if by_devices else None
        self.reads_only_sums = not by_devices
        self._rate = rate
        self._skip_zero = skip_zero

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the score of `node` for `pod`, from 0 to 100; higher is better."""
        total = weights = 0
        for column, weight in self._resources:
            offered = node.allocatable_of(column)
            requested = _requested(pod, column)
            if column >= FIRST_SCALAR and requested == 0:
                continue
            used = _used(node, column)
            if offered == 0 and self._devices is not None and column >= FIRST_SCALAR:
                offered, used = self._devices.of(self._columns.names[column], node)
            if offered == 0:
                continue
            rated = self._rate(used + requested, offered)
            if rated or not self._skip_zero:
                total += weight * rated
                weights += weight
        if not weights:
            return 0
        if self._skip_zero:
            return int(total / weights + 0.5)  # math.Round of a positive number
        return total // weights

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        scores = [self.score(state, pod, table.at(row)) for row in rows.tolist()]
        return np.array(scores, np.int64)

    def score_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> None:
        """Return None, because each pod spec is scored separately."""


class LeastAllocatedCpuMemory:
    """The default strategy, optimised: LeastAllocated for cpu and memory with equal weights."""

    reads_only_sums = True

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return a score from 0 to 100, higher if more cpu and memory of the node are free."""
        cpu, memory = pod.shape.nonzero_requests
        cpu += node.nonzero_cpu
        memory += node.nonzero_memory
        cpu_offered, memory_offered = node.allocatable[CPU], node.allocatable[MEMORY]
        total = resources = 0
        if cpu_offered:
            resources = 1
            if cpu <= cpu_offered:
                total = (cpu_offered - cpu) * SCORE_MAX // cpu_offered
        if memory_offered:
            resources += 1
            if memory <= memory_offered:
                total += (memory_offered - memory) * SCORE_MAX // memory_offered
        return total // resources if resources else 0

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        offered = table.values(table.offered, rows)
        if table.unusual and np.maximum.reduce(offered, axis=None, initial=0) >= EXACT_BELOW:
            scores = [self.score(state, pod, table.at(row)) for row in rows.tolist()]
            return np.array(scores, np.int64)
        cpu, memory = pod.shape.nonzero_requests
        free = table.values(table.allocatable[CPU : MEMORY + 1], rows)
        free = free - table.values(table.nonzero, rows)
        free -= np.array(((cpu,), (memory,)))
        if np.minimum.reduce(free, axis=None, initial=0) < 0:
            np.maximum(free, 0, out=free)  # twice as slow as the check
        if not table.unusual:
            total = _sum_of_least(free, offered)
            total >>= 1  # floor division by 2
            return total
        total = _sum_of_least(free, np.maximum(offered, 1))
        total //= np.maximum((offered > 0).sum(axis=0), 1)
        return total

    def score_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Scores | None:
        """Return the score of the node at `row` for each pod spec in `shapes`.

        Returns None if the node is one of the table's `unusual` nodes.
        """
        if row in table.unusual:
            return None
        at = slice(row, row + 1)
        free = (
            table.allocatable[CPU : MEMORY + 1, at] - table.nonzero[:, at]
        ) - shapes.nonzero_requests
        np.maximum(free, 0, out=free)
        total = _sum_of_least(free, table.offered[:, at])
        total >>= 1  # floor division by 2
        return total


def _sum_of_least(free: Ints, offered: Floats) -> Scores:
    """Return the sum of the `least_allocated` scores of cpu and memory; overwrite `free`.

    The first axis of both arrays is (cpu, memory). `free` are the amounts that remain after the pod
    was added, at least 0. `offered` are the allocatable amounts, from 1 to below EXACT_BELOW.

    Dividing floats is five times faster than dividing integers. The quotient, rounded down, is
    exact for two reasons. A float holds the numerator, 100 × `free`, exactly. A quotient up to 100
    that is not whole is at least 2^-45 below the next whole number. Float rounding adds less than
    2^-47.
    """
    free *= SCORE_MAX
    quotients = free.astype(np.float64)
    quotients /= offered
    rated = quotients.astype(np.int64)
    total: Scores = rated[0]
    total += rated[1]
    return total


def _requested(pod: PodInfo, column: int) -> int:
    if column == CPU:
        return pod.shape.nonzero_requests[0]
    if column == MEMORY:
        return pod.shape.nonzero_requests[1]
    return next((amount for c, amount in pod.shape.requests if c == column), 0)


def _used(node: NodeInfo, column: int) -> int:
    if column == CPU:
        return node.nonzero_cpu
    if column == MEMORY:
        return node.nonzero_memory
    return node.requested_of(column)


def scoring_strategy(args: FitArgs, handle: Handle) -> Strategy:
    """Return the implementation of the scoring strategy in `args`."""
    strategy = args.scoring_strategy
    ratio = strategy.requested_to_capacity_ratio
    if ratio is not None:
        return ByNode(strategy, RequestedToCapacityRatio(ratio.shape), handle, skip_zero=True)
    if strategy.type == MOST_ALLOCATED:
        return ByNode(strategy, most_allocated, handle, skip_zero=False)
    assert strategy.type == LEAST_ALLOCATED
    weights = [(spec.name, spec.effective_weight) for spec in strategy.effective_resources]
    if weights == [(spec.name, spec.weight) for spec in CPU_AND_MEMORY]:
        return LeastAllocatedCpuMemory()
    return ByNode(strategy, least_allocated, handle, skip_zero=False)
