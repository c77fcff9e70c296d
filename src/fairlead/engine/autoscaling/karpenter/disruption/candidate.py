"""DisruptionCandidate: a node that may be disrupted, with the cost of its disruption.

upstream: pkg/controllers/disruption/types.go:NewCandidate, pkg/utils/disruption/disruption.go
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.karpenter.apis import (
    NodeClaim,
    NodePool,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.eviction_cost import lifetime_remaining
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, NODE_POOL
from fairlead.engine.autoscaling.karpenter.pdb import PodBudgets
from fairlead.engine.autoscaling.karpenter.pod import is_disruptable
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.instant import Instant


class DisruptionClass(StrEnum):
    """The class of a disruption: whether pods can block it.

    Pods can block a GRACEFUL disruption. Pods cannot block an EVENTUAL disruption if the NodeClaim
    has a termination grace period.
    """

    GRACEFUL = "graceful"
    EVENTUAL = "eventual"


class DisruptionCandidate(Struct, frozen=True):
    """A node that may be disrupted, its pool and instance type, and the cost of the disruption.

    `pods` are the pods that would be rescheduled. `instance_type` is None if the provider no longer
    has the node's type. `price` is the hourly price of the node. `price` is None if no offering
    matches the node's labels.
    """

    node: StateNode
    claim: NodeClaim
    pool: NodePool
    instance_type: InstanceType | None
    pods: tuple[Pod, ...]
    cost: float
    price: float | None

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name

    @property
    def capacity_type(self) -> str:
        """The capacity type in the node's labels; "" if the node has no such label."""
        return self.node.labels.get(CAPACITY_TYPE, "")


TypesOfPool = Callable[[NodePool], InstanceTypeTable]
ShouldDisrupt = Callable[[DisruptionCandidate], str | bool]
"""Returns True if a method applies to a candidate, otherwise False or upstream's reason."""


_Found = tuple[list[DisruptionCandidate], dict[str, str]]
_Inputs = tuple[int, Instant, frozenset[str], list[InstanceTypeTable]]


class Candidates:
    """Finds the nodes that may be disrupted now."""

    def __init__(
        self,
        cluster: KarpenterCluster,
        types_of: TypesOfPool,
        queued: Collection[str],
        well_known: frozenset[str],
    ) -> None:
        """`queued` are the keys of the nodes that a command is already disrupting.

        `types_of` returns the instance types of a NodePool.
        """
        self._cluster = cluster
        self._types_of = types_of
        self._queued = queued
        self._well_known = well_known
        self._built: dict[str, DisruptionCandidate] = {}  # the last candidate built for each node
        self._last: dict[DisruptionClass, tuple[_Inputs, _Found]] = {}

    def all(self, disruption_class: DisruptionClass, now: Instant) -> _Found:
        """Return the candidates sorted by name, and why each other node is not a candidate."""
        pools = self._cluster.node_pools.values()
        inputs = (
            self._cluster.version,
            now,
            frozenset(self._queued),
            [self._types_of(pool) for pool in pools],
        )
        known = self._last.get(disruption_class)
        if known is None or known[0] != inputs:
            known = self._last[disruption_class] = inputs, self._all(disruption_class, now)
        return known[1]

    def _all(self, disruption_class: DisruptionClass, now: Instant) -> _Found:
        budgets = self._cluster.pod_budgets
        found: list[DisruptionCandidate] = []
        blocked: dict[str, str] = {}
        for node in sorted(self._cluster.nodes(now), key=lambda one: one.name):
            one = self._candidate(node, budgets, disruption_class, now)
            if isinstance(one, str):
                blocked[node.name] = one
            else:
                found.append(one)
        self._built = {one.node.key: one for one in found}
        return found, blocked

    def of(
        self, disruption_class: DisruptionClass, should_disrupt: ShouldDisrupt, now: Instant
    ) -> list[DisruptionCandidate]:
        """Return the candidates that `should_disrupt` accepts, sorted by name."""
        candidates = self.all(disruption_class, now)[0]
        return [one for one in candidates if should_disrupt(one) is True]

    def _candidate(
        self,
        node: StateNode,
        budgets: PodBudgets,
        disruption_class: DisruptionClass,
        now: Instant,
    ) -> DisruptionCandidate | str:
        problem = self._node_problem(node)
        claim = node.claim
        if problem is not None or claim is None:
            return problem or "node isn't managed by karpenter"
        pool = self._cluster.node_pools.get(node.node_pool)
        if not node.node_pool:
            return f"node doesn't have required label (label={NODE_POOL})"
        if pool is None or not self._types_of(pool).types:
            return f"nodepool not found (NodePool={node.node_pool})"
        on_node = self._cluster.pods_on(node.node_name)
        blocking = self._blocking_pod(on_node, budgets, now)
        has_grace_period = claim.spec.termination_grace_period is not None
        if blocking and not (disruption_class is DisruptionClass.EVENTUAL and has_grace_period):
            return blocking
        table = self._types_of(pool)
        index = table.index.get(node.labels.get(INSTANCE_TYPE, ""))
        instance_type = None if index is None else table.types[index]
        cost = on_node.eviction_cost * lifetime_remaining(claim, now)
        known = self._built.get(node.key)
        if (
            known is not None
            and known.node is node
            and known.pool is pool
            and known.instance_type is instance_type
            and known.pods is on_node.reschedulable
            and known.cost == cost
        ):
            return known
        price = self._price(node, instance_type)
        pods = on_node.reschedulable
        return DisruptionCandidate(node, claim, pool, instance_type, pods, cost, price)

    def _node_problem(self, node: StateNode) -> str | None:
        # upstream: types.go:NewCandidate, statenode.go:ValidateNodeDisruptable, in this order
        checks = (
            (node.key in self._queued, "candidate is already being disrupted"),
            (node.claim is None, "node isn't managed by karpenter"),
            (node.node is None, "nodeclaim does not have an associated node"),
            (not node.initialized, "node isn't initialized"),
            (node.marked_for_deletion, "node is deleting or marked for deletion"),
            (node.nominated, "node is nominated for a pending pod"),
            (
                node.annotations.get(DO_NOT_DISRUPT) == "true",
                f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation',
            ),
        )
        return next((text for applies, text in checks if applies), None)

    def _price(self, node: StateNode, instance_type: InstanceType | None) -> float | None:
        """Return the lowest price of an offering that matches the node.

        Returns None if no offering matches.
        """
        if instance_type is None:
            return None
        offerings = instance_type.compatible_offerings(node.label_requirements, self._well_known)
        return min((one.price for one in offerings), default=None)

    def _blocking_pod(self, on_node: PodsOnNode, budgets: PodBudgets, now: Instant) -> str | None:
        for pod in on_node.annotated:
            if not is_disruptable(pod, now):
                return f'pod has "{DO_NOT_DISRUPT}" annotation (Pod={pod.key})'
        if not self._cluster.budgets:
            return None
        blocking = (budgets.blocking(pod, now) for pod in on_node.pods)
        return next((text for text in blocking if text is not None), None)


def total_price(candidates: Iterable[DisruptionCandidate]) -> float:
    """Return the total hourly price of the candidates; 0 if any price is unknown."""
    # upstream: consolidation.go:getCandidatePrices
    total = 0.0
    for one in candidates:
        if one.price is None:
            return 0.0
        total += one.price
    return total
