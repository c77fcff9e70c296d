"""QuickRejection: rejects, without a simulation, removals that a simulation would reject.

A search rejects most candidates, because their pods need a new node that is not cheaper. A pod is
plain if it has no spread constraints, affinity to pods, volumes, ports or preferences. A removal is
simulated by a provisioning pass. If all pods of a pass are plain, the pass consists of two
independent parts:

    1. each pod, in the order of the queue, goes to the first existing node with room for it
    2. the pods that are left share new NodeClaims; the existing nodes do not matter

Part 2 depends only on the sequence of specs of the pods that are left. So its result is used for
all candidates for which the same sequence is left. If a candidate's pod would go to a node that is
not initialized, the removal is rejected. A removal is simulated if it might be accepted, or if a
pod fits no existing or new node.

    nodes of 4 cores, pods of 1 core; node-7 has one free core
    candidate with 3 pods       -> node-7 takes one, two are left -> [web, web] needs one new node
    next candidate with 3 pods  -> [web, web] again: only the candidate's price is compared
    if node-7 is still starting -> one pod goes to node-7, so the removal is rejected
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod, PodSpec
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.plain_placement import (
    NodeRoom,
    PlacementResult,
    PlainPlacement,
    PlainPod,
    PlainPods,
    plain_pods,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import (
    KeepReason,
    SchedulingErrors,
    SimulationResult,
    uninitialized_error,
)
from fairlead.engine.autoscaling.karpenter.pod import is_provisionable
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import (
    Provisioner,
    currently_reschedulable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.queue import queue_order
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.instant import Instant

_SEQUENCES_MAX: Final = 1 << 14

Sequenced = tuple[tuple[int, int], ...]
"""Runs of pods with equal specs: (identity of their facts, number of successive pods)."""


class _KnownPod(Struct):
    """A pod with its `PlainPod`; `plain` is None if the pod is not plain."""

    pod: Pod
    plain: PlainPod | None


class RejectionMemory(Struct):
    """Partial results of searches for removals. Later searches use them again."""

    pools: list[NodePool] = field(default_factory=list)
    tables: list[InstanceTypeTable] = field(default_factory=list)
    daemons: list[PodSpec] = field(default_factory=list)
    rows: dict[str, NodeRoom] = field(default_factory=dict)
    pods: dict[str, _KnownPod] = field(default_factory=dict)
    # {node: the pods that its removal moves}, with None if one of them is not plain (see the
    # module's docstring).
    own: dict[str, tuple[PodsOnNode, PlainPods | None]] = field(default_factory=dict)
    # {pods that fit no existing node: the NodeClaims for them}, with None if one of the pods cannot
    # be placed.
    requests: dict[Sequenced, tuple[NodeClaimRequest, ...] | None] = field(default_factory=dict)
    # {(pods, price of the candidates, capacity types of the candidates): the reason against a
    # replacement, or None}
    compared: dict[tuple[Sequenced, float, tuple[str, ...]], str | None] = field(
        default_factory=dict
    )

    def renew(
        self, pools: list[NodePool], tables: list[InstanceTypeTable], daemons: list[PodSpec]
    ) -> None:
        """Drop all results if an argument has changed, or there are too many results."""
        is_same = _are_same(self.pools, pools) and _are_same(self.tables, tables)
        if not is_same or self.daemons != daemons or len(self.requests) > _SEQUENCES_MAX:
            self.requests.clear()
            self.compared.clear()
            self.rows.clear()
            self.pods.clear()
            self.own.clear()
        self.pools, self.tables, self.daemons = pools, tables, daemons


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(
        one is other for one, other in zip(some, others, strict=True)
    )


Compare = Callable[[Sequence[DisruptionCandidate], NodeClaimRequest], NodeClaimRequest | str]
"""Returns the request with only cheaper types, or upstream's reason if no type is cheaper."""


