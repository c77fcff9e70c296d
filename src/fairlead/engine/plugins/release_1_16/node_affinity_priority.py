"""NodeAffinityPriority: the current NodeAffinity, scaled to 0..10 (priorities/node_affinity.go)."""

from __future__ import annotations

import numpy as np

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores
from fairlead.engine.plugins.node_affinity import NodeAffinity
from fairlead.engine.plugins.release_1_16.requested import PRIORITY_MAX
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo


class NodeAffinityPriority:
    """Scores nodes by preferred node affinity, 0..10 (PreScore, Score)."""

    name = "NodeAffinityPriority"
    locality = Locality.NODE

    def __init__(self, current: NodeAffinity) -> None:
        self._current = current

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if `pod` has no preferred node affinity; all nodes then score alike."""
        affinity = pod.shape.spec.affinity
        node_affinity = affinity.node_affinity if affinity is not None else None
        return (
            node_affinity is None
            or not node_affinity.preferred_during_scheduling_ignored_during_execution
        )

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP for pods without preferences."""
        return self._current.pre_score(state, pod, rows)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the sum of the weights of the preferred terms that match the node."""
        return self._current.score(state, pod, node)

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the score of each node in `rows`."""
        return self._current.score_columns(state, pod, table, rows)

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Scale scores so that the highest becomes 10 (priorities/reduce.go: NormalizeReduce)."""
        highest = int(scores.max()) if len(scores) else 0
        if not highest:
            return np.zeros_like(scores)
        scaled: Scores = scores * PRIORITY_MAX // highest
        return scaled
