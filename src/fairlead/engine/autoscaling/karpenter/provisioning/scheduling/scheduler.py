"""ProvisioningScheduler: one pass that places pods on existing nodes or on new nodes.

    take the largest remaining pod
    try existing nodes, then NodeClaims of this pass, then a new NodeClaim of each NodePool in order
    if all of these fail, relax the pod by one preference and try again
    if nothing can be relaxed, put the pod back into the queue, with all its preferences
    stop when a whole round has placed no pod

upstream: pkg/controllers/provisioning/scheduling/scheduler.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct, field

from fairlead.api.objects import Pod, PodSpec
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import Mask
from fairlead.engine.autoscaling.karpenter.go_sort import go_resorted
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import NodeClaimTemplate
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import (
    ExistingNode,
    ExistingNodes,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.failed_attempt import (
    FailedAttempt,
    FailedAttempts,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.nodeclaim import (
    AddRefusal,
    DaemonOverhead,
    InFlightNodeClaim,
    PassContext,
    refusal,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import (
    PendingPod,
    PodFacts,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.preferences import relaxed
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.queue import PendingPodQueue
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.reservations import (
    Reservations,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topology import Topology
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologygroup import (
    AFFINITY,
    ANTI_AFFINITY,
    TopologyGroup,
)
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode, amounts
from fairlead.engine.autoscaling.karpenter.state.usage import NODES

LIMITS_EXCEEDED: Final = "all available instance types exceed limits for nodepool (NodePool={})"
NODES_EXHAUSTED: Final = "node limits have been exhausted for nodepool (NodePool={})"

_DRA_ERROR = (
    "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
)
_NO_TYPES = "nodepool requirements filtered out all available instance types"

_PODS_MAX = 1 << 17  # the number of pods whose specs are cached
_encode_spec = msgspec.json.Encoder().encode


class Relaxation(Struct, frozen=True):
    """One relaxation step of a pod, described in upstream's words."""

    pod: str
    reason: str


class PassResult(Struct):
    """The result of a provisioning pass; `errors` maps keys of unplaced pods to upstream's texts.

    `existing` are the existing nodes on which pods were placed. `misplaced` is set if the pass
    ended early because it placed a running pod on a node that is not initialized. `misplaced` then
    contains this node and the key of the pod, and the other fields are incomplete.
    """

    queue: list[Pod] = field(default_factory=list)
    claims: list[InFlightNodeClaim] = field(default_factory=list)
    existing: list[ExistingNode] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    relaxations: list[Relaxation] = field(default_factory=list)
    misplaced: tuple[StateNode, str] | None = None


class PodFactsCache:
    """A cache of PodFacts by spec, so that pods with equal specs share one object."""

    def __init__(self, options: KarpenterOptions) -> None:
        """Start without facts; `options` determine whether preferences are respected."""
        self._respects = options.respects_preferences
        self._known: dict[bytes, PodFacts] = {}
        self._last: dict[str, tuple[PodSpec, PodFacts]] = {}  # by pod key

    def of(self, pod: Pod) -> PodFacts:
        """Return the facts of a pod's spec."""
        last = self._last.get(pod.key)
        if last is not None and last[0] is pod.spec:
            return last[1]
        if len(self._last) >= _PODS_MAX:
            self._last.clear()
        found = self._of_spec(pod)
        self._last[pod.key] = pod.spec, found
        return found

    def _of_spec(self, pod: Pod) -> PodFacts:
        spec = pod.spec
        key = _encode_spec(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                spec.node_selector,
                spec.affinity and spec.affinity.node_affinity,
                spec.tolerations,
            )
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = PodFacts(pod, respects_preferences=self._respects)
        return found


