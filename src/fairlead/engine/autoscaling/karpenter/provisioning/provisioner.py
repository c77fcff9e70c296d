"""Provisioner: runs a provisioning pass, and turns its result into NodeClaims to create.

upstream: pkg/controllers/provisioning/provisioner.go
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.objects import Affinity, DaemonSet, NodeAffinity, Pod, WorkloadSpec
from fairlead.api.pods.host_port import HostPort
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.pod import (
    has_do_not_disrupt,
    has_resource_claims,
    is_active,
    is_provisionable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import (
    NodeClaimRequest,
    request_of,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import (
    NodeClaimTemplate,
    template_labels,
    template_requirements,
)
from fairlead.engine.autoscaling.karpenter.provisioning.pod_validation import (
    avoids_karpenter,
    pod_problem,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import (
    ExistingNode,
    ExistingNodes,
    free_resources,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.initialtopology import (
    InitialTopology,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.instance_type_filter import (
    FilterFailure,
    filter_instance_types,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.nodeclaim import DaemonOverhead
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.preferences import (
    with_prefer_no_schedule_tolerated,
    without_required_node_affinity_term,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.queue import PendingPodQueue
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.reservations import Reservations
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.scheduler import (
    PassResult,
    PodFactsCache,
    ProvisioningScheduler,
    Relaxation,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topology import Topology
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologydomaingroup import (
    TopologyDomains,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.volumetopology import (
    volume_requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    pod_requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import (
    PodsOnNode,
    host_ports,
    requests_of,
)
from fairlead.engine.core.instant import Instant

NO_TYPES: Final = "NodePool requirements filtered out all compatible available instance types"
NO_TYPES_BY_MIN_VALUES: Final = f"{NO_TYPES} due to minValues incompatibility"

TypesOfPool = Callable[[NodePool], InstanceTypeTable]


class ProvisioningResult(Struct):
    """The result of a provisioning pass.

    `errors` and `ignored` map the keys of pods to upstream's texts.
    """

    queue: list[Pod] = field(default_factory=list)
    requests: list[NodeClaimRequest] = field(default_factory=list)  # NodeClaims to create
    # Existing nodes on which pods were placed.
    existing: list[ExistingNode] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)  # pods with the text "" are not reported
    relaxations: list[Relaxation] = field(default_factory=list)
    # Maps NodePools without a usable instance type to the event text about them.
    dropped_pools: dict[str, str] = field(default_factory=dict)
    has_pools: bool = True  # False if no NodePool is usable
    # Set if the pass ended early because it placed a running pod on a node that is not initialized:
    # this node and the key of the pod.
    misplaced: tuple[StateNode, str] | None = None


class _FreeResources(Struct, frozen=True):
    """The free resources of a node, with the inputs from which they were computed."""

    node: StateNode
    on_node: PodsOnNode
    daemons: Sequence[Pod]
    amounts: Mapping[str, int]


class _PassStart(Struct):
    """The state with which provisioning passes start, and the inputs from which it was built.

    `version` is the `pass_version` of the cluster, and `tables` are the instance types of the
    usable pools.
    """

    version: int
    nodes: Sequence[StateNode]
    keys: Sequence[str]
    tables: Sequence[InstanceTypeTable]
    daemons: Sequence[Pod]
    existing: ExistingNodes
    topology: InitialTopology


_KNOWN_MIN: Final = 1_000


class _DaemonPod(Struct, frozen=True):
    """The pod that represents a DaemonSet in provisioning passes.

    The pod was built from `spec`, the spec of the DaemonSet, and `newest`, the newest pod of the
    DaemonSet or None.
    """

    spec: WorkloadSpec
    newest: Pod | None
    pod: Pod


class _PoolDaemons(Struct, frozen=True):
    """The result of comparing the DaemonSets' pods `daemons` with the NodePools `pools`.

    `overheads` maps the name of each NodePool to the DaemonSets' pods that every node of the pool
    runs. `pods` are `daemons` with the changes that the comparison made. Later in a provisioning
    pass, `pods` are compared with the existing nodes.
    """

    daemons: list[Pod] = field(default_factory=list)
    pools: list[NodePool] = field(default_factory=list)
    overheads: Mapping[str, DaemonOverhead] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)


class Provisioner:
    """Decides which nodes to create for pending pods."""

    def __init__(
        self, cluster: KarpenterCluster, types_of: TypesOfPool, options: KarpenterOptions
    ) -> None:
        """Create the provisioner.

        `types_of` returns the instance types that a NodePool can use, with overlays applied.
        """
        self._cluster = cluster
        self.types_of = types_of
        self._options = options
        self._facts = PodFactsCache(options)
        self._daemons: tuple[int, list[Pod]] = (-1, [])  # (version of the cluster, pods)
        self._daemon_pods: dict[str, _DaemonPod] = {}
        self._pool_daemons = _PoolDaemons()
        self._free: dict[str, _FreeResources] = {}
        self._pass_start: _PassStart | None = None

    def provision(self, now: Instant) -> ProvisioningResult:
        """Run one provisioning pass over pending pods and the pods of nodes being removed."""
        pending, ignored = self.pending_pods()
        nodes = self._cluster.nodes(now)
        moved = [
            pod
            for node in sorted((n for n in nodes if n.marked_for_deletion), key=_node_order)
            for pod in currently_reschedulable(self._cluster, node, now)
        ]
        staying = [node for node in nodes if not node.marked_for_deletion]
        found = self.schedule([*pending, *moved], staying, strict_reservations=True)
        found.ignored = ignored
        return found

    def fitting_without_limits(
        self, pool: str, pods: Sequence[Pod], now: Instant, kept: Collection[str] = ()
    ) -> set[str]:
        """Return the keys of the pods that would get nodes of `pool` if the pool had no limits.

        `kept` are the names of limits that the pool still has, such as `cpu`.
        """
        staying = [node for node in self._cluster.nodes(now) if not node.marked_for_deletion]
        found = self.schedule(pods, staying, strict_reservations=True, unlimited=pool, kept=kept)
        return {key for one in found.requests if one.pool.name == pool for key in one.pods}

    def pending_pods(self) -> tuple[list[Pod], dict[str, str]]:
        """Return the pods to place, and {key of an ignored pod: the reason}.

        The pods are sorted by namespace and name. The reason is "" if the pod avoids Karpenter's
        nodes (`avoids_karpenter`).
        """
        pending: list[Pod] = []
        ignored: dict[str, str] = {}
        candidates = [pod for pod in self._cluster.unbound_pods.values() if is_provisionable(pod)]
        for pod in sorted(candidates, key=_pod_order):
            if avoids_karpenter(pod):
                ignored[pod.key] = ""
                continue
            problem = pod_problem(pod, self._cluster.storage, self._options)
            if problem is None:
                pending.append(pod)
            else:
                ignored[pod.key] = f"Failed to schedule pod, {problem}"
        return pending, ignored

    def schedule(  # noqa: PLR0913 - what a pass depends on
        self,
        pods: Sequence[Pod],
        nodes: Sequence[StateNode],
        *,
        strict_reservations: bool,
        leaving: Collection[str] = frozenset(),
        only_new: bool = False,
        running: Collection[str] = frozenset(),
        unlimited: str = "",
        kept: Collection[str] = (),
    ) -> ProvisioningResult:
        """Run one provisioning pass: place `pods` on `nodes` or on new nodes.

        Nodes whose keys are in `leaving` are ignored. Passes that differ only in `leaving` and
        `pods` share work. If all reservations that a pod could use are used up, the pod uses other
        capacity. But if `strict_reservations` is set, the pod gets no node. If `only_new` is set,
        `nodes` count only for limits and topology, and take no pods. The pass ends early if a pod
        whose key is in `running` is placed on a node that is not initialized. `unlimited` is a
        NodePool whose limits are ignored, except those with a name in `kept`.
        """
        if not pods:
            return ProvisioningResult()
        pools = self.usable_pools()
        if not pools:
            queue = PendingPodQueue(self.pending(pod) for pod in pods).ordered
            return ProvisioningResult(queue=[one.pod for one in queue], has_pools=False)
        result = ProvisioningResult()
        templates = self._templates(pools, result)
        pool_daemons = self._compared_daemons(templates)
        start = self._start(nodes, pools, pool_daemons.pods)
        staying = [one for one in nodes if one.key not in leaving] if leaving else nodes
        topology = Topology(
            self._cluster,
            start.topology,
            [one for one in nodes if one.key in leaving] if leaving else [],
            {pod.key for pod in pods},
            respects_preferences=self._options.respects_preferences,
        )
        pending = [self.pending(pod) for pod in pods]
        for one in pending:
            topology.update(one)
            # Upstream's Topology.Update changes the pod itself: each call adds the labels of
            # matchLabelKeys to its selectors once more. The texts of relaxations show this, so the
            # original pod must contain the labels that were added here.
            one.original = one.pod
        if only_new:
            existing = ExistingNodes(())
        else:
            existing = start.existing
            topology.register_hosts(one.hostname for one in staying)
        scheduler = ProvisioningScheduler(
            templates,
            pool_daemons.overheads,
            [_without_limits(pool, kept) if pool.name == unlimited else pool for pool in pools],
            # The types of all pools, even of a pool whose requirements exclude all its types.
            Reservations(one for pool in pools for one in self.types_of(pool).types),
            topology,
            existing,
            leaving,
            staying,
            self._options,
            self._facts,
            strict_reservations=strict_reservations,
            running=running,
        )
        self._take_result(scheduler.solve(pending), result)
        return result

    def _start(
        self, nodes: Sequence[StateNode], pools: Sequence[NodePool], daemons: Sequence[Pod]
    ) -> _PassStart:
        """Return the state with which a provisioning pass over `nodes` starts.

        The result is the same object until the cluster, the instance types or `nodes` change.
        """
        known, version = self._pass_start, self._cluster.pass_version
        tables = [self.types_of(pool) for pool in pools]
        is_current = (
            known is not None
            and known.version == version
            and known.daemons is daemons
            and _are_same(known.tables, tables)
        )
        if known is not None and is_current and known.nodes is nodes:
            return known
        keys = [one.key for one in nodes]
        if known is None or not is_current or known.keys != keys:
            existing = [
                ExistingNode(one, self._cluster, self.free_on(one, daemons)) for one in nodes
            ]
            domains = TopologyDomains(
                (pool, table.types) for pool, table in zip(pools, tables, strict=True)
            )
            topology = InitialTopology(self._cluster, nodes, domains)
            known = self._pass_start = _PassStart(
                version, nodes, keys, tables, daemons, ExistingNodes(existing), topology
            )
        known.nodes = nodes
        return known

    def _take_result(self, found: PassResult, result: ProvisioningResult) -> None:
        result.queue = found.queue
        result.existing = found.existing
        result.errors = found.errors
        result.relaxations = found.relaxations
        result.misplaced = found.misplaced
        if found.misplaced is not None:
            return
        for claim in found.claims:
            request = request_of(claim, self._options)
            if isinstance(request, str):
                result.errors |= {pod.key: request for pod in claim.pods}
            else:
                result.requests.append(request)

    def usable_pools(self) -> list[NodePool]:
        """Return the NodePools that may get nodes for pods, in the order in which they are tried.

        The order is by descending weight, then by descending name.
        """
        usable = [
            pool
            for pool in self._cluster.node_pools.values()
            if not pool.is_static and pool.is_ready and not pool.metadata.deletion_timestamp
        ]
        usable.sort(key=lambda pool: pool.name, reverse=True)
        return sorted(usable, key=lambda pool: -(pool.spec.weight or 0))

    def pools_without_types(self) -> dict[str, str]:
        """Return the usable NodePools that no instance type matches, each with the event text."""
        found = ProvisioningResult()
        self._templates(self.usable_pools(), found)
        return found.dropped_pools

    def _templates(
        self, pools: Sequence[NodePool], result: ProvisioningResult
    ) -> list[NodeClaimTemplate]:
        templates: list[NodeClaimTemplate] = []
        for pool in pools:
            table = self.types_of(pool)
            requirements = template_requirements(pool)
            relaxes = self._options.relaxes_min_values
            found = filter_instance_types(
                table, table.all, requirements, {}, relaxes_min_values=relaxes
            )
            if isinstance(found, FilterFailure):
                by_min_values = found.reason.startswith("minValues")
                event = NO_TYPES_BY_MIN_VALUES if by_min_values else NO_TYPES
                result.dropped_pools[pool.name] = event
                continue
            template = NodeClaimTemplate(pool, template_labels(pool), requirements, table, found[0])
            templates.append(template)
        return templates

    def pending(self, pod: Pod) -> PendingPod:
        """Return the PendingPod for `pod`. Its topology groups are not set yet."""
        volumes = volume_requirements(pod, self._cluster.storage)
        return PendingPod(pod, self._facts.of(pod), volumes)

    # --- daemons ---------------------------------------------------------------------------------

    def daemons(self) -> list[Pod]:
        """Return one pod for each DaemonSet.

        If `ignore_dra_requests` is set, DaemonSets that use ResourceClaims are left out. The result
        is the same list object until its pods change.
        """
        version, known = self._daemons
        if version == self._cluster.version:
            return known
        found = [self._daemon_pod(one) for one in self._cluster.daemon_sets.values()]
        if self._options.ignore_dra_requests:
            found = [pod for pod in found if not has_resource_claims(pod)]
        if _are_same(found, known):
            found = known
        self._daemons = self._cluster.version, found
        return found

    def _daemon_pod(self, owner: DaemonSet) -> Pod:
        """Return the pod that represents a DaemonSet; see `_as_templated`."""
        pods = sorted(self._cluster.daemon_pods(owner), key=_pod_order)
        newest = max(pods, key=lambda pod: pod.metadata.creation_timestamp, default=None)
        known = self._daemon_pods.get(owner.key)
        if known is None or known.spec is not owner.spec or known.newest is not newest:
            found = _as_templated(owner, newest)
            known = self._daemon_pods[owner.key] = _DaemonPod(owner.spec, newest, found)
        return known.pod

    def daemons_of_pass(self) -> Sequence[Pod]:
        """Return one pod for each DaemonSet, with the changes that a provisioning pass makes to it.

        As in upstream, a pass compares each pod of `daemons()` with each NodePool in turn. Each
        comparison gives the pod a toleration of PreferNoSchedule taints. Each comparison also
        removes the terms of the pod's node affinity that do not allow this NodePool. Later
        comparisons use the changed pod. `daemons_on` selects, from the list that is returned, the
        pods that run on a node. Until the pods change, all calls return the same list object.
        """
        return self._compared_daemons(
            self._templates(self.usable_pools(), ProvisioningResult())
        ).pods

    def _compared_daemons(self, templates: Sequence[NodeClaimTemplate]) -> _PoolDaemons:
        """Compare the DaemonSets' pods with the pools in the order of `templates`.

        As in upstream, each comparison changes the pod, and later comparisons use the changed pod.
        The pod gets a toleration of PreferNoSchedule taints, and loses the terms of its node
        affinity that do not allow the pool. The pods are compared with all pools twice. The first
        round determines which of the pods run on each pool's nodes, and their requests. The second
        round determines the host ports that the pods use on each pool's nodes.
        """
        # upstream: scheduler.go:NewScheduler
        known, daemons, pools = self._pool_daemons, self.daemons(), [one.pool for one in templates]
        if known.daemons is daemons and _are_same(known.pools, pools):
            return known
        pods = list(daemons)
        running: dict[str, list[Pod]] = {}
        ports: dict[str, tuple[HostPort, ...]] = {}
        for template in templates:
            running[template.pool_name] = _compare_with_pool(template, pods)
        for template in templates:
            ports[template.pool_name] = tuple(
                port for pod in _compare_with_pool(template, pods) for port in host_ports(pod)
            )
        overheads = {
            name: DaemonOverhead(tuple(found), requests_of(found), ports[name])
            for name, found in running.items()
        }
        if _are_same(pods, known.pods):
            pods = known.pods
        self._pool_daemons = _PoolDaemons(daemons, pools, overheads, pods)
        return self._pool_daemons

    def free_on(self, node: StateNode, daemons: Sequence[Pod]) -> Mapping[str, int]:
        """Return the resources that are free for pods on `node`.

        `daemons` is the result of `daemons_of_pass()`.
        """
        on_node = self._cluster.pods_on(node.node_name)
        known = self._free.get(node.key)
        if (
            known is None
            or known.node is not node
            or known.on_node is not on_node
            or known.daemons is not daemons
        ):
            if len(self._free) > 2 * len(self._cluster.node_claims) + _KNOWN_MIN:
                self._free.clear()
            amounts = free_resources(node, on_node, self.daemons_on(node, daemons))
            known = self._free[node.key] = _FreeResources(node, on_node, daemons, amounts)
        return known.amounts

    def daemons_on(self, node: StateNode, daemons: Sequence[Pod]) -> list[Pod]:
        """Return the pods among `daemons` that run, or will run, on `node`."""
        labels = node.label_requirements
        return [
            pod
            for pod in daemons
            if untolerated(node.taints, pod.spec.tolerations) is None
            and labels.compatible(pod_requirements(pod, preferred=False))
        ]


def _without_limits(pool: NodePool, kept: Collection[str]) -> NodePool:
    """Return `pool` without its limits, except those with a name in `kept`."""
    limits = {name: limit for name, limit in pool.spec.limits.items() if name in kept}
    return replace(pool, spec=replace(pool.spec, limits=limits))


def _as_templated(owner: DaemonSet, newest: Pod | None) -> Pod:
    """Return `newest` with the node affinity of the DaemonSet's template.

    If `newest` is None, return a pod that is created from the template.
    """
    template = without_nulls(owner.spec.template)
    from_template = decode_as(Pod, {"spec": template.get("spec", {})})
    if newest is None:
        return from_template
    affinity = from_template.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    if node_affinity is None:
        return newest
    required = node_affinity.required_during_scheduling_ignored_during_execution
    return newest if required is None else _with_required_node_affinity(newest, node_affinity)


def _with_required_node_affinity(pod: Pod, stated: NodeAffinity) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=(
            stated.required_during_scheduling_ignored_during_execution
        ),
    )
    spec = replace(pod.spec, affinity=replace(affinity, node_affinity=node_affinity))
    return replace(pod, spec=spec)


def _compare_with_pool(template: NodeClaimTemplate, daemons: list[Pod]) -> list[Pod]:
    """Return the pods of `daemons` that run on the pool's nodes.

    Also replace each pod in `daemons` with the pod that `_compared` returns for it.
    """
    found: list[Pod] = []
    for index, daemon in enumerate(daemons):
        pod, runs = _compared(template, daemon)
        daemons[index] = pod
        if runs:
            found.append(pod)
    return found


def _compared(template: NodeClaimTemplate, daemon: Pod) -> tuple[Pod, bool]:
    """Return (`daemon` with changes, whether it runs on nodes of the NodePool of `template`).

    `_compared_daemons` explains the changes.
    """
    # upstream: scheduler.go:isDaemonPodCompatible, which changes the pod
    pod: Pod = with_prefer_no_schedule_tolerated(daemon)
    if untolerated(template.taints, pod.spec.tolerations) is not None:
        return pod, False
    well_known = template.table.well_known
    while True:  # bounded by the alternatives
        required = pod_requirements(pod, preferred=False)
        if template.requirements.compatible(required, well_known):
            return pod, True
        step = without_required_node_affinity_term(pod)
        if step is None:
            return pod, False
        pod = step[0]


def currently_reschedulable(cluster: KarpenterCluster, node: StateNode, now: Instant) -> list[Pod]:
    """Return the pods of `node` that would be rescheduled if the node were removed now.

    The result leaves out pods with the annotation `do-not-disrupt`, and pods whose budget never
    allows a disruption.
    """
    # upstream: pkg/utils/pod/scheduling.go:IsCurrentlyReschedulable
    on_node = cluster.pods_on(node.node_name)
    if not on_node.annotated and not cluster.budgets:
        return list(on_node.reschedulable)
    budgets = cluster.pod_budgets
    return [
        pod
        for pod in on_node.reschedulable
        if not (is_active(pod) and has_do_not_disrupt(pod, now))
        and not budgets.is_fully_blocked(pod, now)
    ]


def _pod_order(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _node_order(node: StateNode) -> str:
    return node.name


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
