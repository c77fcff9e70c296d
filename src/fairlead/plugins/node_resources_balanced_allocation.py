"""NodeResourcesBalancedAllocation: prefer nodes on which the pod evens out cpu and memory use.

balance(x) = int((1 - deviation) × 100), the deviation being that of the used fractions of cpu and
memory (each at most 1). The score is how much the pod improves the balance, shifted so that a
neutral placement is worth 75 (plugins/noderesources/balanced_allocation.go).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.core.status import SKIP, Status
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import Locality, Rows, Scores
from fairlead.state.node_info import NodeInfo
from fairlead.state.node_table import NodeTable
from fairlead.state.pod_info import PodInfo
from fairlead.state.resource_columns import CPU, MEMORY

Floats = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """PreScore and Score."""

    name = "NodeResourcesBalancedAllocation"
    locality = Locality.ROW

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Skipped for pods that ask for neither cpu nor memory."""
        return None if pod.shape.milli_cpu or pod.shape.memory else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """0..100, from real requests (no defaults)."""
        cpu, memory = node.allocatable[CPU], node.allocatable[MEMORY]
        if not cpu or not memory:
            return 75  # with one resource or none the balance is always 100
        requested = node.requested
        used_cpu, used_memory = requested[CPU], requested[MEMORY]
        shape = pod.shape
        before = _balance(used_cpu / cpu, used_memory / memory)
        after = _balance((used_cpu + shape.milli_cpu) / cpu, (used_memory + shape.memory) / memory)
        return 50 + (50 + after - before) // 2

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """`score` over `rows`; the same operations in the same order on float64."""
        cpu, memory = table.allocatable[CPU, rows], table.allocatable[MEMORY, rows]
        used_cpu, used_memory = table.requested[CPU, rows], table.requested[MEMORY, rows]
        cpus, memories = np.maximum(cpu, 1), np.maximum(memory, 1)
        before = _balances(used_cpu / cpus, used_memory / memories)
        after = _balances(
            (used_cpu + pod.shape.milli_cpu) / cpus, (used_memory + pod.shape.memory) / memories
        )
        scores = 50 + (50 + after - before) // 2
        return np.where((cpu > 0) & (memory > 0), scores, 75)


def _balance(cpu: float, memory: float) -> int:
    cpu = min(cpu, 1.0)
    memory = min(memory, 1.0)
    return int((1 - abs((cpu - memory) / 2)) * 100)


def _balances(cpu: Floats, memory: Floats) -> Scores:
    spread = np.abs((np.minimum(cpu, 1.0) - np.minimum(memory, 1.0)) / 2)
    return ((1 - spread) * 100).astype(np.int64)