class ProvisioningScheduler:
    """Places pods in one pass, and contains the state of that pass."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a pass depends on
        self,
        templates: Sequence[NodeClaimTemplate],
        overheads: Mapping[str, DaemonOverhead],
        pools: Sequence[NodePool],
        reservations: Reservations,
        topology: Topology,
        existing: ExistingNodes,
        leaving: Collection[str],
        state_nodes: Sequence[StateNode],
        options: KarpenterOptions,
        facts: PodFactsCache,
        *,
        strict_reservations: bool,
        running: Collection[str] = frozenset(),
    ) -> None:
        """Prepare a provisioning pass; `templates` are in the order in which NodePools are tried.

        `existing` are the existing nodes. The pass places no pods on nodes with keys in `leaving`.
        `state_nodes` are the nodes that count towards the limits of their NodePools. If
        `strict_reservations` is set, and all reservations that a pod could use are used up, the pod
        gets no node. The pass ends early if a pod whose key is in `running` is placed on a node
        that is not initialized.
        """
        self._templates = templates
        self._overheads = overheads
        self._topology = topology
        self._options = options
        self._facts = facts
        self._context = PassContext(topology, reservations, options, strict_reservations)
        self._existing = existing
        self._leaving = leaving
        self._running = running
        self._misplaced: tuple[StateNode, str] | None = None
        # The copies of the existing nodes on which this pass has placed pods.
        self._changed: dict[ExistingNode, ExistingNode] = {}
        self._with_room: dict[int, list[ExistingNode]] = {}  # by the id of a pod's facts
        self._claims: list[InFlightNodeClaim] = []
        self._room = ClaimRoom()
        self._remaining = {
            pool.name: amounts(pool.spec.limits) for pool in pools if pool.spec.limits
        }
        for node in state_nodes if self._remaining else ():
            self._take_from_limits(node.node_pool, {**node.capacity, NODES: 1})
        self._tolerates_prefer_no_schedule = any(
            taint.effect == "PreferNoSchedule"
            for pool in pools
            for taint in pool.spec.template.spec.taints
        )
        # In upstream, the NodeClaims of a NodePool share one map of annotations. So all of them get
        # the value that the last NodeClaim sets.
        self._relaxed_min_values: dict[str, bool] = {}
        self._hosts = 0
        self._refusals: dict[str, list[AddRefusal]] = {}
        self._relaxations: list[Relaxation] = []
        self._failed = FailedAttempts(topology)

    def _take_from_limits(self, pool: str, taken: Mapping[str, int]) -> None:
        remaining = self._remaining.get(pool)
        if remaining is not None:
            for name in remaining:
                remaining[name] -= taken.get(name, 0)

    def solve(self, pods: Sequence[PendingPod]) -> PassResult:
        """Place `pods`, whose topology groups already exist."""
        queue = PendingPodQueue(pods)
        while self._misplaced is None and (pod := queue.pop()) is not None:
            refusals = self._try_schedule(pod)
            if refusals is None:
                self._refusals.pop(pod.key, None)
                continue
            self._refusals[pod.key] = refusals
            if pod.pod is not pod.original:
                self._reset(pod)  # its next attempt starts with all preferences
            queue.push(pod)
        for claim in self._claims:
            claim.finalize(min_values_relaxed=self._relaxed_min_values[claim.template.pool_name])
        return PassResult(
            queue=[one.pod for one in queue.ordered],
            claims=self._claims,
            existing=[self._changed[one] for one in self._existing.nodes if one in self._changed],
            errors=self._errors(),
            relaxations=self._relaxations,
            misplaced=self._misplaced,
        )

    def _errors(self) -> dict[str, str]:
        """Return upstream's text for each pod that was not placed, by pod key."""
        # Equal pods share one list of refusals.
        lists = {id(one): one for one in self._refusals.values()}
        texts = {number: "; ".join(one.text() for one in found) for number, found in lists.items()}
        return {key: texts[id(refusals)] for key, refusals in self._refusals.items()}

    def _try_schedule(self, pod: PendingPod) -> list[AddRefusal] | None:
        """Place the pod; if it does not fit, relax its constraints step by step.

        Returns None if the pod was placed, otherwise the refusals after the last step.
        """
        key = self._failed.key_of(pod)
        known = self._failed.find(key)
        if known is not None:
            return self._repeated(pod, known)
        hosts, reasons = self._hosts, list[str]()
        while True:  # each round relaxes one more preference
            refusals = self._add(pod)
            if refusals is None:
                self._failed.forget()
                return None
            if any(one.reserved for one in refusals) or self._is_ignored(pod):
                return refusals
            step = relaxed(pod.pod, tolerates_prefer_no_schedule=self._tolerates_prefer_no_schedule)
            if step is None:
                attempt = FailedAttempt(refusals, reasons, self._hosts - hosts)
                self._failed.add(key, pod, attempt)
                return refusals
            pod.pod, reason = step
            reasons.append(reason)
            self._relaxations.append(Relaxation(pod.key, reason))
            self._topology.update(pod)
            pod.facts = self._facts.of(pod.pod)

    def _repeated(self, pod: PendingPod, known: FailedAttempt) -> list[AddRefusal]:
        """Return the refusals in `known`, the failed attempt of a pod that is equal to `pod`.

        The call has the same side effects as an attempt for `pod`.
        """
        for _ in range(1 + len(known.reasons)):
            self._resort_claims()
        self._hosts += known.hosts
        self._relaxations += [Relaxation(pod.key, reason) for reason in known.reasons]
        if known.reasons:
            self._reset(pod)
        return known.refusals

    def _is_ignored(self, pod: PendingPod) -> bool:
        """Return whether the pod is not placed because it uses ResourceClaims."""
        # upstream: scheduler.go:add; trySchedule never relaxes a pod after this error
        return pod.facts.has_resource_claims and self._options.ignore_dra_requests

    def _reset(self, pod: PendingPod) -> None:
        pod.pod = pod.original
        self._topology.update(pod)
        pod.original = pod.pod
        pod.facts = self._facts.of(pod.pod)

    def _add(self, pod: PendingPod) -> list[AddRefusal] | None:
        if self._is_ignored(pod):
            return [refusal(_DRA_ERROR)]
        if self._add_to_existing(pod) or self._add_to_claim(pod):
            return None
        if not self._templates:
            return [refusal(_NO_TYPES)]
        return self._add_to_new(pod)

    def _add_to_existing(self, pod: PendingPod) -> bool:
        # Free resources only shrink during a pass. A node without room for a pod never gets room
        # for a pod with the same requests. Nodes after the node that takes the pod are not checked.
        key = id(pod.facts)
        known = self._with_room.get(key)
        if known is None:
            known = self._existing.with_room(pod.facts, self._leaving)
        closed = self._topology.closed_domains(pod) if known else []
        with_room: list[ExistingNode] = []
        for position, node in enumerate(known):
            current = self._changed.get(node, node)
            if current is not node and not current.has_room(pod.facts.requests):
                continue
            with_room.append(node)
            if _is_closed(node.state, closed):
                continue
            requirements = current.can_add(pod, self._topology)
            if requirements is not None:
                if current is node:
                    current = self._changed[node] = node.copied()
                current.add(pod, self._topology, requirements)
                if not node.state.initialized and pod.key in self._running:
                    self._misplaced = node.state, pod.key
                self._with_room[key] = [*with_room, *known[position + 1 :]]
                return True
        self._with_room[key] = with_room
        return False

    def _add_to_claim(self, pod: PendingPod) -> bool:
        self._resort_claims()
        for claim in self._possible_claims(pod, self._claims):
            placement = claim.can_add(pod, relaxes_min_values=False)
            if not isinstance(placement, AddRefusal):
                claim.add(pod, placement)
                self._room.update(claim)
                return True
        return False

    def _resort_claims(self) -> None:
        # Go's sort is not stable: each attempt may change the order of equal NodeClaims.
        self._claims = go_resorted(self._claims, [len(c.pods) for c in self._claims])

    def _possible_claims(
        self, pod: PendingPod, claims: list[InFlightNodeClaim]
    ) -> Iterable[InFlightNodeClaim]:
        """Return the NodeClaims in `claims` that the pod may fit.

        The result leaves out NodeClaims without enough free resources, and NodeClaims that a
        topology group over hostnames excludes.
        """
        fitting = self._room.fitting(pod.facts.requests)
        found = [one for one in claims if fitting[one.number]]
        for group in pod.groups:
            if group.key == HOSTNAME and found:
                found = _on_possible_hosts(pod, group, found)
        for group in self._topology.repelling(pod):
            if group.key == HOSTNAME:
                found = [one for one in found if one.host not in group.occupied]
        return found

    def _add_to_new(self, pod: PendingPod) -> list[AddRefusal] | None:
        """Open a NodeClaim for the pod in the first NodePool that accepts the pod.

        Returns None if the pod was placed, otherwise the refusal of each NodePool that was tried.
        If a NodePool refuses the pod because reservations are used up, no further NodePool is
        tried.
        """
        refusals: list[AddRefusal] = []
        for template in self._templates:
            options = self._within_limits(template)
            if isinstance(options, AddRefusal):
                refusals.append(options)
                continue
            overhead = self._overheads[template.pool_name]
            self._hosts += 1
            host = f"hostname-placeholder-{self._hosts:04d}"
            claim = InFlightNodeClaim(template, self._context, overhead, options, host)
            placement = claim.can_add(pod, relaxes_min_values=self._options.relaxes_min_values)
            if isinstance(placement, AddRefusal):
                refusals.append(placement)
                if placement.reserved:
                    return refusals
                continue
            claim.add(pod, placement)
            self._relaxed_min_values[template.pool_name] = placement.relaxed_min_values
            claim.number = len(self._claims)
            self._claims.append(claim)
            self._room.update(claim)
            self._take_largest(claim)
            return None
        return refusals

    def _within_limits(self, template: NodeClaimTemplate) -> Mask | AddRefusal:
        remaining = self._remaining.get(template.pool_name)
        if remaining is None:
            return template.options
        if remaining.get(NODES) == 0:
            return refusal(NODES_EXHAUSTED.format(template.pool_name))
        options = template.options & template.table.within(remaining)
        if not options.any():
            return refusal(LIMITS_EXCEEDED.format(template.pool_name))
        return options

    def _take_largest(self, claim: InFlightNodeClaim) -> None:
        """Subtract the largest possible capacity of `claim` from the NodePool's remaining limits.

        For each resource, the largest possible capacity is the maximum over the possible types of
        `claim`. Call this method once for each NodeClaim.
        """
        # upstream: scheduler.go:subtractMax
        remaining = self._remaining.get(claim.template.pool_name)
        if remaining is not None:
            for name in remaining:
                largest = claim.template.table.largest_capacity(claim.options, name)
                remaining[name] -= largest


