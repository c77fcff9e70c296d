"""StaticDrift: replaces each drifted node of a static NodePool with one new node.

upstream: pkg/controllers/disruption/staticdrift.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import static_request
from fairlead.engine.autoscaling.karpenter.state.pool_count import node_limit, pool_count
from fairlead.engine.core.instant import Instant


class StaticDrift:
    """Replaces as many drifted nodes as budgets and node limits allow, one node per command."""

    name = "staticDrift"
    reason = DRIFTED
    disruption_class = DisruptionClass.EVENTUAL

    def __init__(self, context: DisruptionContext, pending: Callable[[], frozenset[str]]) -> None:
        """`pending` returns the names of the NodeClaims that are already being replaced."""
        self._context = context
        self._pending = pending

    def should_disrupt(self, candidate: DisruptionCandidate) -> bool:
        """Return whether the candidate's NodeClaim has drifted and its pool is static."""
        return candidate.pool.is_static and candidate.claim.is_true(DRIFTED_CONDITION)

    def compute(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> list[DisruptionCommand]:
        """Return the commands for all static pools, ordered by the pools' names."""
        found: list[DisruptionCommand] = []
        for name in sorted({one.pool.name for one in candidates}):
            mine = [one for one in candidates if one.pool.name == name]
            found += self._of_pool(mine, allowed.get(name, 0), now)
        return found

    def _of_pool(
        self, candidates: Sequence[DisruptionCandidate], allowed: int, now: Instant
    ) -> list[DisruptionCommand]:
        pool = candidates[0].pool
        count = pool_count(self._context.cluster, pool, self._pending(), now)
        # Nodes are not disrupted before the pool has been scaled down.
        if count.active + count.pending_disruption > (pool.spec.replicas or 0):
            return []
        number = min(allowed, len(candidates))
        limit = node_limit(pool)
        if limit is not None:
            room = limit - count.active - count.deleting - count.pending_disruption
            number = min(number, max(0, room))
        replacement = static_request(pool, self._context.options.well_known_labels)
        return [
            DisruptionCommand(self.name, self.reason, (one,), (replacement,))
            for one in candidates[:number]
        ]

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Return a generator that returns the result of `compute` and yields no waiting times."""
        yield from ()
        return self.compute(candidates, allowed, now)
