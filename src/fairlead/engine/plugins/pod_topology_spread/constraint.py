"""Constraint: one compiled topology spread constraint. The module also has the plugin's arguments.

upstream: plugins/podtopologyspread/common.go: filterTopologySpreadConstraints
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.label import label_key_problems
from fairlead.api.objects import LabelSelector, LabelSelectorRequirement, TopologySpreadConstraint
from fairlead.api.text.field_problem import duplicate, forbidden, invalid, not_supported, required
from fairlead.api.well_known_label import HOSTNAME, ZONE

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
SYSTEM: Final = "System"
LIST: Final = "List"
_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_POSITIVE: Final = "not in valid range (0, inf)"
_EMPTY: Final = "can not be empty"

# Constraints for pods that have none (plugin.go: systemDefaultConstraints). They only affect scores
# and never reject a node.
SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)


class Constraint(Struct, frozen=True, eq=False):
    """One topology spread constraint."""

    # The number of matching pods in a domain may exceed the lowest number of all domains by at most
    # this number.
    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int = 1  # with fewer domains, the lowest number counts as 0
    honors_affinity: bool = True  # whether nodes that the pod's node affinity excludes do not count
    honors_taints: bool = False  # whether nodes with untolerated taints do not count

    @property
    def counts_existing(self) -> bool:
        """Whether placed pods are counted: False if the selector is missing or empty.

        upstream: common.go: countPodsMatchSelector
        """
        return self.selector is not None and self.selector != LabelSelector()


def compile_constraint(
    constraint: TopologySpreadConstraint, selector: LabelSelector | None
) -> Constraint:
    """Compile `constraint` with `selector` instead of the constraint's own selector."""
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, HONOR),
        honors_taints=constraint.node_taints_policy == HONOR,
    )


def own_constraints(
    constraints: Iterable[TopologySpreadConstraint], action: str, labels: Mapping[str, str]
) -> tuple[Constraint, ...]:
    """Return the constraints in `constraints` whose whenUnsatisfiable is `action`.

    The constraints are compiled for a pod whose labels are `labels`.
    """
    return tuple(
        compile_constraint(one, with_label_keys(one, labels))
        for one in constraints
        if one.when_unsatisfiable == action
    )


def with_label_keys(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> LabelSelector | None:
    """Return the constraint's selector plus one requirement for each key in matchLabelKeys.

    The requirement demands the value that the key has in `labels`, the labels of the incoming pod.
    A key that `labels` lacks adds no requirement. Newer API servers have already added the
    requirements to the selector. Adding them again does not change which pods the selector matches.
    If the selector is None, it matches no pods, and is returned unchanged (common.go:
    mergeLabelSetWithSelector).
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


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """One entry of defaultConstraints; `DefaultSelectors` derives its selector for each pod."""


class PodTopologySpreadArgs(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    """The plugin arguments of PodTopologySpread: constraints for pods whose spec has none.

    The constraints are upstream's defaults or `default_constraints`, depending on
    `defaulting_type`.

    upstream: apis/config/types_pluginargs.go, validation/validation_pluginargs.go
    """

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    def __post_init__(self) -> None:
        problem = next(self._problems(), None)
        if problem is not None:
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        if self.defaulting_type not in (SYSTEM, LIST):
            yield f"defaultingType: {not_supported(self.defaulting_type, (SYSTEM, LIST))}"
        if self.defaulting_type == SYSTEM and self.default_constraints:
            problem = invalid(SYSTEM, "when .defaultConstraints are not empty")
            yield f"defaultingType: {problem}"
        seen: dict[tuple[str, str], None] = {}
        for index, constraint in enumerate(self.default_constraints):
            for problem in _constraint_problems(constraint):
                yield f"defaultConstraints[{index}].{problem}"
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                repeated = duplicate(f"{{{pair[0]}, {pair[1]}}}")
                yield f"defaultConstraints[{index}]: {repeated}"
            seen[pair] = None

    @property
    def constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        """The default constraints, which apply to pods that have none of their own."""
        return SYSTEM_CONSTRAINTS if self.defaulting_type == SYSTEM else self.default_constraints


def _constraint_problems(constraint: DefaultConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: {invalid(constraint.max_skew, _POSITIVE)}"
    if constraint.min_domains is not None and constraint.min_domains <= 0:
        yield f"minDomains: {invalid(constraint.min_domains, _POSITIVE)}"
    if not constraint.topology_key:
        yield f"topologyKey: {required(_EMPTY)}"
    for problem in label_key_problems(constraint.topology_key):
        yield f"topologyKey: {invalid(constraint.topology_key, problem)}"
    if not constraint.when_unsatisfiable:
        yield f"whenUnsatisfiable: {required(_EMPTY)}"
    elif constraint.when_unsatisfiable not in _ACTIONS:
        yield f"whenUnsatisfiable: {not_supported(constraint.when_unsatisfiable, _ACTIONS)}"
    if constraint.label_selector is not None:
        why = "constraint must not define a selector, as they deduced for each pod"
        yield f"labelSelector: {forbidden(why)}"
