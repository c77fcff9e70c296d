"""The Score of PodTopologySpread, for soft constraints.

Raw score, lower is better: the rounded sum, over constraints whose key the node has, of
count(domain) × ln(domains + 2) + (maxSkew - 1). Only domains of feasible nodes count; for
kubernetes.io/hostname every feasible node is a domain, and the count is that of the node itself.
Nodes that lack a key score 0, except with the system's default constraints, which then use the
other key (podtopologyspread/scoring.go).
"""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.framework.interface import SCORE_MAX, Rows, Scores
from fairlead.engine.plugins.pod_topology_spread.spread_counts import ConstraintCounts, SpreadCounts
from fairlead.engine.state.label_column import ABSENT, Ids

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class SpreadScoreState:
    """The data of PreScore; valid within the cycle that computed it.

    `_by_domain` holds, for each constraint, the rows' domains and the amount that each domain adds
    to the score (the last entry, 0.0, is for ABSENT). `_ignored` marks the feasible rows that lack
    a key; None if no row does.
    """

    __slots__ = ("_by_domain", "_ignored")

    def __init__(self, live: SpreadCounts, rows: Rows) -> None:
        """Compute the amount that each domain adds for the feasible `rows`.

        `live` must be refreshed.
        """
        self._ignored = _without_key(live, rows)
        kept = rows if self._ignored is None else rows[~self._ignored]
        self._by_domain = [_added(one, kept) for one in live.constraints]

    def score(self, row: int) -> int:
        """Return the raw score of one feasible row."""
        return int(self.scores(np.array([row]))[0])

    def scores(self, rows: Rows) -> Scores:
        """Return the raw scores of feasible rows."""
        total: Floats = np.zeros(len(rows))
        for labels, added in self._by_domain:
            total += added.take(labels.take(rows))
        if self._ignored is not None:
            for labels, _ in self._by_domain:
                total[labels[rows] == ABSENT] = 0.0
        whole = np.floor(total)
        whole += total - whole >= 0.5  # rounds half away from zero, as math.Round; never negative
        return whole.astype(np.int64)

    def normalize(self, raw: Scores) -> Scores:
        """Scale the scores: the best node gets 100, the worst 100 × lowest ÷ highest."""
        if self._ignored is None:
            return _reverse(raw)
        scores = np.zeros_like(raw)
        kept = ~self._ignored
        if kept.any():
            scores[kept] = _reverse(raw[kept])
        return scores


def _without_key(live: SpreadCounts, rows: Rows) -> Mask | None:
    if not live.requires_all_keys:
        return None
    ignored = np.zeros(len(rows), np.bool_)
    for one in live.constraints:
        ignored |= one.labels.take(rows) == ABSENT
    return ignored if ignored.any() else None


def _added(one: ConstraintCounts, kept: Rows) -> tuple[Ids, Floats]:
    """Return the domains of all rows by label, and each domain's contribution to the score."""
    constraint = one.constraint
    if constraint.topology_key == HOSTNAME:
        domains = len(kept)
    else:
        domains = int(np.count_nonzero(np.bincount(one.ids.take(kept))))
    added: Floats = one.counts.sums * np.float64(log(domains + 2))
    added += constraint.max_skew - 1
    added[-1] = 0.0
    return one.labels, added


def _reverse(raw: Scores) -> Scores:
    lowest, highest = int(raw.min()), int(raw.max())
    if not highest:
        return np.full_like(raw, SCORE_MAX)
    # Far below 2^53, truncating the float quotient is exact, and much faster than integer division.
    return (SCORE_MAX * (highest + lowest - raw) / highest).astype(np.int64)
