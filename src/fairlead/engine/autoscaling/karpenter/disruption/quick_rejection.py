"""QuickRejection: rejects removals that a simulation would reject, without simulating them.

Most candidates of a search are rejected, because their pods need a new node that is not cheaper. If
all pods that take part are plain (no spread, affinity to pods, volumes, ports or preferences), a
pass consists of two independent parts:

    1. each pod, in the order of the queue, takes the first existing node with room for it
    2. the pods that are left share new NodeClaims, whatever the existing nodes are

Part 2 depends only on the sequence of specs that are left, so its result is kept for all candidates
that leave the same sequence. What might be accepted, or has errors, is simulated: a rejection is
always that of the simulation, and everything else is left to it.

    nodes of 4 cores, pods of 1 core; free: one core on node-7
    candidate with 3 pods  -> node-7 takes one, two are left  -> [web, web] needs one new node
    the next with 3 pods   -> the same sequence: no new pass, only its price is compared
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.api.objects import Pod, PodSpec
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import Amounts, merged
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.pdb import PodBudgets
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import (
    Provisioner,
    currently_reschedulable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import (
    free_resources,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import (
    PendingPod,
    PodFacts,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.queue import queue_order
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.instant import Instant

Sequenced = tuple[tuple[int, int], ...]
"""Runs of equal specs: the identity of their facts, and how many pods follow each other."""


@dataclass(slots=True)
class _Row:
    """An existing node with its free resources; `accepts` keeps which specs it accepts."""

    state: StateNode
    on_node: PodsOnNode
    free: Amounts
    accepts: dict[int, bool] = field(default_factory=dict)

    def has_room(self, requests: Mapping[str, int], free: Amounts) -> bool:
        return all(amount <= free.get(name, 0) for name, amount in requests.items())

    def accepts_facts(self, facts: PodFacts) -> bool:
        """Return whether labels and taints allow the pod."""
        found = self.accepts.get(id(facts))
        if found is None:
            found = self.accepts[id(facts)] = untolerated(
                self.state.taints, facts.tolerations
            ) is None and self.state.requirements.compatible(facts.requirements)
        return found


@dataclass(slots=True)
class _PlainPod:
    """A plain pod and its place in the queue; `pending` is None if the pod is not plain."""

    pod: Pod
    pending: PendingPod | None
    order: tuple[int, int, int, str]


@dataclass(slots=True)
class RejectionMemory:
    """Results of a search that later searches use again: rows, pods and NodeClaims.

    `requests` maps the sequence of pods that is left to its NodeClaims, or to None if there were
    errors. `compared` maps that sequence, with the candidates' price and capacity types, to the
    reason against a replacement, or to None. All are emptied when a NodePool, the instance types
    or the DaemonSets' pods have changed.
    """

    pools: list[NodePool] = field(default_factory=list)
    tables: list[InstanceTypeTable] = field(default_factory=list)
    daemons: list[PodSpec] = field(default_factory=list)
    rows: dict[str, _Row] = field(default_factory=dict)
    pods: dict[str, _PlainPod] = field(default_factory=dict)
    requests: dict[Sequenced, tuple[NodeClaimRequest, ...] | None] = field(default_factory=dict)
    compared: dict[tuple[Sequenced, float, tuple[str, ...]], str | None] = field(
        default_factory=dict
    )

    def renew(
        self, pools: list[NodePool], tables: list[InstanceTypeTable], daemons: list[PodSpec]
    ) -> None:
        """Forget what depends on pools, types or DaemonSets if those differ."""
        is_same = _are_same(self.pools, pools) and _are_same(self.tables, tables)
        if not is_same or self.daemons != daemons:
            self.requests.clear()
            self.compared.clear()
            self.rows.clear()
            self.pods.clear()
        self.pools, self.tables, self.daemons = pools, tables, daemons


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(
        one is other for one, other in zip(some, others, strict=True)
    )


Compare = Callable[[Sequence[DisruptionCandidate], NodeClaimRequest], NodeClaimRequest | str]
"""Returns the request with only cheaper types, or upstream's reason why there is none."""


