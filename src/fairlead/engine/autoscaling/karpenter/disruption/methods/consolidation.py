"""Consolidation: decides whether nodes can be removed, or replaced by one cheaper node.

    simulate a provisioning pass without the nodes
    all pods fit existing nodes             -> delete
    one new node would be needed            -> replace, if the new node is certainly cheaper
    more than one new node would be needed  -> nothing

The launch of a new node chooses one of several offerings. The new node is certainly cheaper if even
the most expensive of them costs less than the removed nodes together. Spot nodes are replaced by
spot nodes only if a feature gate is set. A spot node may replace a single spot node only if at
least 15 instance types are cheaper. This limit prevents an endless series of replacements.

upstream: pkg/controllers/disruption/consolidation.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from fairlead.api.well_known_label import INSTANCE_TYPE, ZONE
from fairlead.engine.autoscaling.karpenter.apis import (
    CONSOLIDATABLE,
    NEVER,
    WHEN_EMPTY_OR_UNDERUTILIZED,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    min_values_error,
    unmet_min_values,
)
from fairlead.engine.autoscaling.karpenter.disruption.budget import UNDERUTILIZED
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    VALIDATION_DELAY_NS,
    DelayedCommands,
    DisruptionContext,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.quick_rejection import (
    QuickRejection,
    RejectionMemory,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import KeepReason, SimulationResult
from fairlead.engine.autoscaling.karpenter.disruption.validation import validate
from fairlead.engine.autoscaling.karpenter.go_sort import go_sorted
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.state.consolidation_memory import (
    ConsolidationMemory,
)
from fairlead.engine.core.instant import Instant

SPOT_TO_SPOT_TYPES: Final = 15
_ONLY_SPOT: Final = LabelRequirement(CAPACITY_TYPE, values=frozenset((SPOT,)))
_NOT_CHEAPER: Final = "Can't replace with a cheaper node"
_SPOT_TO_SPOT_OFF: Final = (
    "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
)


def should_consolidate(candidate: DisruptionCandidate) -> str | bool:
    """Return True if consolidation applies to the candidate.

    Otherwise, returns upstream's reason, or False if upstream gives no reason. Does not simulate
    the removal of the candidate.
    """
    # upstream: consolidation.go:ShouldDisrupt
    pool, labels = candidate.pool, candidate.node.labels
    if pool.is_static:
        return False
    if candidate.instance_type is None:
        return f'Instance Type "{labels.get(INSTANCE_TYPE, "")}" not found'
    for label in (CAPACITY_TYPE, ZONE):
        if label not in labels:
            return f'Node does not have label "{label}"'
    if pool.spec.disruption.consolidate_after == NEVER:
        return f'NodePool "{pool.name}" has consolidation disabled'
    if pool.spec.disruption.consolidation_policy != WHEN_EMPTY_OR_UNDERUTILIZED:
        return f'NodePool "{pool.name}" has non-empty consolidation disabled'
    return candidate.claim.is_true(CONSOLIDATABLE)


def by_cost(candidates: Sequence[DisruptionCandidate]) -> list[DisruptionCandidate]:
    """Return the candidates by ascending disruption cost.

    Candidates of equal cost have the order in which Go's sort.Slice leaves them.
    """
    order = _order_by_cost(tuple(one.cost for one in candidates))
    return [candidates[index] for index in order]


@lru_cache(maxsize=8)
def _order_by_cost(costs: tuple[float, ...]) -> tuple[int, ...]:
    """Return the indexes of `costs`, ordered by cost as Go's sort orders them."""
    return tuple(go_sorted(list(range(len(costs))), list(costs)))


Reject = Callable[[DisruptionCommand, str], None]
Search = Callable[[Instant], tuple[DisruptionCommand | None, bool]]


