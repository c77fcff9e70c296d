"""Scores nodes by the preferred pod affinity and anti-affinity (InterPodAffinity).

The raw score of a node is the sum of the following weights. A placed pod counts for a term if it is
in the same domain of the term's topology key as the node.
- for each preferred term of the incoming pod: the term's weight, once for each placed pod that
  matches the term;
- for each preferred term of a placed pod: the term's weight, if the incoming pod matches the term;
- for each required affinity term of a placed pod: hardPodAffinityWeight, if the incoming pod
  matches the term.
Weights of anti-affinity terms count as negative. Normalisation maps the lowest raw score to 0 and
the highest to 100 (interpodaffinity/scoring.go).
"""

from __future__ import annotations

import numpy as np

from fairlead.engine.framework.interface import SCORE_MAX, Rows, Scores
from fairlead.engine.state.label_column import Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import Ints
from fairlead.engine.state.topology_counts import KeyedCounts


class PreferenceState:
    """The sums of weights by domain, per topology key; valid within one scheduling cycle.

    The `counts` from which a PreferenceState is created must be up to date.
    """

    __slots__ = ("_sums",)

    def __init__(self, table: NodeTable, counts: tuple[KeyedCounts, ...]) -> None:
        self._sums: list[tuple[Ids, Ints]] = [
            (table.label_column(key).ids, one.sums)
            for keyed in counts
            for key, one in keyed.by_key.items()
            if one.pods
        ]

    def score(self, row: int) -> int:
        """Return the raw score of the node at `row`."""
        return sum(int(sums[ids[row]]) for ids, sums in self._sums)

    def scores(self, rows: Rows) -> Scores:
        """Return the raw scores of the nodes at `rows`."""
        total = np.zeros(len(rows), np.int64)
        for ids, sums in self._sums:
            total += sums.take(ids.take(rows))
        return total


def normalize(raw: Scores) -> Scores:
    """Scale scores to 0..100 with upstream's order of float operations.

    If all scores are equal, they become 0.
    """
    lowest, highest = raw.min(), raw.max()
    if lowest == highest:
        return np.zeros_like(raw)
    share = (raw - lowest) / np.float64(highest - lowest)
    stretched: Scores = (SCORE_MAX * share).astype(np.int64)
    return stretched
