"""Drift: replaces nodes that no longer match their NodePool.

upstream: pkg/controllers/disruption/drift.go
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.autoscaling.karpenter.apis import DRIFTED as DRIFTED_CONDITION
from fairlead.engine.autoscaling.karpenter.disruption.budget import DRIFTED
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    DisruptionClass,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    DelayedCommands,
    DisruptionContext,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import NoNodePoolsError
from fairlead.engine.autoscaling.karpenter.go_sort import go_sorted
from fairlead.engine.core.instant import Instant


class Drift:
    """Disrupts one drifted node at a time, without comparing prices and without validation."""

    name = "drift"
    reason = DRIFTED
    disruption_class = DisruptionClass.EVENTUAL

    def __init__(self, context: DisruptionContext) -> None:
        self._context = context

    def should_disrupt(self, candidate: DisruptionCandidate) -> bool:
        """Return whether the NodeClaim has drifted and its pool is not static."""
        return not candidate.pool.is_static and candidate.claim.is_true(DRIFTED_CONDITION)

    def compute(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> list[DisruptionCommand]:
        """Return a list with the command for the first node that can be replaced, or [].

        A node can be replaced if the budgets allow its disruption and its pods fit existing or new
        nodes. Empty nodes are tried before nodes with pods. In both groups, the node that drifted
        first is tried first.
        """
        ordered = go_sorted(list(candidates), [_drifted_at(one) for one in candidates])
        for one in sorted(ordered, key=lambda one: bool(one.pods)):
            if allowed[one.pool.name] == 0:
                continue
            context = self._context
            simulated = context.simulator.simulate((one,), now, stops_early=True)
            if simulated is None:
                continue
            reason = simulated.reason((one,))
            if reason is not None:
                context.notes[one.claim.name] = reason
                continue
            return [
                DisruptionCommand(
                    self.name, self.reason, (one,), simulated.requests, simulated.placed
                )
            ]
        return []

    def obstacle(self, candidate: DisruptionCandidate, now: Instant) -> str | None:
        """Return why the pods of `candidate` fit no other node; None if `candidate` can go now."""
        try:
            simulated = self._context.simulator.simulate((candidate,), now, stops_early=True)
        except NoNodePoolsError as error:
            return str(error)
        return None if simulated is None else simulated.problem() or None

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Return a generator that never waits; its return value is the result of `compute`."""
        yield from ()
        return self.compute(candidates, allowed, now)


def _drifted_at(candidate: DisruptionCandidate) -> str:
    found = candidate.claim.condition(DRIFTED_CONDITION)
    return found.last_transition_time if found is not None else ""
