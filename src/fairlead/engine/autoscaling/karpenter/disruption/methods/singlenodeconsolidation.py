"""SingleNodeConsolidation: removes one node, or replaces it with a cheaper node.

The candidates of each NodePool are sorted by cost. First, the first candidate of each NodePool is
examined, then the second candidate of each NodePool, and so on. So no NodePool has to wait until
all candidates of another NodePool have been examined.

upstream: pkg/controllers/disruption/singlenodeconsolidation.go
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from fairlead.engine.autoscaling.karpenter.disruption.budget import UNDERUTILIZED
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    DisruptionClass,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    DelayedCommands,
    DisruptionContext,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.consolidation import (
    Consolidation,
    by_cost,
    should_consolidate,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import KeepReason, NoNodePoolsError
from fairlead.engine.autoscaling.karpenter.state.consolidation_memory import (
    ConsolidationMemory,
)
from fairlead.engine.core.instant import Instant


class SingleNodeConsolidation:
    """Removes or replaces the first candidate for which that is possible."""

    name = "single"
    reason = UNDERUTILIZED
    disruption_class = DisruptionClass.GRACEFUL

    def __init__(self, context: DisruptionContext, memory: ConsolidationMemory) -> None:
        """`memory` records which methods found no command since the cluster last changed."""
        self._context = context
        self._consolidation = Consolidation(context, memory, self.name)

    def should_disrupt(self, candidate: DisruptionCandidate) -> str | bool:
        """Return True if consolidation applies to `candidate`.

        Otherwise, returns upstream's reason, or False if upstream gives no reason.
        """
        return should_consolidate(candidate)

    def order(self, candidates: Sequence[DisruptionCandidate]) -> list[DisruptionCandidate]:
        """Return the candidates by cost, alternating between NodePools.

        The pools are sorted by name; in upstream their order is random.
        """
        by_pool: dict[str, list[DisruptionCandidate]] = {}
        for one in by_cost(candidates):
            by_pool.setdefault(one.pool.name, []).append(one)
        rounds = zip_longest(*(by_pool[name] for name in sorted(by_pool)))
        return [one for one_round in rounds for one in one_round if one is not None]

    def decide(
        self, candidate: DisruptionCandidate, now: Instant
    ) -> DisruptionCommand | KeepReason:
        """Return the command that removes `candidate`, or upstream's reason to keep it.

        The reason is "" if no NodePool is usable, or if `candidate` is already being removed.
        """
        # upstream: singlenodeconsolidation.go:ComputeCommands, which logs errors and continues
        try:
            return self._consolidation.compute((candidate,), now)
        except NoNodePoolsError:
            return ""

    def reasons(
        self, candidates: Sequence[DisruptionCandidate], now: Instant
    ) -> dict[str, KeepReason]:
        """Return {node name: upstream's reason to keep the node now} for `candidates`.

        The result leaves out candidates without pods, and the candidates that
        `Consolidation.reasons` leaves out. The result is empty if no NodePool is usable.
        """
        try:
            return self._consolidation.reasons([one for one in candidates if one.pods], now)
        except NoNodePoolsError:
            return {}

    def first(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> tuple[DisruptionCommand | None, bool]:
        """Return the first command found or None, and whether a budget excluded a candidate."""
        is_constrained = False
        for one in self.order(candidates):
            if allowed[one.pool.name] == 0:
                is_constrained = True
            elif one.pods:
                command = self.decide(one, now)
                if isinstance(command, DisruptionCommand):
                    return command, is_constrained
                if command:
                    self._context.notes[one.name] = command
        return None, is_constrained

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Find a command, yield the validation delay, return the command if it is still valid."""
        search = partial(self.first, candidates, allowed)
        return self._consolidation.commands(search, now, self._reject)

    def _reject(self, command: DisruptionCommand, problem: str) -> None:
        self._context.rejected += [(one.name, problem) for one in command.candidates]