class QuickRejection:
    """Rejects removals of nodes, without a simulation, during one search for a command.

    The cluster must not change during the search.
    """

    def __init__(
        self,
        cluster: KarpenterCluster,
        provisioner: Provisioner,
        memory: RejectionMemory,
        now: Instant,
    ) -> None:
        """Read the nodes, the pending pods, and the pods of nodes that are being removed."""
        self._cluster = cluster
        self._provisioner = provisioner
        self._memory = memory
        self._now = now
        self._pools = provisioner.usable_pools()
        self._has_limits = any(pool.spec.limits for pool in self._pools)
        self._nodes = cluster.nodes(now)
        daemons = provisioner.daemons_of_pass()
        tables = [provisioner.types_of(pool) for pool in self._pools]
        memory.renew(self._pools, tables, [one.spec for one in daemons])
        if len(memory.pods) > 2 * len(cluster.pods):
            memory.pods.clear()
        if len(memory.own) > 2 * len(self._nodes):
            memory.own.clear()
        self._has_pending = False
        rows = self._current_rows(daemons)
        common = self._common_pods()
        self._placement = None if common is None else PlainPlacement(rows, plain_pods(common))
        self._last: tuple[Sequence[DisruptionCandidate], _Outcome | None] | None = None

    def _current_rows(self, daemons: Sequence[Pod]) -> list[NodeRoom]:
        """Return the nodes that are not being removed, in the order of a provisioning pass."""
        known, current = self._memory.rows, {}
        for node in self._nodes:
            on_node = self._cluster.pods_on(node.node_name)
            row = known.get(node.key)
            if row is None or row.state is not node or row.on_node is not on_node:
                row = NodeRoom(node, on_node, self._provisioner.free_on(node, daemons))
            current[node.key] = row
        self._memory.rows = current
        staying = [row for row in current.values() if not row.state.marked_for_deletion]
        staying.sort(key=lambda row: (not row.state.initialized, row.state.name))
        # If any amount is negative, no pod fits.
        return [row for row in staying if all(amount >= 0 for amount in row.free.values())]

    def _common_pods(self) -> list[PlainPod] | None:
        """Return the pods that every simulated provisioning pass places; None if one is not plain.

        The module docstring defines plain pods.
        """
        if self._cluster.anti_affinity_pods:
            return None
        pending = self._provisioner.pending_pods()[0]
        self._has_pending = bool(pending)
        found = [self._plain(pod) for pod in pending]
        for node in self._nodes:
            if node.marked_for_deletion:
                found += [self._plain(pod) for pod in self._reschedulable(node)]
        return _all_plain(found)

    def _reschedulable(self, node: StateNode) -> list[Pod]:
        return currently_reschedulable(self._cluster, node, self._now)

    def _plain(self, pod: Pod) -> PlainPod | None:
        known = self._memory.pods.get(pod.key)
        if known is None or known.pod is not pod:
            pending = self._provisioner.pending(pod)
            plain = PlainPod(pod, pending, queue_order(pending)) if _is_plain(pending) else None
            known = self._memory.pods[pod.key] = _KnownPod(pod, plain)
        return known.plain

    def _own_pods(self, node: StateNode) -> PlainPods | None:
        """Return the node's pods that must be rescheduled if the node is removed.

        Returns None if one of the pods is not plain (see `plain_placement`).
        """
        on_node = self._cluster.pods_on(node.node_name)
        known = self._memory.own.get(node.key)
        if known is not None and known[0] is on_node:
            return known[1]
        plain = _all_plain([self._plain(pod) for pod in self._reschedulable(node)])
        found = None if plain is None else plain_pods(plain)
        # If pods have annotations or there are budgets, the pods that move do not depend on
        # `on_node` alone.
        if not on_node.annotated and not self._cluster.budgets:
            self._memory.own[node.key] = on_node, found
        return found

    # --- decisions ---------------------------------------------------------------------------

    def reason(
        self, candidates: Sequence[DisruptionCandidate], compare: Compare
    ) -> KeepReason | None:
        """Return upstream's reason against removing `candidates`.

        Returns None if a simulation has to decide. `compare` compares the price of one new
        NodeClaim with the price of the candidates.
        """
        outcome = self._place(candidates)
        if outcome is None:
            return None
        requests = self._new_claims(candidates, outcome) if outcome.placed.left else ()
        if requests is None:
            return None
        problem = self._problem(outcome)
        if problem is not None:
            return SchedulingErrors(tuple(candidates), problem)
        if not requests:
            return None
        if len(requests) > 1:
            return f"Can't remove without creating {len(requests)} candidates"
        if self._has_limits:
            return _text(compare(candidates, requests[0]))
        kinds = tuple(one.capacity_type for one in candidates)
        key = outcome.sequence, total_price(candidates), kinds
        if key not in self._memory.compared:
            self._memory.compared[key] = _text(compare(candidates, requests[0]))
        return self._memory.compared[key]

    def needs_several(self, candidates: Sequence[DisruptionCandidate]) -> bool:
        """Return True if one new node certainly cannot hold the pods that fit no existing node.

        False does not mean that one new node can hold these pods. Pending pods are ignored, because
        a removal is allowed even if pending pods stay without a node.
        """
        outcome = self._place(candidates)
        if outcome is None or not outcome.placed.left:
            return False
        left = outcome.placed.left
        if self._has_pending:
            left = tuple(
                (one.pending.facts, 1)
                for one in outcome.left_pods()
                if not is_provisionable(one.pod)
            )
        total: dict[str, int] = {}
        for facts, count in left:
            for name, amount in facts.requests.items():
                total[name] = total.get(name, 0) + count * amount
        return not any(table.fitting(total).any() for table in self._memory.tables)

    def _place(self, candidates: Sequence[DisruptionCandidate]) -> _Outcome | None:
        """Simulate a provisioning pass in which `candidates` are gone.

        The pods of the pass are placed on the other nodes. Returns None if one of the pods is not
        plain (see `plain_placement`), or if no NodePool is usable. Also returns None if a candidate
        is already being removed.
        """
        if self._last is None or self._last[0] is not candidates:
            self._last = candidates, self._placed(candidates)
        return self._last[1]

    def _placed(self, candidates: Sequence[DisruptionCandidate]) -> _Outcome | None:
        if self._placement is None or not self._pools:
            return None
        if any(one.node.marked_for_deletion for one in candidates):
            return None
        own: list[PlainPods] = []
        for one in candidates:
            pods = self._own_pods(one.node)
            if pods is None:
                return None
            own.append(pods)
        leaving = {one.node.key for one in candidates}
        return _Outcome(self._placement, own, self._placement.place(own, leaving))

    def _problem(self, outcome: _Outcome) -> str | None:
        """Return upstream's text about candidates' pods that were placed on uninitialized nodes.

        Returns None if there are no such pods.
        """
        errors: dict[str, str] = {}
        for size, runs in groupby(outcome.placed.starting, key=itemgetter(0)):
            starting = list(runs)
            ends = [end for _, _, end, _ in starting]
            for place, key in outcome.placement.places(outcome.own, size):
                # Ranges are sorted: only the first one that ends after `place` can contain it.
                number = bisect_right(ends, place)
                if number < len(starting) and starting[number][1] <= place:
                    errors[key] = uninitialized_error(starting[number][3])
        return SimulationResult((), (), errors).problem()

    def _new_claims(
        self, candidates: Sequence[DisruptionCandidate], outcome: _Outcome
    ) -> tuple[NodeClaimRequest, ...] | None:
        """Return the NodeClaims for the pods that fit no existing node.

        Returns None if one of these pods cannot be placed. Results are not cached if a NodePool has
        limits, because the results then also depend on which nodes stay.
        """
        key = outcome.sequence
        if not self._has_limits and key in self._memory.requests:
            return self._memory.requests[key]
        leaving = {one.node.key for one in candidates}
        nodes = [one for one in self._nodes if not one.marked_for_deletion]
        pods = [one.pod for one in outcome.left_pods()]
        result = self._provisioner.schedule(
            pods, nodes, strict_reservations=False, leaving=leaving, only_new=True
        )
        found = None if result.errors else tuple(result.requests)
        if not self._has_limits:
            self._memory.requests[key] = found
        return found


