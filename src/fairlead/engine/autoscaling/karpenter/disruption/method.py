"""The protocol of the disruption methods, and the context that they share.

upstream: pkg/controllers/disruption/types.go:Method
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    Candidates,
    DisruptionCandidate,
    DisruptionClass,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.simulation import KeepReason, Simulator
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.instant import DurationNs, Instant, seconds

VALIDATION_DELAY_NS: Final[DurationNs] = seconds(15)

DelayedCommands = Generator[DurationNs, Instant, list[DisruptionCommand]]
"""A generator that yields ns to wait, is resumed with the current time, and returns commands."""


class DisruptionContext(Struct):
    """The state that all methods share: cluster, candidates, and the simulator of removals.

    `rejected` collects (node, reason) for the candidates of commands that failed validation.
    `notes` contains the reasons why nodes cannot be disrupted. The key of a reason is the name of
    the NodeClaim if the method is drift. For all other methods, it is the name of the node.
    """

    cluster: KarpenterCluster
    provisioner: Provisioner
    simulator: Simulator
    candidates: Candidates
    options: KarpenterOptions
    rejected: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, KeepReason] = field(default_factory=dict)


class DisruptionMethod(Protocol):
    """A method that selects nodes to disrupt, such as drift or emptiness."""

    name: str
    reason: str
    disruption_class: DisruptionClass

    def should_disrupt(self, candidate: DisruptionCandidate) -> str | bool:
        """Return True if the method applies to the candidate.

        Otherwise, returns upstream's reason, or False if upstream gives no reason.
        """
        ...

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Yield the time in ns to wait before validation, then return the validated commands.

        `allowed` maps each NodePool to the number of its nodes that may be disrupted within
        budgets. The method may lower these numbers.
        """
        ...