def _is_closed(node: StateNode, closed: Sequence[tuple[str, Collection[str]]]) -> bool:
    """Return whether a label of the node has a value that `closed` forbids.

    `closed` contains (label, forbidden values of the label).
    """
    values = node.single_values
    for key, domains in closed:  # noqa: SIM110 - twice as fast as a generator
        if values.get(key) in domains:
            return True
    return False


class ClaimRoom:
    """Upper bounds of the amount of each resource that is left in each NodeClaim."""

    def __init__(self) -> None:
        """Start without NodeClaims."""
        self._names: dict[str, int] = {}
        self._room = np.zeros((16, 0), dtype=np.int64)
        self._count = 0

    def update(self, claim: InFlightNodeClaim) -> None:
        """Record the resources left in `claim`: its largest possible type minus its requests."""
        table = claim.template.table
        for name in claim.requests:
            if name not in self._names:
                self._names[name] = len(self._names)
                column = np.full((len(self._room), 1), np.iinfo(np.int64).max, dtype=np.int64)
                self._room = np.hstack((self._room, column))
        if claim.number >= len(self._room):
            more = np.full_like(self._room, np.iinfo(np.int64).max)
            self._room = np.vstack((self._room, more))
        self._count = max(self._count, claim.number + 1)
        largest = table.allocatable[claim.options].max(axis=0)
        for name, amount in claim.requests.items():
            column_of = table.column(name)
            most = int(largest[column_of]) if column_of is not None else 0
            self._room[claim.number, self._names[name]] = most - amount

    def fitting(self, requests: Mapping[str, int]) -> Mask:
        """Return a mask of the NodeClaims that may fit `requests`, shape (claims,)."""
        found = np.ones(self._count, dtype=np.bool_)
        for name, amount in requests.items():
            column = self._names.get(name)
            if column is not None and amount > 0:
                found &= self._room[: self._count, column] >= amount
        return found


def _on_possible_hosts(
    pod: PendingPod, group: TopologyGroup, claims: list[InFlightNodeClaim]
) -> list[InFlightNodeClaim]:
    """Return the NodeClaims in `claims` on which `group`, a group by hostname, allows the pod."""
    occupied, counts = group.occupied, group.counts
    if group.kind == ANTI_AFFINITY:
        return [one for one in claims if one.host not in occupied]
    selects = group.selects(pod.pod, pod.labels_shape)
    if group.kind == AFFINITY:
        if selects and group.may_start(pod.facts.strict.get(HOSTNAME)):
            return claims
        return [one for one in claims if one.host in occupied]
    free = group.max_skew - selects
    return [one for one in claims if counts.get(one.host, 0) <= free]
