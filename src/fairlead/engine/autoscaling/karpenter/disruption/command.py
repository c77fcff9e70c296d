"""DisruptionCommand: nodes to remove, and the NodeClaims that replace them.

upstream: pkg/controllers/disruption/types.go:Command
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import ExistingNode


@dataclass(frozen=True, slots=True)
class DisruptionCommand:
    """The decision of a method; `placed` are the nodes that take the pods."""

    method: str
    reason: str
    candidates: tuple[DisruptionCandidate, ...]
    replacements: tuple[NodeClaimRequest, ...] = ()
    placed: tuple[ExistingNode, ...] = ()

    @property
    def decision(self) -> str:
        """`delete` or `replace`, as text."""
        return "replace" if self.replacements else "delete"

    @property
    def savings(self) -> float:
        """The price of the candidates, less that of each replacement's first option."""
        # upstream: types.go:Command.EstimatedSavings
        saved = total_price(self.candidates)
        for one in self.replacements:
            offerings = one.instance_types[0].offerings if one.instance_types else ()
            saved -= min((offering.price for offering in offerings), default=0.0)
        return saved