class QuickRejection:
    """The removals of one search, at one instant: nothing changes between its answers."""

    def __init__(
        self,
        cluster: KarpenterCluster,
        provisioner: Provisioner,
        memory: RejectionMemory,
        now: Instant,
    ) -> None:
        """Read the nodes, the pending pods and those of nodes that are being removed."""
        self._cluster = cluster
        self._provisioner = provisioner
        self._memory = memory
        self._now = now
        self._budgets = PodBudgets(cluster.budgets.values())
        self._pools = provisioner.usable_pools()
        self._has_limits = any(pool.spec.limits for pool in self._pools)
        self._nodes = cluster.nodes(now)
        self._by_facts: dict[int, list[_Row]] = {}
        daemons = provisioner.daemons()
        tables = [provisioner.types_of(pool) for pool in self._pools]
        memory.renew(self._pools, tables, [one.spec for one in daemons])
        if len(memory.pods) > 2 * len(cluster.pods):
            memory.pods.clear()
        self._rows = self._current_rows(daemons)
        self._common = self._common_pods()

    def _current_rows(self, daemons: Sequence[Pod]) -> list[_Row]:
        """Return the rows of the nodes that stay, in the order in which they are tried."""
        known, current = self._memory.rows, {}
        for node in self._nodes:
            on_node = self._cluster.pods_on(node.node_name)
            row = known.get(node.key)
            if row is None or row.state is not node or row.on_node is not on_node:
                own = self._provisioner.daemons_on(node, daemons)
                row = _Row(node, on_node, free_resources(node, on_node, own))
            current[node.key] = row
        self._memory.rows = current
        staying = [row for row in current.values() if not row.state.marked_for_deletion]
        staying.sort(key=lambda row: (not row.state.initialized, row.state.name))
        # If any amount is negative, no pod fits.
        return [row for row in staying if all(amount >= 0 for amount in row.free.values())]

    def _common_pods(self) -> list[_PlainPod] | None:
        """Return the pods that take part in every simulation; None if one is not plain."""
        if self._cluster.anti_affinity_pods:
            return None
        found = [self._plain(pod) for pod in self._provisioner.pending_pods()[0]]
        for node in self._nodes:
            if node.marked_for_deletion:
                found += [self._plain(pod) for pod in self._reschedulable(node)]
        return None if any(one.pending is None for one in found) else found

    def _reschedulable(self, node: StateNode) -> list[Pod]:
        return currently_reschedulable(self._cluster, node, self._now, self._budgets)

    def _plain(self, pod: Pod) -> _PlainPod:
        known = self._memory.pods.get(pod.key)
        if known is None or known.pod is not pod:
            pending = self._provisioner.pending(pod)
            known = _PlainPod(pod, pending if _is_plain(pending) else None, queue_order(pending))
            self._memory.pods[pod.key] = known
        return known

    # --- answers -----------------------------------------------------------------------------

    def reason(self, candidates: Sequence[DisruptionCandidate], compare: Compare) -> str | None:
        """Return upstream's reason against removing `candidates`; None if a simulation decides.

        `compare` compares the price of one new NodeClaim with that of the candidates.
        """
        left = self._left(candidates)
        if not left:
            return None
        requests = self._new_claims(candidates, left)
        if not requests:
            return None
        if len(requests) > 1:
            return f"Can't remove without creating {len(requests)} candidates"
        if self._has_limits:
            return _text(compare(candidates, requests[0]))
        kinds = tuple(one.capacity_type for one in candidates)
        key = _sequence(left), total_price(candidates), kinds
        if key not in self._memory.compared:
            self._memory.compared[key] = _text(compare(candidates, requests[0]))
        return self._memory.compared[key]

    def needs_several(self, candidates: Sequence[DisruptionCandidate]) -> bool:
        """Return whether the pods that are left surely fit no single new node."""
        left = self._left(candidates)
        if not left:
            return False
        total = merged(*(one.facts.requests for one in left))
        tables = self._memory.tables
        return not any(table.fitting(total).any() for table in tables)

    def _left(self, candidates: Sequence[DisruptionCandidate]) -> list[PendingPod] | None:
        """Return the pods that no existing node takes; None if that is not known.

        A node that has not initialized would be an error, which the simulation reports.
        """
        if self._common is None:
            return None
        leaving = {one.node.key for one in candidates}
        if any(one.node.marked_for_deletion for one in candidates):
            return None
        own = [self._plain(pod) for one in candidates for pod in self._reschedulable(one.node)]
        left: list[PendingPod] = []
        free: dict[str, Amounts] = {}
        # A node without room for a pod has none for later pods with the same requests.
        rooms: dict[int, Iterator[_Row]] = {}
        current: dict[int, _Row | None] = {}
        for plain in sorted([*self._common, *own], key=lambda one: one.order):
            pod = plain.pending
            if pod is None:
                return None
            facts = pod.facts
            number = id(facts)
            if number not in rooms:
                rooms[number] = iter(self._rows_for(facts))
                current[number] = next(rooms[number], None)
            row = current[number]
            while row is not None and (
                row.state.key in leaving
                or not row.has_room(facts.requests, free.get(row.state.key, row.free))
            ):
                row = current[number] = next(rooms[number], None)
            if row is None:
                left.append(pod)
                continue
            if not row.state.initialized:
                return None
            before = free.get(row.state.key, row.free)
            free[row.state.key] = {
                name: amount - facts.requests.get(name, 0) for name, amount in before.items()
            }
        return left

    def _rows_for(self, facts: PodFacts) -> list[_Row]:
        """Return the rows with room for a pod, before any is placed."""
        found = self._by_facts.get(id(facts))
        if found is None:
            found = self._by_facts[id(facts)] = [
                row
                for row in self._rows
                if row.has_room(facts.requests, row.free) and row.accepts_facts(facts)
            ]
        return found

    def _new_claims(
        self, candidates: Sequence[DisruptionCandidate], left: Sequence[PendingPod]
    ) -> tuple[NodeClaimRequest, ...] | None:
        """Return the NodeClaims for the pods that are left; None if one of them cannot be placed.

        Limits of NodePools depend on the nodes that stay, so with limits nothing is kept.
        """
        key = _sequence(left)
        if not self._has_limits and key in self._memory.requests:
            return self._memory.requests[key]
        leaving = {one.node.key for one in candidates}
        staying = [
            one for one in self._nodes if not one.marked_for_deletion and one.key not in leaving
        ]
        pods = [one.original for one in left]
        result = self._provisioner.schedule(pods, staying, strict_reservations=False, onto=())
        found = None if result.errors else tuple(result.requests)
        if not self._has_limits:
            self._memory.requests[key] = found
        return found


def _text(chosen: NodeClaimRequest | str) -> str | None:
    return chosen if isinstance(chosen, str) else None


def _sequence(pods: Sequence[PendingPod]) -> Sequenced:
    runs: list[tuple[int, int]] = []
    for pod in pods:
        number = id(pod.facts)
        if runs and runs[-1][0] == number:
            runs[-1] = number, runs[-1][1] + 1
        else:
            runs.append((number, 1))
    return tuple(runs)


def _is_plain(pod: PendingPod) -> bool:
    """Return whether only requests, tolerations and required values of labels matter."""
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
