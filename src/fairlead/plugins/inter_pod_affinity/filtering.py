"""Whether a node's topology domains suit the pod and the pods that are there.

A node is refused, in this order, if
1. the pod's required affinity is not met: some topology key is absent, or the domain has no pod
   that matches all terms - unless no such pod is anywhere and the pod itself would be the first;
2. a pod in one of its domains matches a required anti-affinity term of the pod;
3. a pod in one of its domains has a required anti-affinity term that means the pod.
upstream: interpodaffinity/filtering.go: Filter
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.core.status import SUCCESS, Status, unresolvable, unschedulable
from fairlead.framework.interface import Rows
from fairlead.plugins.inter_pod_affinity.own_term import OwnTerms
from fairlead.state.keyed_counts import SupposedKeyedCounts

NAME: Final = "InterPodAffinity"

FITS: Final = 0
NOT_ATTRACTED: Final = 1
REPELLED: Final = 2
REPELLED_BY_EXISTING: Final = 3
STATUSES: Final[tuple[Status, ...]] = (
    SUCCESS,
    # Removing pods does not bring others near, so preemption cannot help here,
    unresolvable("node(s) didn't match pod affinity rules").by(NAME),
    # but it can here.
    unschedulable("node(s) didn't match pod anti-affinity rules").by(NAME),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules").by(NAME),
)


class AffinityState:
    """What PreFilter found out, and what a hypothesis changes in it.

    `attracted` counts pods that match all required affinity terms, `repelled` those that match an
    anti-affinity term, `existing` anti-affinity terms of pods that mean the incoming one; each by
    topology key and domain.
    """

    __slots__ = ("attracted", "existing", "is_first_of_its_kind", "own", "repelled")

    def __init__(
        self,
        own: OwnTerms,
        attracted: SupposedKeyedCounts,
        repelled: SupposedKeyedCounts,
        existing: SupposedKeyedCounts,
        *,
        is_first_of_its_kind: bool,
    ) -> None:
        """`is_first_of_its_kind` says whether the pod matches all its own affinity terms."""
        self.own = own
        self.attracted = attracted
        self.repelled = repelled
        self.existing = existing
        self.is_first_of_its_kind = is_first_of_its_kind

    def clone(self) -> AffinityState:
        """Independent from now on."""
        return AffinityState(
            self.own,
            self.attracted.clone(),
            self.repelled.clone(),
            self.existing.clone(),
            is_first_of_its_kind=self.is_first_of_its_kind,
        )

    def code(self, row: int) -> int:
        """The verdict on one row, an index into STATUSES."""
        if not self._is_attracted(row):
            return NOT_ATTRACTED
        if _is_met(self.repelled, row):
            return REPELLED
        return REPELLED_BY_EXISTING if _is_met(self.existing, row) else FITS

    def codes(self, rows: Rows) -> npt.NDArray[np.int32]:
        """`code` of many rows: the gravest verdict is written last."""
        codes = np.zeros(len(rows), np.int32)
        _mark(codes, self.existing, rows, REPELLED_BY_EXISTING)
        _mark(codes, self.repelled, rows, REPELLED)
        if self.own.attracted.by_key:
            welcome = self._may_be_first()
            for ids, counts in self.attracted.items():
                suits = counts.sums() > 0
                if welcome:
                    suits[:-1] = True
                codes[~suits[ids[rows]]] = NOT_ATTRACTED
        return codes

    def _is_attracted(self, row: int) -> bool:
        met = True
        for ids, counts in self.attracted.items():
            domain = int(ids[row])
            if domain < 0:
                return False
            met = met and counts.of(domain) > 0
        return met or self._may_be_first()

    def _may_be_first(self) -> bool:
        """Otherwise pods that want each other's company could never start (satisfyPodAffinity)."""
        return self.is_first_of_its_kind and self.attracted.total() == 0


def _is_met(counts: SupposedKeyedCounts, row: int) -> bool:
    return any(one.of(int(ids[row])) > 0 for ids, one in counts.items())


def _mark(codes: npt.NDArray[np.int32], counts: SupposedKeyedCounts, rows: Rows, code: int) -> None:
    for ids, one in counts.items():
        met = one.sums() > 0
        if met.any():
            codes[met[ids[rows]]] = code
