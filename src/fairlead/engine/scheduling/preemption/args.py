"""DefaultPreemptionArgs, CandidateSample: limits of the search for candidates.

upstream: apis/config/types_pluginargs.go, v1/defaults.go, validation/validation_pluginargs.go
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.text.field_problem import invalid

_PERCENTAGE_DEFAULT: Final = 10
_ABSOLUTE_DEFAULT: Final = 100
_BOTH_ZERO: Final = "cannot be zero at the same time as minCandidateNodesAbsolute"


class DefaultPreemptionArgs(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"
):
    """The plugin arguments of DefaultPreemption: when the search for candidates may stop.

    If neither field is set, every node is evaluated, whereas upstream uses its defaults for both
    fields. If a field is set, the search may stop when there are enough candidates. Enough means at
    least `min_candidate_nodes_percentage` percent of the potential nodes, and at least
    `min_candidate_nodes_absolute`. If only one field is set, the other field has upstream's
    default.
    """

    min_candidate_nodes_percentage: int | None = None
    min_candidate_nodes_absolute: int | None = None

    def __post_init__(self) -> None:
        """Validate the fields; raises ValueError that names the invalid field."""
        percentage, absolute = self._limits
        if not 0 <= percentage <= 100:
            problem = invalid(percentage, "not in valid range [0, 100]")
            raise ValueError(f"minCandidateNodesPercentage: {problem}")
        if absolute < 0:
            problem = invalid(absolute, "not in valid range [0, inf)")
            raise ValueError(f"minCandidateNodesAbsolute: {problem}")
        if not percentage and not absolute:
            raise ValueError(f"minCandidateNodesPercentage: {invalid(0, _BOTH_ZERO)}")

    @property
    def are_set(self) -> bool:
        """Whether any field is set; a search may then stop before it has tried every node."""
        limits = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute)
        return any(limit is not None for limit in limits)

    @property
    def _limits(self) -> tuple[int, int]:
        """The two fields (percentage, number), with upstream's default for a field that is None."""
        percentage, number = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        return (
            _PERCENTAGE_DEFAULT if percentage is None else percentage,
            _ABSOLUTE_DEFAULT if number is None else number,
        )

    def wanted(self, nodes: int) -> int:
        """Return the number of candidates after which a search of `nodes` potential nodes may stop.

        upstream: default_preemption.go: calculateNumCandidates
        """
        percentage, absolute = self._limits
        return min(max(nodes * percentage // 100, absolute), nodes)


class CandidateSample(msgspec.Struct, frozen=True):
    """The limits of a search for candidates, which starts at index `offset` of the potential nodes.

    The search ends when it has found `wanted` candidates and at least one of them violates no
    disruption budget.

    upstream: framework/preemption/preemption.go: DryRunPreemption
    """

    offset: int
    wanted: int
