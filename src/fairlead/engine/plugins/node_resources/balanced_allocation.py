"""NodeResourcesBalancedAllocation: prefers nodes on which the pod balances the use of resources.

The used fraction of a resource is requested / allocatable, but at most 1. The balance is
int((1 - deviation) × 100), where deviation is the standard deviation of the used fractions. The
change is the balance with the pod minus the balance without the pod. The score is 75 plus half of
the change, rounded down (plugins/noderesources/balanced_allocation.go).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SKIP, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Plugin, Rows, Scores
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.node_resources.args import CPU_AND_MEMORY, BalancedAllocationArgs
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, FIRST_SCALAR, MEMORY
from fairlead.engine.state.shape_columns import ShapeColumns

NAME = "NodeResourcesBalancedAllocation"
Floats = npt.NDArray[np.float64]
CPU_AND_MEMORY_ROWS = slice(CPU, MEMORY + 1)
# If at most this many rows changed, computing them one by one is faster than computing all rows.
# Measured with 5,000 rows.
_ROWS_FEW: Final = 12


class NodeResourcesBalancedAllocation:
    """Prefers nodes where the pod balances the use of cpu and memory (PreScore, Score)."""

    name = NAME
    locality = Locality.ROW
    reads_only_sums = True

    def __init__(self) -> None:
        self._before = _CurrentBalances()

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if the pod requests neither cpu nor memory."""
        return None if pod.shape.milli_cpu or pod.shape.memory else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return a score from 0 to 100; containers without requests count as requesting nothing."""
        cpu, memory = node.allocatable[CPU], node.allocatable[MEMORY]
        if not cpu or not memory:
            return 75  # with at most one resource the balance is always 100
        requested = node.requested
        used_cpu, used_memory = requested[CPU], requested[MEMORY]
        shape = pod.shape
        before = _balance(used_cpu / cpu, used_memory / memory)
        after = _balance((used_cpu + shape.milli_cpu) / cpu, (used_memory + shape.memory) / memory)
        return 50 + (50 + after - before) // 2

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`.

        The float operations and their order are the same as in `score`.
        """
        used = table.values(table.requested[CPU_AND_MEMORY_ROWS], rows)
        requested = np.array(((pod.shape.milli_cpu,), (pod.shape.memory,)))
        offered = table.values(table.offered, rows)
        divisors = np.maximum(offered, 1) if table.unusual else offered
        scores = _balances(_fractions(used + requested, divisors))
        scores -= table.values(self._before.refresh(table), rows)
        # The sum of 50 and half of (50 + after - before), rounded down.
        scores += 150
        scores >>= 1
        return np.where((offered > 0).all(axis=0), scores, 75) if table.unusual else scores

    def score_shapes(self, shapes: ShapeColumns, table: NodeTable, row: int) -> Scores | None:
        """Return the node's score for each pod spec in `shapes`.

        Returns None if the node lacks cpu or memory.
        """
        node, at = table.at(row), slice(row, row + 1)
        cpu, memory = node.allocatable[CPU], node.allocatable[MEMORY]
        if not cpu or not memory:
            return None
        before = _balance(node.requested[CPU] / cpu, node.requested[MEMORY] / memory)
        used = shapes.requested + table.requested[CPU_AND_MEMORY_ROWS, at]
        fractions = used / table.offered[:, at]
        np.minimum(fractions, 1.0, out=fractions)
        scores = _balances(fractions)
        # The sum of 50 and half of (50 + after - before), rounded down.
        scores += 150 - before
        scores >>= 1
        return scores


