"""The Score of PodTopologySpread, for soft constraints.

The raw score of a node is a rounded sum over the constraints; lower is better. Each constraint adds
`count × ln(domains + 2) + (maxSkew - 1)`. Here, `count` is the number of matching pods in the
node's domain. `domains` is the number of domains that contain feasible nodes. If the topology key
is kubernetes.io/hostname, every feasible node is its own domain.

If a node lacks a topology key, its final score is 0, the worst. There is one exception: if the
constraints are the system's defaults, the missing key adds nothing to the node's raw score
(podtopologyspread/scoring.go).
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
    """The data that PreScore computes; valid within one scheduling cycle.

    `_by_domain` holds, for each constraint, the amount that each domain adds to the score. The last
    amount, 0.0, is for nodes without the topology key (ABSENT). `_ignored` marks the rows of the
    feasible nodes that lack a required topology key. `_ignored` is None if there are no such nodes.

    If there is only one constraint and `_ignored` is None, `scores` computes one score per domain.
    `scores` then sets `_single` to three arrays: the returned scores, the domain of each row, and
    the score of each domain.
    """

    __slots__ = ("_by_domain", "_ignored", "_single")

    def __init__(self, spread: SpreadCounts, rows: Rows) -> None:
        """Compute the amount that each domain adds to the score of the feasible nodes at `rows`.

        `spread.refresh` must have been called in this scheduling cycle.
        """
        self._ignored = _without_key(spread, rows)
        kept = rows if self._ignored is None else rows[~self._ignored]
        self._by_domain = [(one, _added(one, kept)) for one in spread.constraints]
        self._single: tuple[Scores, Ids, Scores] | None = None

    def score(self, row: int) -> int:
        """Return the raw score of the feasible node at `row`."""
        return int(self.scores(np.array([row]))[0])

    def scores(self, rows: Rows) -> Scores:
        """Return the raw scores of the feasible nodes at `rows`."""
        if len(self._by_domain) == 1 and self._ignored is None:
            counts, added = self._by_domain[0]
            domains, by_domain = counts.labels_of(rows)[0], _rounded(added)
            self._single = by_domain.take(domains), domains, by_domain
            return self._single[0]
        amounts = [added.take(counts.labels_of(rows)[0]) for counts, added in self._by_domain]
        total = amounts[0]
        for more in amounts[1:]:
            total += more
        if self._ignored is not None:
            for counts, _ in self._by_domain:
                total[counts.labels[rows] == ABSENT] = 0.0
        return _rounded(total)

    def normalize(self, raw: Scores) -> Scores:
        """Scale `raw`: the lowest score becomes 100, the highest becomes 100 × lowest ÷ highest.

        Nodes that lack a required topology key get 0. The scores of such nodes do not affect the
        lowest and the highest score.
        """
        # Only the array that `scores` returned last has its domains in `_single`.
        if self._single is not None and raw is self._single[0]:
            _, domains, by_domain = self._single
            return _reverse(by_domain, *_range(raw)).take(domains)
        if self._ignored is None:
            return _reverse(raw, *_range(raw))
        scores = np.zeros_like(raw)
        kept = ~self._ignored
        if kept.any():
            left = raw[kept]
            scores[kept] = _reverse(left, *_range(left))
        return scores


def _rounded(amounts: Floats) -> Scores:
    """Return `amounts`, which must not be negative, rounded to integers.

    Halves are rounded up, as in Go's math.Round.
    """
    whole = np.floor(amounts)
    whole += amounts - whole >= 0.5
    return whole.astype(np.int64)


def _without_key(spread: SpreadCounts, rows: Rows) -> Mask | None:
    if not spread.requires_all_keys:
        return None
    ignored: Mask | None = None
    for one in spread.constraints:
        labels, lacks = one.labels_of(rows)
        if lacks:
            missing: Mask = labels == ABSENT
            ignored = missing if ignored is None else ignored | missing
    return ignored


def _added(one: ConstraintCounts, kept: Rows) -> Floats:
    """Return the amount that each domain of the constraint `one` adds to the score.

    `kept` are the rows of the feasible nodes that have all required topology keys.
    """
    constraint = one.constraint
    is_by_node = constraint.topology_key == HOSTNAME
    domains = len(kept) if is_by_node else one.number_of_domains(kept)
    added: Floats = one.counts.sums * np.float64(log(domains + 2))
    if constraint.max_skew > 1:
        added += constraint.max_skew - 1
    added[ABSENT] = 0.0  # the last entry, because ABSENT is -1
    return added


def _range(raw: Scores) -> tuple[int, int]:
    """Return the lowest and the highest of `raw`."""
    return int(np.minimum.reduce(raw)), int(np.maximum.reduce(raw))


def _reverse(raw: Scores, lowest: int, highest: int) -> Scores:
    if not highest:
        return np.full_like(raw, SCORE_MAX)
    # For numbers far below 2^53, truncating the float quotient is exact. It is also much faster
    # than integer division.
    return (SCORE_MAX * (highest + lowest - raw) / highest).astype(np.int64)
