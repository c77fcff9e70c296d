"""Constraint: one topology spread constraint, compiled.

upstream: plugins/podtopologyspread/common.go: filterTopologySpreadConstraints
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    TopologySpreadConstraint,
)

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Pods that match `selector` may differ by at most `max_skew` between domains of the key.

    With fewer than `min_domains` domains the lowest count is taken as 0. Nodes excluded by the
    pod's node affinity (`honors_affinity`) or by taints (`honors_taints`) do not count.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    @property
    def counts_existing(self) -> bool:
        """True if placed pods count: an empty selector, which matches all, counts none.

        upstream: common.go: countPodsMatchSelector
        """
        return self.selector is not None and self.selector != LabelSelector()


def compile_constraint(
    constraint: TopologySpreadConstraint, selector: LabelSelector | None
) -> Constraint:
    """`constraint` with `selector` in place of its own."""
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy == HONOR,
        honors_taints=constraint.node_taints_policy == HONOR,
    )


def own_constraints(
    constraints: Iterable[TopologySpreadConstraint], action: str, labels: Mapping[str, str]
) -> tuple[Constraint, ...]:
    """The constraints of a pod with `labels` whose whenUnsatisfiable is `action`."""
    return tuple(
        compile_constraint(one, with_label_keys(one, labels))
        for one in constraints
        if one.when_unsatisfiable == action
    )


def with_label_keys(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys added.

    Newer API servers store the merged selector already; adding the values twice changes nothing. A
    selector that matches nothing is unchanged (common.go: mergeLabelSetWithSelector).
    """
    selector, keys = constraint.label_selector, constraint.match_label_keys
    if selector is None or not keys:
        return selector
    own = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in keys
        if key in labels
    )
    return LabelSelector(
        match_labels=selector.match_labels,
        match_expressions=selector.match_expressions + own,
    )
