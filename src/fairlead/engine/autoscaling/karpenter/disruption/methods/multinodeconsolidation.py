"""MultiNodeConsolidation: removes several nodes with one command, and adds at most one node.

The candidates are ordered by cost. A binary search looks for a long prefix of this order that can
be consolidated. The result is the last prefix found, which need not be the longest.

upstream: pkg/controllers/disruption/multinodeconsolidation.go
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import NO_PRICE
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
    cheaper_than,
    should_consolidate,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.state.consolidation_memory import (
    ConsolidationMemory,
)
from fairlead.engine.core.instant import Instant

_BATCH_MAX: Final = 100


class MultiNodeConsolidation:
    """Removes several of the cheapest candidates with one command."""

    name = "multi"
    reason = UNDERUTILIZED
    disruption_class = DisruptionClass.GRACEFUL

    def __init__(self, context: DisruptionContext, memory: ConsolidationMemory) -> None:
        """`memory` records which methods found no command since the cluster last changed."""
        self._consolidation = Consolidation(context, memory, self.name)

    def should_disrupt(self, candidate: DisruptionCandidate) -> str | bool:
        """Return True if consolidation applies to `candidate`.

        Otherwise, returns upstream's reason, or False if upstream gives no reason.
        """
        return should_consolidate(candidate)

    def batch(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int]
    ) -> tuple[list[DisruptionCandidate], bool]:
        """Return the candidates to search, and whether a budget excluded a candidate.

        The candidates to search have pods, are within the budgets, and are sorted by cost.
        """
        found: list[DisruptionCandidate] = []
        is_constrained = False
        for one in by_cost(candidates):
            if allowed[one.pool.name] == 0:
                is_constrained = True
            elif one.pods:
                allowed[one.pool.name] -= 1
                found.append(one)
        return found, is_constrained

    def prefix(
        self, candidates: Sequence[DisruptionCandidate], now: Instant
    ) -> DisruptionCommand | None:
        """Return the command that removes exactly `candidates`.

        Returns None if the removal is not worthwhile.
        """
        if self._consolidation.needs_several(candidates, now):
            return None
        command = self._consolidation.compute(candidates, now)
        if not isinstance(command, DisruptionCommand):
            return None
        if not command.replacements:
            return command
        kept = _without_same_type(command.replacements[0], candidates)
        return replace(command, replacements=(kept,)) if kept is not None else None

    def search(
        self, batch: Sequence[DisruptionCandidate], now: Instant
    ) -> DisruptionCommand | None:
        """Return the last command that a binary search over the prefixes of `batch` finds.

        Returns None if no prefix leads to a command. A prefix has at least two candidates.
        """
        # upstream: multinodeconsolidation.go:firstNConsolidationOption
        low, high = 1, min(len(batch) - 1, _BATCH_MAX)
        found: DisruptionCommand | None = None
        while low <= high:
            middle = (low + high) // 2
            command = self.prefix(batch[: middle + 1], now)
            if command is None:
                high = middle - 1
            else:
                found = command
                low = middle + 1
        return found

    def commands(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> DelayedCommands:
        """Find a command, yield the validation delay, return the command if it is still valid."""
        return self._consolidation.commands(partial(self.find, candidates, allowed), now)

    def find(
        self, candidates: Sequence[DisruptionCandidate], allowed: dict[str, int], now: Instant
    ) -> tuple[DisruptionCommand | None, bool]:
        """Return the command found or None, and whether a budget excluded a candidate."""
        batch, is_constrained = self.batch(candidates, allowed)
        return self.search(batch, now), is_constrained


def _without_same_type(
    request: NodeClaimRequest, candidates: Sequence[DisruptionCandidate]
) -> NodeClaimRequest | None:
    """Return `request` with only the types that make a replacement worthwhile.

    Consider the cheapest candidate whose type is also in `request`. Only types that certainly
    launch for less than the price of this candidate are kept. With any other type, the replacement
    might save no more money than keeping this candidate and deleting the others. Example: replacing
    [large, large, small] with a small node is the same as deleting the two large nodes. Returns
    None if no type remains, or too few types for minValues.
    """
    # upstream: multinodeconsolidation.go:filterOutSameInstanceType
    prices: dict[str, float] = {}
    for one in candidates:
        if one.instance_type is not None and one.price is not None:
            name = one.instance_type.name
            prices[name] = min(one.price, prices.get(name, NO_PRICE))
    removed = {one.instance_type.name for one in candidates if one.instance_type is not None}
    names = [one.name for one in request.instance_types if one.name in removed]
    limit = min((prices.get(name, 0.0) for name in names), default=NO_PRICE)
    found = cheaper_than(request, limit)
    return None if isinstance(found, str) else found