class _CurrentBalances:
    """Caches, for each node, how evenly the current pods use its cpu and memory."""

    def __init__(self) -> None:
        self._values: Scores = np.zeros(0, np.int64)
        self._pod_position = self._node_position = -1

    def refresh(self, table: NodeTable) -> Scores:
        """Return the balance of the node in each row of `table`."""
        pods, nodes = table.pod_log, table.node_log
        changed = pods.since(self._pod_position) if nodes.position == self._node_position else None
        if changed is None or len(changed) > _ROWS_FEW:
            used = table.requested[CPU_AND_MEMORY_ROWS, : table.size]
            divisors = np.maximum(table.offered[:, : table.size], 1)
            self._values = _balances(_fractions(used, divisors))
        else:
            for row in changed:
                cpu, memory = table.offered[:, row].tolist()
                used_cpu, used_memory = table.requested[CPU_AND_MEMORY_ROWS, row].tolist()
                self._values[row] = _balance(used_cpu / max(cpu, 1), used_memory / max(memory, 1))
        self._pod_position, self._node_position = pods.position, nodes.position
        return self._values


class BalancedAllocationOf:
    """Prefers nodes where the pod balances the use of configured resources (PreScore, Score)."""

    name = NAME
    locality = Locality.ROW
    reads_only_sums = True

    def __init__(self, handle: Handle, resources: Sequence[str]) -> None:
        columns = handle.cluster.table.resources
        self._columns = tuple(columns.column(name) for name in resources)

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if the pod requests none of the balanced resources."""
        requests = dict(pod.shape.requests)
        return None if any(requests.get(column) for column in self._columns) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return a score from 0 to 100; containers without requests count as requesting nothing.

        An extended resource counts only if the pod requests it.
        """
        requests = dict(pod.shape.requests)
        before: list[float] = []
        after: list[float] = []
        for column in self._columns:
            offered, more = node.allocatable_of(column), requests.get(column, 0)
            if offered and (more or column < FIRST_SCALAR):
                used = node.requested_of(column)
                before.append(min(used / offered, 1.0))
                after.append(min((used + more) / offered, 1.0))
        return 50 + (50 + _evenness(after) - _evenness(before)) // 2


def balanced_allocation(handle: Handle, args: BalancedAllocationArgs) -> Plugin:
    """Return the plugin that balances the resources in `args`."""
    if sorted(args.names) == sorted(spec.name for spec in CPU_AND_MEMORY):
        return NodeResourcesBalancedAllocation()
    return BalancedAllocationOf(handle, args.names)


def _evenness(fractions: list[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _total(fractions) / len(fractions)
        squares = [(part - mean) * (part - mean) for part in fractions]
        deviation = math.sqrt(_total(squares) / len(fractions))
    return int((1 - deviation) * 100)


def _total(parts: list[float]) -> float:
    """Return the sum of `parts`, added one after the other as in upstream.

    The built-in `sum` can return another result, because it is more precise since Python 3.12.
    """
    total = 0.0
    for part in parts:
        total += part
    return total


def _balance(cpu: float, memory: float) -> int:
    # Conditions are three times as fast as `min` and `abs`.
    cpu = 1.0 if cpu > 1.0 else cpu  # noqa: FURB136
    memory = 1.0 if memory > 1.0 else memory  # noqa: FURB136
    spread = cpu - memory if cpu > memory else memory - cpu
    return int((1 - spread / 2) * 100)


def _fractions(used: Scores, offered: Floats) -> Floats:
    fractions = used.astype(np.float64)
    fractions /= offered
    if np.maximum.reduce(fractions, axis=None, initial=0) > 1:
        np.minimum(fractions, 1.0, out=fractions)  # three times as slow as the check
    return fractions


def _balances(fractions: Floats) -> Scores:
    """Return the balance of cpu and memory on each node; overwrites `fractions`.

    `fractions[0]` contains the used fraction of cpu on each node. `fractions[1]` contains the used
    fraction of memory. The standard deviation of the two is half of their difference, so the
    balance is `(1 - difference / 2) * 100`. The balance is computed as `(2 - difference) * 50`,
    which is the same float, because halving and doubling floats is exact.
    """
    spread = fractions[0]
    spread -= fractions[1]
    np.abs(spread, out=spread)
    np.subtract(2.0, spread, out=spread)
    spread *= 50
    balances: Scores = spread.astype(np.int64)
    return balances
