"""DisruptionCommand: nodes to remove, and the NodeClaims that replace them.

upstream: pkg/controllers/disruption/types.go:Command
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import ExistingNode


class DisruptionCommand(Struct, frozen=True):
    """The decision of a disruption method to remove `candidates` and create `replacements`.

    `placed` are the existing nodes on which the simulation placed pods.
    """

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
        """The hourly price of the candidates minus the price of the replacements.

        The price of a replacement is the lowest price of its first instance type.
        """
        # upstream: types.go:Command.EstimatedSavings
        saved = total_price(self.candidates)
        for one in self.replacements:
            offerings = one.instance_types[0].offerings if one.instance_types else ()
            saved -= min((offering.price for offering in offerings), default=0.0)
        return saved