class _Outcome(Struct, frozen=True):
    """The placement of the pods of a provisioning pass. `own` are the pods of the candidates."""

    placement: PlainPlacement
    own: list[PlainPods]
    placed: PlacementResult

    @property
    def sequence(self) -> Sequenced:
        """The pods that fit no existing node, in the order of the queue.

        Consecutive pods that share one PodFacts object are one entry: the Python id of this object,
        and the number of pods.
        """
        return tuple((id(facts), count) for facts, count in self.placed.left)

    def left_pods(self) -> list[PlainPod]:
        """Return the pods that fit no existing node, in the order of the queue."""
        return [
            one
            for size, first, end in self.placed.left_places
            for one in self.placement.pods(self.own, size)[first:end]
        ]


def _all_plain(pods: Sequence[PlainPod | None]) -> list[PlainPod] | None:
    plain = [one for one in pods if one is not None]
    return plain if len(plain) == len(pods) else None


def _text(chosen: NodeClaimRequest | str) -> str | None:
    return chosen if isinstance(chosen, str) else None


def _is_plain(pod: PendingPod) -> bool:
    """Return whether only requests, tolerations and required label values matter for the pod."""
    spec, facts, affinity = pod.pod.spec, pod.facts, pod.pod.spec.affinity
    return (
        pod.volumes is None
        and not facts.ports
        and not facts.has_resource_claims
        and facts.strict is facts.requirements
        and not spec.topology_spread_constraints
        and (affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity))
        and all(
            one.values and not one.complement and one.gte is None and one.lte is None
            for one in facts.requirements
        )
    )
