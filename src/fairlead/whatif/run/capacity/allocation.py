"""Sums of the resources of a cluster's nodes, and the number of pods that a workload lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.nodes.taint import PREFER_NO_SCHEDULE
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import belongs_to_node, condition, is_terminal, is_terminating
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.well_known_label import ZONE, is_virtual
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.apiserver.registry.store import Store
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.shape import Shape
from fairlead.engine.workloads.daemon_set.rule import nodes_without_pod, target_node
from fairlead.whatif.outcome.run_outcome import (
    COMPLETED,
    NodeEnd,
    ObjectError,
    PodEnd,
    ResourceAllocation,
    resource_rank,
)
from fairlead.whatif.outcome.workload import (
    ROLLOUT,
    WorkloadRef,
    revision_in,
    revision_of,
    workload_of,
)
from fairlead.whatif.run.capacity.wanted_pods import wanted_by
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import is_lasting_taint

PODS = "pods"
_CREATING = (DAEMON_SET, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER, JOB)
_OWNERS = (
    DEPLOYMENT.kind,
    CRON_JOB.kind,
    ROLLOUT,
)  # workloads whose ReplicaSets or Jobs create the pods


class RequestsByShape:
    """The requests of pods; pods with equal specs share a dictionary, which must not be changed."""

    def __init__(self, cluster: Cluster) -> None:
        """Keep `cluster`; the method `of` looks up the `Shape` of each pod there."""
        self._cluster = cluster
        self._known: dict[tuple[Shape, bool], Mapping[str, int]] = {}

    def of(self, pod: Pod) -> Mapping[str, int]:
        """Return the requests of `pod`.

        If the pod is on a node, the status of an in-place resize is taken into account.
        """
        is_existing = pod.spec.node_name != ""
        info = self._cluster.pods.get(pod.key)
        if info is None or info.pod is not pod:
            return pod_requests(pod, existing=is_existing)
        key = info.shape, is_existing
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = pod_requests(pod, existing=is_existing)
        return known


def requested_in(cluster: Cluster) -> dict[str, int]:
    """Return the requests of all bound pods, by resource, and the number of these pods as `pods`.

    CPU is in millicores, and all other resources are in whole units, such as bytes. Pods on virtual
    nodes do not count.
    """
    shapes = cluster.bound_shapes()
    total: dict[str, int] = {PODS: shapes.total()}
    for shape, count in shapes.items():
        for column, amount in shape.load:
            name = cluster.table.resources.names[column]
            total[name] = total.get(name, 0) + amount * count
    for info in cluster.table.nodes():
        if is_virtual(info.labels):
            total[PODS] -= len(info.pods)
            for column, name in enumerate(cluster.table.resources.names):
                if amount := info.requested_of(column):
                    total[name] -= amount
    return total


def allocatable_in(cluster: Cluster) -> dict[str, int]:
    """Return the allocatable amounts of all nodes, except virtual nodes, by resource.

    CPU is in millicores, and all other resources are in whole units, such as bytes.
    """
    nodes = (info.node for info in cluster.table.nodes() if not is_virtual(info.labels))
    return _sum(map(allocatable_of, nodes))


def allocatable_of(node: Node) -> dict[str, int]:
    """Return the allocatable amounts of `node` by resource: CPU in millicores, others in units."""
    return {
        name: milli_value(amount) if name == "cpu" else whole_value(amount)
        for name, amount in node.status.allocatable.items()
    }


def nodes_at_end(nodes: Mapping[str, Node], pods: Iterable[PodEnd]) -> tuple[NodeEnd, ...]:
    """Return the `nodes` sorted by name, each with its `pods`."""
    pods_by_node: dict[str, list[PodEnd]] = defaultdict(list)
    for pod in pods:
        if pod.phase not in COMPLETED:  # nothing reads the list of the pods without a node
            pods_by_node[pod.node].append(pod)
    return tuple(_node_end(nodes[name], pods_by_node[name]) for name in sorted(nodes))


def nodes_in(manifests: Iterable[Manifest]) -> tuple[NodeEnd, ...]:
    """Return the nodes among `manifests`, sorted by name, each with the pods on it."""
    objects = list(manifests)
    pods = (one.pod for one in objects if one.kind is POD)
    ends = [
        PodEnd(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            node=pod.spec.node_name,
            phase=pod.status.phase,
            requests=pod_requests(pod, existing=True),
            owner=workload_of(pod),
            belongs_to_node=belongs_to_node(pod),
        )
        for pod in pods
    ]
    return nodes_at_end({one.ref.name: one.node for one in objects if one.kind is NODE}, ends)


def allocations(
    nodes: Iterable[NodeEnd], before: Mapping[str, int], offered_before: Mapping[str, int]
) -> tuple[ResourceAllocation, ...]:
    """Return the allocation of each resource of `nodes`; virtual nodes do not count.

    The allocations are sorted by `resource_rank`. `before` contains the requests at the start, and
    `offered_before` contains the allocatable amounts at the start.
    """
    nodes = [node for node in nodes if not is_virtual(node.labels)]
    offered = _sum(node.allocatable for node in nodes)
    requested = _sum(node.requested for node in nodes)
    return tuple(
        ResourceAllocation(
            resource=name,
            allocatable_before=offered_before.get(name, 0),
            allocatable=offered[name],
            requested_before=before.get(name, 0),
            requested=requested.get(name, 0),
        )
        for name in sorted(offered, key=resource_rank)
    )


class ObjectErrors(Struct, frozen=True, kw_only=True):
    """Describes errors of objects, with the number of pods that each object lacks.

    The `pods` and `nodes` are those of the cluster.
    """

    store: Store
    pods: Collection[Pod]
    nodes: Collection[Node]
    # The number of pods that each Job wants now. The status of a Job does not show this number,
    # because a simulation does not write Job statuses.
    job_pods: Mapping[WorkloadRef, int]
    # Takes the uid of an owner, and returns the name of the newest revision if the owner is a
    # StatefulSet, otherwise "".
    update_revision: Callable[[str], str]
    # The pods without a replacement yet, by their owner in the form of the `subject` of `error`.
    # These owners are not in `store`, but their pods are replaced.
    unreplaced: Mapping[str, Sequence[Pod]]

    def error(self, subject: str, message: str) -> ObjectError:
        """Return the error `message` about `subject`, with the number of pods that `subject` lacks.

        `subject` is an object in the form "ReplicaSet ns/name". For an object that is not in
        `store`, the number is the number of its pods in `unreplaced`. For an object in `store`, the
        number is 0 if the kind is not DaemonSet, ReplicaSet, StatefulSet, ReplicationController or
        Job.
        """
        kind_name, _, key = subject.partition(" ")
        namespace, _, name = key.partition("/")
        kind = next((one for one in _CREATING if name and one.kind == kind_name), None)
        itself = WorkloadRef(kind_name, namespace, name)
        owner = None if kind is None else self.store.find(kind, namespace, name)
        if owner is None:
            if lost := self.unreplaced.get(subject):
                workload, revision = workload_of(lost[0]), revision_of(lost[0])
                return ObjectError(subject, message, len(lost), workload, revision=revision)
            # The object was deleted, and none of its pods needs a replacement any more.
            creates_pods = kind is not None or subject in self.unreplaced
            return ObjectError(subject, message, workload=itself if creates_pods else None)
        if kind is DAEMON_SET:
            # While a pod terminates, its DaemonSet creates no pod on the same node.
            occupied = {target_node(pod) for pod in _active_pods(owner, self.pods)}
            lacking = tuple(nodes_without_pod(owner, self.nodes, occupied))
            return ObjectError(subject, message, len(lacking), itself, lacking)
        references = owner["metadata"].get("ownerReferences") or ()
        controller = next((one for one in references if one.get("controller")), None)
        known = kind_name, name
        if controller is not None and controller["kind"] in _OWNERS:
            known = controller["kind"], controller["name"]
        workload = WorkloadRef(known[0], namespace, known[1])
        metadata = owner["metadata"]
        revision = self.update_revision(metadata["uid"]) or revision_in(
            metadata.get("labels") or {}
        )
        wanted = self.job_pods[itself] if itself in self.job_pods else wanted_by(owner)
        missing = _missing(owner, self.pods, wanted)
        return ObjectError(subject, message, missing, workload, revision=revision)


def _missing(owner: Json, pods: Iterable[Pod], wanted: int) -> int:
    """Return how many of the `wanted` pods the controller of `owner` still has to create."""
    existing = sum(not is_terminating(pod) for pod in _active_pods(owner, pods))
    return max(0, wanted - existing)


def _active_pods(owner: Json, pods: Iterable[Pod]) -> Iterator[Pod]:
    """Yield the `pods` of `owner` that have not completed; they may be terminating."""
    uid = owner["metadata"]["uid"]
    for pod in pods:
        references = pod.metadata.owner_references
        if not is_terminal(pod) and any(one.uid == uid and one.controller for one in references):
            yield pod


def _node_end(node: Node, pods: list[PodEnd]) -> NodeEnd:
    ready = condition(node, "Ready")
    return NodeEnd(
        name=node.metadata.name,
        zone=node.metadata.labels.get(ZONE, ""),
        labels=node.metadata.labels,
        taints=tuple(
            one
            for one in node.spec.taints
            if one.effect != PREFER_NO_SCHEDULE and is_lasting_taint(one.key)
        ),
        unschedulable=node.spec.unschedulable,
        is_ready=ready is None or ready.status == "True",
        allocatable=allocatable_of(node),
        requested=_requested(pods),
        pods=tuple(pods),
    )


def _requested(pods: Iterable[PodEnd]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] += amount
        total[PODS] += 1
    return dict(total)


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)
