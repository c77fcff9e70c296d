"""Filters nodes by the DoNotSchedule constraints (PodTopologySpread).

A node fits if count(domain) + self - lowest count <= maxSkew. Here, self is 1 if the constraint's
selector matches the incoming pod, otherwise 0. Constraints are evaluated in order, and the first
violated constraint is reported. A node without the topology key never fits.
upstream: podtopologyspread/filtering.go: Filter
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.engine.core.status import SUCCESS, Status, unresolvable, unschedulable
from fairlead.engine.framework.interface import Rows
from fairlead.engine.plugins.pod_topology_spread.spread_counts import ConstraintCounts, SpreadCounts
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.domain_counts import HypotheticalCounts
from fairlead.engine.state.pod_index.pod_index import PodIndex

NAME: Final = "PodTopologySpread"
SPREAD_MISMATCH: Final = "node(s) didn't match pod topology spread constraints"

FITS: Final = 0
SKEWED: Final = 1
LABEL_MISSING: Final = 2
STATUSES: Final[tuple[Status, ...]] = (
    SUCCESS,
    # Removing pods from the domain may resolve this rejection.
    unschedulable(SPREAD_MISMATCH).by(NAME),
    # Removing pods does not give a node the missing label.
    unresolvable(f"{SPREAD_MISMATCH} (missing required label)").by(NAME),
)


class _HypotheticalSpread:
    """The counts of one constraint, updated for pods that a dry run adds or removes."""

    __slots__ = ("_counts", "_live", "_own")

    def __init__(self, live: ConstraintCounts, counts: HypotheticalCounts, own: int) -> None:
        self._live = live
        self._counts = counts
        self._own = own

    def clone(self) -> _HypotheticalSpread:
        return _HypotheticalSpread(self._live, self._counts.hypothetical(), self._own)

    @property
    def selector(self) -> LabelSelector | None:
        return self._live.constraint.selector

    def selects(self, pods: PodClass) -> bool:
        return selector_matches(self._live.constraint.selector, pods.labels)

    def move(self, row: int, by: int) -> None:
        domain = int(self._live.included[row])
        if domain >= 0:
            self._counts.change(domain, by)

    def code(self, row: int) -> int:
        domain = int(self._live.labels[row])
        if domain < 0:
            return LABEL_MISSING
        return SKEWED if self._counts.of(domain) > self._limit() else FITS

    def codes(self, rows: Rows) -> npt.NDArray[np.int32]:
        by_domain = (self._counts.by_domain() > self._limit()).astype(np.int32)
        by_domain[-1] = LABEL_MISSING
        return by_domain.take(self._live.labels.take(rows))

    def _limit(self) -> int:
        """Return the highest count at which a domain still accepts the pod."""
        constraint, present = self._live.constraint, self._live.present
        lowest = 0
        if len(present) >= max(constraint.min_domains, 1):
            lowest = self._counts.lowest(present)
        return constraint.max_skew - self._own + lowest


class SpreadState:
    """The data that PreFilter computes for hard constraints.

    The initial counts exclude terminating pods. If the selector of a constraint is empty, the
    initial counts of the constraint are 0. A pod that a dry run adds or removes changes the counts
    if its namespace and labels match. The counts change even if the pod is terminating or the
    selector is empty. As in upstream, a count can therefore become negative (filtering.go:
    updateWithPod).
    """

    __slots__ = ("_constraints", "_known", "_namespace")

    def __init__(
        self,
        namespace: str,
        constraints: list[_HypotheticalSpread],
        known: dict[PodClass, tuple[bool, ...]],
    ) -> None:
        """Use `spread_state` to create instances.

        A PodClass is the set of pods with the same namespace and labels. `known` caches for each
        PodClass whether each constraint selects its pods.
        """
        self._namespace = namespace
        self._constraints = constraints
        self._known = known

    def clone(self) -> SpreadState:
        """Return an independent copy."""
        constraints = [one.clone() for one in self._constraints]
        return SpreadState(self._namespace, constraints, self._known)

    def move(self, pods: PodClass, row: int, by: int) -> None:
        """Update the counts as if a pod were added to the node at `row`, or removed from it.

        `by` is 1 for an added pod and -1 for a removed pod. The pod has the class `pods`.
        """
        if pods.namespace != self._namespace:
            return
        for one, selects in zip(self._constraints, self._selecting(pods), strict=True):
            if selects:
                one.move(row, by)

    def concerns(self, pods: PodClass) -> bool:
        """Return whether adding or removing a pod of the class `pods` may change the counts."""
        return pods.namespace == self._namespace and any(self._selecting(pods))

    def concerned(self, index: PodIndex) -> list[PodClass]:
        """Return each PodClass in `index` for which `concerns` returns True."""
        found: dict[PodClass, None] = {}
        for one in self._constraints:
            candidates = index.candidates(one.selector)
            found |= dict.fromkeys(pods for pods in candidates if self.concerns(pods))
        return list(found)

    def _selecting(self, pods: PodClass) -> tuple[bool, ...]:
        """Return, for each constraint, whether it selects pods of the class `pods`."""
        selecting = self._known.get(pods)
        if selecting is None:
            selecting = tuple(one.selects(pods) for one in self._constraints)
            self._known[pods] = selecting
        return selecting

    def code(self, row: int) -> int:
        """Return the verdict on the node at `row`, as an index into STATUSES."""
        for one in self._constraints:
            code = one.code(row)
            if code != FITS:
                return code
        return FITS

    def codes(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the verdicts on the nodes at `rows`, as indexes into STATUSES."""
        first, *others = self._constraints
        codes = first.codes(rows)
        for one in others:
            codes = np.where(codes == FITS, one.codes(rows), codes)
        return codes


def spread_state(live: SpreadCounts, namespace: str, labels: Mapping[str, str]) -> SpreadState:
    """Return the state for a pod with `labels` in `namespace`; `live` must be up to date."""
    constraints = [
        _HypotheticalSpread(
            one, one.counts.hypothetical(), selector_matches(one.constraint.selector, labels)
        )
        for one in live.constraints
    ]
    return SpreadState(namespace, constraints, {})