class Consolidation:
    """Decides, for one consolidation method, whether to remove a set of candidates."""

    def __init__(
        self, context: DisruptionContext, memory: ConsolidationMemory, method: str
    ) -> None:
        """`method` is the name of the disruption method; its commands contain this name.

        `memory` records the methods whose searches found no command.
        """
        self._context = context
        self._memory = memory
        self._method = method
        self._rejections = RejectionMemory()
        self._search: QuickRejection | None = None  # None if no search is running

    def commands(
        self, search: Search, now: Instant, reject: Reject = lambda *_: None
    ) -> DelayedCommands:
        """Call `search`, yield the validation delay, return the command if it is still valid.

        `search` returns the command or None, and whether a budget excluded a candidate. If `search`
        returns no command, and no budget excluded a candidate, this method calls `search` again
        only after the cluster has changed or five minutes have passed. If the command is no longer
        valid, `reject(command, reason)` is called.
        """
        if self._memory.is_consolidated(self._method, now):
            return []
        self._search = self._new_search(now)
        command, is_constrained = search(now)
        self._search = None
        if command is None:
            if not is_constrained:
                self._memory.mark(self._method, now)
            return []
        now = yield VALIDATION_DELAY_NS
        problem = validate(self._context, command, should_consolidate, now)
        if problem is not None:
            reject(command, problem)
            return []
        return [command]

    def _new_search(self, now: Instant) -> QuickRejection:
        context = self._context
        return QuickRejection(context.cluster, context.provisioner, self._rejections, now)

    def reasons(
        self, candidates: Sequence[DisruptionCandidate], now: Instant
    ) -> dict[str, KeepReason]:
        """Return {node name: upstream's reason to keep the node now} for `candidates`.

        The result leaves out candidates that could be deleted or replaced on their own, and
        candidates that are already being removed. Raises NoNodePoolsError if no NodePool can create
        nodes for pods.
        """
        self._search = self._new_search(now)
        try:
            found = {one.name: self.compute((one,), now) for one in candidates}
        finally:
            self._search = None
        return {
            name: reason
            for name, reason in found.items()
            if reason and not isinstance(reason, DisruptionCommand)
        }

    def needs_several(self, candidates: Sequence[DisruptionCandidate], now: Instant) -> bool:
        """Return True only if the removal of all `candidates` certainly needs several new nodes."""
        return (self._search or self._new_search(now)).needs_several(candidates)

    def compute(
        self, candidates: Sequence[DisruptionCandidate], now: Instant
    ) -> DisruptionCommand | KeepReason:
        """Return the command that removes exactly `candidates`, or upstream's reason to keep them.

        The reason is "" if a candidate is already being removed.
        """
        rejection = (self._search or self._new_search(now)).reason(candidates, self._cheaper)
        if rejection is not None:
            return rejection
        context = self._context
        simulated = context.simulator.simulate(candidates, now, stops_early=True)
        if simulated is None:
            return ""
        reason = simulated.reason(candidates)
        if reason is not None:
            return reason
        if not simulated.requests:
            return self._command(candidates, (), simulated)
        if len(simulated.requests) > 1:
            return f"Can't remove without creating {len(simulated.requests)} candidates"
        chosen = self._cheaper(candidates, simulated.requests[0])
        if isinstance(chosen, str):
            return chosen
        return self._command(candidates, (chosen,), simulated)

    def _command(
        self,
        candidates: Sequence[DisruptionCandidate],
        replacements: tuple[NodeClaimRequest, ...],
        simulated: SimulationResult,
    ) -> DisruptionCommand:
        return DisruptionCommand(
            self._method, UNDERUTILIZED, tuple(candidates), replacements, simulated.placed
        )

    def _cheaper(
        self, candidates: Sequence[DisruptionCandidate], request: NodeClaimRequest
    ) -> NodeClaimRequest | str:
        """Return `request` with only the types that are cheaper than the candidates.

        If no such type remains, return upstream's reason instead.
        """
        price = total_price(candidates)
        capacity_types = request.requirements.get(CAPACITY_TYPE)
        if all(one.capacity_type == SPOT for one in candidates) and capacity_types.has(SPOT):
            return self._spot_to_spot(request, price, is_single=len(candidates) == 1)
        found = cheaper_than(request, price)
        if isinstance(found, str):
            return found
        if capacity_types.has(SPOT) and capacity_types.has(ON_DEMAND):
            # The price of spot was compared, so the launch must not fall back to on-demand.
            return replace(found, requirements=found.requirements.with_added((_ONLY_SPOT,)))
        return found

    def _spot_to_spot(
        self, request: NodeClaimRequest, price: float, *, is_single: bool
    ) -> NodeClaimRequest | str:
        # upstream: consolidation.go:computeSpotToSpotConsolidation
        if not self._context.options.spot_to_spot_consolidation:
            return _SPOT_TO_SPOT_OFF
        requirements = request.requirements.with_added((_ONLY_SPOT,))
        well_known = request.well_known
        types = tuple(
            one
            for one in request.instance_types
            if any(o.available for o in one.compatible_offerings(requirements, well_known))
        )
        found = cheaper_than(
            replace(request, requirements=requirements, instance_types=types), price
        )
        if isinstance(found, str) or not is_single:
            return found
        types = found.instance_types
        if len(types) < SPOT_TO_SPOT_TYPES:
            return (
                f"SpotToSpotConsolidation requires {SPOT_TO_SPOT_TYPES} cheaper instance type "
                f"options than the current candidate to consolidate, got {len(types)}"
            )
        needed = unmet_min_values(types, requirements)[0]
        return replace(found, instance_types=types[: max(SPOT_TO_SPOT_TYPES, needed)])


def cheaper_than(request: NodeClaimRequest, price: float) -> NodeClaimRequest | str:
    """Return `request` with only the types that certainly launch for less than `price`.

    If no type remains, or too few types for minValues, return upstream's reason instead.
    """
    # upstream: nodeclaim.go:RemoveInstanceTypeOptionsByPriceAndMinValues
    types = tuple(
        one
        for one in request.instance_types
        if one.worst_launch_price(request.requirements, request.well_known) < price
    )
    unmet = unmet_min_values(types, request.requirements)[1]
    if unmet:
        return f"Filtering by price: {min_values_error(unmet)}"
    return replace(request, instance_types=types) if types else _NOT_CHEAPER
