"""InterPodAffinityPriority: scores from 0 to 10 that count only the pods on feasible nodes.

The range of the raw scores is extended to include 0, and then scaled to 0..10
(priorities/interpod_affinity.go).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Scores
from fairlead.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from fairlead.engine.plugins.release_1_16.requested import PRIORITY_MAX
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo


class InterPodAffinityPriority:
    """Scores nodes by preferred pod affinity as Kubernetes 1.16 does (Score)."""

    name = "InterPodAffinityPriority"
    locality = Locality.CLUSTER

    def __init__(self, table: NodeTable, current: InterPodAffinity) -> None:
        self._table = table
        self._current = current

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if no affinity term of `pod` or of placed pods affects scores for `pod`."""
        return self._current.scores_alike(pod)

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return the raw score of each node in `rows`.

        The score is the sum of the weights of all terms that match in the node's topology domains.
        Only the pods on nodes in `rows` are counted.
        """
        counted: npt.NDArray[np.bool_] = np.zeros(table.capacity, np.bool_)
        counted[rows] = True
        total = np.zeros(len(rows), np.int64)
        for keyed in self._current.preferences(pod):
            for key, counts in keyed.by_key.items():
                sums = counts.sums_over(counted)
                total += sums[table.label_column(key).ids[rows]]
        return total

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Return the scores scaled to 0..10, with the float operations in 1.16's order."""
        lowest, highest = min(int(scores.min()), 0), max(int(scores.max()), 0)
        if lowest == highest:
            return np.zeros_like(scores)
        share = (scores - lowest).astype(np.float64) / np.float64(highest - lowest)
        stretched: Scores = (PRIORITY_MAX * share).astype(np.int64)
        return stretched
