"""NodeResourcesBalancedAllocation of 1.19: prefers equal used fractions of cpu and memory.

The score is int((1 - |cpu fraction - memory fraction|) × 100), or 0 if cpu or memory is used up. A
container without a request counts as requesting 100m and 200 MiB. The score of the current plugin
depends on how much the pod improves the balance.
upstream: v1.19 noderesources/balanced_allocation.go: balancedResourceScorer
"""

from __future__ import annotations

import numpy as np

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Locality, Rows, Scores
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY


class BalancedFractions:
    """Prefers nodes on which the used fractions of cpu and memory are similar (Score)."""

    name = "NodeResourcesBalancedAllocation"
    locality = Locality.ROW

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return a score from 0 to 100; a resource that the node lacks counts as used up."""
        cpu, memory = pod.shape.nonzero_requests
        cpu_fraction = _fraction(node.nonzero_cpu + cpu, node.allocatable[CPU])
        memory_fraction = _fraction(node.nonzero_memory + memory, node.allocatable[MEMORY])
        if cpu_fraction >= 1 or memory_fraction >= 1:
            return 0
        return int((1 - abs(cpu_fraction - memory_fraction)) * float(SCORE_MAX))

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`.

        The float operations and their order are the same as in `score`.
        """
        cpu, memory = table.allocatable[CPU, rows], table.allocatable[MEMORY, rows]
        requested_cpu, requested_memory = pod.shape.nonzero_requests
        used_cpu = table.nonzero_cpu[rows] + requested_cpu
        used_memory = table.nonzero_memory[rows] + requested_memory
        cpu_fraction = np.where(cpu > 0, used_cpu / np.maximum(cpu, 1), 1.0)
        memory_fraction = np.where(memory > 0, used_memory / np.maximum(memory, 1), 1.0)
        scores = (1 - np.abs(cpu_fraction - memory_fraction)) * float(SCORE_MAX)
        full = (cpu_fraction >= 1) | (memory_fraction >= 1)
        return np.where(full, 0, scores.astype(np.int64))


def _fraction(used: int, offered: int) -> float:
    return used / offered if offered else 1.0
