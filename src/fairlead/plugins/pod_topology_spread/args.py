"""PodTopologySpreadArgs (apis/config/types_pluginargs.go, validation/validation_pluginargs.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairlead.api.label import label_key_problems
from fairlead.api.objects import TopologySpreadConstraint
from fairlead.plugins.pod_topology_spread.constraint import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY

SYSTEM: Final = "System"
LIST: Final = "List"

# What pods without constraints get (plugin.go: systemDefaultConstraints): nodes matter less than
# zones, and neither ever keeps a pod from running.
SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(
        topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3
    ),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """One entry of defaultConstraints; the selector is deduced for each pod."""


class PodTopologySpreadArgs(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    """Constraints for pods that have none: the system's, or those listed."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        problem = next(self._problems(), None)
        if problem is not None:
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        if self.defaulting_type not in (SYSTEM, LIST):
            yield f"defaultingType: {self.defaulting_type!r} is not one of {LIST}, {SYSTEM}"
        if self.defaulting_type == SYSTEM and self.default_constraints:
            yield f"defaultingType: {SYSTEM} goes with empty defaultConstraints only"
        seen: dict[tuple[str, str], None] = {}
        for index, constraint in enumerate(self.default_constraints):
            for problem in _constraint_problems(constraint):
                yield f"defaultConstraints[{index}].{problem}"
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield f"defaultConstraints[{index}]: repeats {pair[0]}, {pair[1]}"
            seen[pair] = None

    @property
    def constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        """What pods without constraints get."""
        return SYSTEM_CONSTRAINTS if self.defaulting_type == SYSTEM else self.default_constraints


def _constraint_problems(constraint: DefaultConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: {constraint.max_skew} is not greater than 0"
    if constraint.min_domains is not None and constraint.min_domains <= 0:
        yield f"minDomains: {constraint.min_domains} is not greater than 0"
    for problem in label_key_problems(constraint.topology_key):
        yield f"topologyKey: {problem}"
    actions = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
    if constraint.when_unsatisfiable not in actions:
        known = ", ".join(actions)
        yield f"whenUnsatisfiable: {constraint.when_unsatisfiable!r} is not one of {known}"
    if constraint.label_selector is not None:
        yield "labelSelector: must not be set, it is deduced for each pod"
