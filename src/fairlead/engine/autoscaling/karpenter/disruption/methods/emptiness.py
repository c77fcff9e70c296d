"""Emptiness: removes nodes that have no pods to reschedule.

upstream: pkg/controllers/disruption/emptiness.go
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.autoscaling.karpenter.apis import CONSOLIDATABLE, NEVER
from fairlead.engine.autoscaling.karpenter.disruption.budget import EMPTY
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    DisruptionClass,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    VALIDATION_DELAY_NS,
    DelayedCommands,
    DisruptionContext,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.consolidation import by_cost
from fairlead.engine.autoscaling.karpenter.disruption.validation import validate_empty
from fairlead.engine.autoscaling.karpenter.state.consolidation_memory import (
    ConsolidationMemory,
)
from fairlead.engine.core.instant import Instant


class Emptiness:
    """Removes all empty nodes that budgets allow, in one command."""

    name = "emptiness"
    reason = EMPTY
    disruption_class = DisruptionClass.GRACEFUL

    def __init__(self, context: DisruptionContext, memory: ConsolidationMemory) -> None:
        """`memory` records which methods found no command since the cluster last changed."""
        self._context = context
        self._memory = memory

    def should_disrupt(self, candidate: DisruptionCandidate) -> str | bool:
        """Return True if the node is empty and Consolidatable.

        Otherwise, returns upstream's reason, or False if upstream gives no reason. The
        consolidation policy of the NodePool does not matter.
        """
        pool = candidate.pool
        if pool.is_static:
            return False
        if pool.spec.disruption.consolidate_after == NEVER:
            return f'NodePool "{pool.name}" has consolidation disabled'
        return not candidate.pods and candidate.claim.is_true(CONSOLIDATABLE)

    def compute(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int]
    ) -> tuple[DisruptionCommand | None, bool]:
        """Return the command or None, and whether a budget excluded an empty node.

        The command is None if no empty node may be removed.
        """
        empty: list[DisruptionCandidate] = []
        is_constrained = False
        for one in by_cost(candidates):
            if one.pods:
                continue
            if allowed[one.pool.name] == 0:
                is_constrained = True
                continue
            allowed[one.pool.name] -= 1
            empty.append(one)
        if not empty:
            return None, is_constrained
        return DisruptionCommand(self.name, self.reason, tuple(empty)), is_constrained

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Yield the validation delay, then return the command for nodes that are still empty."""
        if self._memory.is_consolidated(self.name, now):
            return []
        command, is_constrained = self.compute(candidates, allowed)
        if command is None:
            if not is_constrained:
                self._memory.mark(self.name, now)
            return []
        now = yield VALIDATION_DELAY_NS
        valid = validate_empty(self._context, command, self.should_disrupt, now)
        return [] if valid is None else [valid]
