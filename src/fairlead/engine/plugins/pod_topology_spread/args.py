"""PodTopologySpreadArgs (apis/config/types_pluginargs.go, validation/validation_pluginargs.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairlead.api.label import label_key_problems
from fairlead.api.objects import TopologySpreadConstraint
from fairlead.api.text.field_problem import duplicate, forbidden, invalid, not_supported
from fairlead.engine.plugins.pod_topology_spread.constraint import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY

SYSTEM: Final = "System"
LIST: Final = "List"
_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_POSITIVE: Final = "not in valid range (0, inf)"

# Constraints of pods without their own (plugin.go: systemDefaultConstraints). Nodes weigh less than
# zones, and neither constraint ever rejects a node.
SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(
        topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3
    ),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """One entry of defaultConstraints; the selector is derived for each pod."""


class PodTopologySpreadArgs(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    """Constraints for pods without their own: the system's, or those listed."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        problem = next(self._problems(), None)
        if problem is not None:
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        if self.defaulting_type not in (SYSTEM, LIST):
            yield f"defaultingType: {not_supported(self.defaulting_type, (LIST, SYSTEM))}"
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
        """The constraints of pods without their own."""
        return SYSTEM_CONSTRAINTS if self.defaulting_type == SYSTEM else self.default_constraints


def _constraint_problems(constraint: DefaultConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: {invalid(constraint.max_skew, _POSITIVE)}"
    if constraint.min_domains is not None and constraint.min_domains <= 0:
        yield f"minDomains: {invalid(constraint.min_domains, _POSITIVE)}"
    for problem in label_key_problems(constraint.topology_key):
        yield f"topologyKey: {invalid(constraint.topology_key, problem)}"
    if constraint.when_unsatisfiable not in _ACTIONS:
        yield f"whenUnsatisfiable: {not_supported(constraint.when_unsatisfiable, _ACTIONS)}"
    if constraint.label_selector is not None:
        why = "constraint must not define a selector, as they deduced for each pod"
        yield f"labelSelector: {forbidden(why)}"
