"""Scores nodes by the preferred pod affinity and anti-affinity (InterPodAffinity).

Raw score: the sum over the node's domains of the weights of
- the pod's preferred terms, for each placed pod they match;
- preferred terms of placed pods that match the pod;
- required affinity terms of placed pods that match the pod.
Anti-affinity counts negative. Lowest to highest become 0 to 100 (interpodaffinity/scoring.go).
"""

from __future__ import annotations

import numpy as np

from fairlead.engine.framework.interface import SCORE_MAX, Rows, Scores
from fairlead.engine.state.label_column import Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import Ints
from fairlead.engine.state.topology_counts import KeyedCounts


class PreferenceState:
    """The weights by domain, per topology key; valid within the cycle that computed them."""

    __slots__ = ("_sums",)

    def __init__(self, table: NodeTable, counts: tuple[KeyedCounts, ...]) -> None:
        """Use the weights in `counts`, which must be refreshed."""
        self._sums: list[tuple[Ids, Ints]] = [
            (table.label_column(key).ids, one.sums)
            for keyed in counts
            for key, one in keyed.by_key.items()
            if one.pods
        ]

    def score(self, row: int) -> int:
        """Return the raw score of one row."""
        return sum(int(sums[ids[row]]) for ids, sums in self._sums)

    def scores(self, rows: Rows) -> Scores:
        """Return the raw scores of many rows."""
        total = np.zeros(len(rows), np.int64)
        for ids, sums in self._sums:
            total += sums.take(ids.take(rows))
        return total


def normalize(raw: Scores) -> Scores:
    """Scale to 0..100 with upstream's order of float operations; equal scores become 0."""
    lowest, highest = raw.min(), raw.max()
    if lowest == highest:
        return np.zeros_like(raw)
    share = (raw - lowest) / np.float64(highest - lowest)
    stretched: Scores = (SCORE_MAX * share).astype(np.int64)
    return stretched
