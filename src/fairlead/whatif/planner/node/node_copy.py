"""NodeCopy: a new node like an existing node, with pods, volume limits and devices of its own.

Labels that identify only the existing node (`own_labels`) get the name of the new node as their
value. So the new node cannot reach local volumes of the existing node. `own_pods` are the static
pods and the pods of DaemonSets on the new node. Each DaemonSet of the snapshot runs a pod on the
new node if its template allows that. If the snapshot lacks a DaemonSet, its pod is copied from the
existing node. Static pods are copied too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    CSINode,
    CSIStorageCapacity,
    LabelSelector,
    Node,
    NodeCondition,
    ObjectMeta,
    Pod,
    ResourceSlice,
)
from fairlead.api.pods.facts import controller_of, is_daemon_pod, is_static, is_terminating
from fairlead.apiserver.kind import (
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    POD,
    RESOURCE_SLICE,
    Kind,
)
from fairlead.engine.autoscaling.node_dependents import device_pool_name
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.kubelet.node_status.node_condition import HEALTHY
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.change.static_pod import (
    daemon_pod_on,
    lacks_daemon_set,
    static_pod_name,
    static_pod_on,
)
from fairlead.whatif.planner.cluster_model import ClusterModel, Dependent
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import (
    copy_order,
    is_lasting_taint,
    own_labels,
    with_all_devices,
)

_KINDS: Final[Mapping[type[ApiObject], Kind]] = {
    CSINode: CSI_NODE,
    CSIStorageCapacity: CSI_STORAGE_CAPACITY,
    ResourceSlice: RESOURCE_SLICE,
}


class NodeCopy(Struct, frozen=True):
    """A node that does not exist yet; `own_pods` are its static pods and its pods of DaemonSets.

    `like` is the existing node whose CSINode is copied for the new node. The CSIStorageCapacities
    that belong only to `like` are copied, too. If `has_devices` is set, the ResourceSlices of
    `like` are also copied.
    """

    node: Node
    own_pods: tuple[Pod, ...]
    like: str
    has_devices: bool = True

    def add_to(self, model: ClusterModel) -> None:
        """Add the node, its pods and its dependents to `model`."""
        model.put_node(self.node)
        for one in (*self._dependents(model), *self.own_pods):
            model.put(one)

    def manifests(self, model: ClusterModel) -> Iterator[Manifest]:
        """Yield the node, its dependents and its own pods as objects to create.

        Pods of DaemonSets in the snapshot are left out, because the DaemonSets create them.
        """
        yield _manifest(NODE, self.node)
        for one in self._dependents(model):
            yield _manifest(_KINDS[type(one)], one)
        for pod in self.own_pods:
            node, name = pod.spec.node_name, pod.metadata.name
            if is_static(pod):
                value = static_pod_on(pod, node)
            elif lacks_daemon_set(pod, model.store.find):
                value = daemon_pod_on(pod, node, name)
            else:
                continue
            ref = ObjectRef(POD.kind, pod.metadata.namespace, name)
            yield Manifest(pod.key, POD, ref, value)

    def _dependents(self, model: ClusterModel) -> Iterator[Dependent]:
        name = self.node.metadata.name
        for one in model.dependents(self.like):
            meta = replace(one.metadata, name=name, uid=name, owner_references=())
            named = f"{one.metadata.name}-{name}"
            if isinstance(one, CSINode):
                yield replace(one, metadata=meta)
            elif isinstance(one, CSIStorageCapacity):
                topology = self._own_topology(one)
                if topology is not None:
                    meta = replace(meta, name=named, uid=named)
                    yield replace(one, metadata=meta, node_topology=topology)
            elif self.has_devices:
                pool = device_pool_name(one.spec.pool.name, self.like, name)
                # As in `copied_dependent`, the devices of a new machine are healthy.
                devices = tuple(replace(device, taints=()) for device in one.spec.devices)
                own_pool = replace(one.spec.pool, name=pool)
                spec = replace(one.spec, node_name=name, pool=own_pool, devices=devices)
                yield replace(one, metadata=replace(meta, name=named, uid=named), spec=spec)

    def _own_topology(self, one: CSIStorageCapacity) -> LabelSelector | None:
        """Return the `node_topology` for the new node's copy of the CSIStorageCapacity `one`.

        Returns None if `one` does not belong to the node `like`, or also belongs to other nodes.
        """
        name, labels = self.node.metadata.name, self.node.metadata.labels
        selector = one.node_topology or LabelSelector()
        before = selector.match_labels
        own = [key for key, of in before.items() if of == self.like and labels.get(key) == name]
        after = {**before, **dict.fromkeys(own, name)}
        return replace(selector, match_labels=after) if own else None


def _manifest(kind: Kind, view: Node | Dependent) -> Manifest:
    meta = ObjectMeta(
        name=view.metadata.name,
        namespace=view.metadata.namespace,
        labels=view.metadata.labels,
        annotations=view.metadata.annotations,
    )
    new = replace(view, metadata=meta)
    value: Json = {"apiVersion": kind.api_version, "kind": kind.kind, **as_json(new)}
    return Manifest(meta.name, kind, ObjectRef(kind.kind, meta.namespace, meta.name), value)


def node_to_copy(infos: Iterable[NodeInfo]) -> NodeInfo:
    """Return the node to copy for new nodes of a pool; `infos` are the nodes of the pool.

    The result is the newest node in service, or the newest node if none is in service.
    """
    return max(infos, key=lambda info: copy_order(info.node))


def copy_node(model: ClusterModel, info: NodeInfo, name: str) -> NodeCopy:
    """Return a copy of `info` with the name `name`, in service even if `info` is not in service.

    If this name is not free in `model`, a number is added to the name: `a-copy-1`.
    """
    name = next(filter(model.is_free_name, _numbered(name)))
    node = node_like(info, name, own_labels_of(model, info))
    pods = tuple(pod_on(pod, name) for pod in own_pods(model, node, info))
    return NodeCopy(node, pods, info.name)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(1))


def own_labels_of(model: ClusterModel, info: NodeInfo) -> tuple[str, ...]:
    """Return the keys of the labels of `info` that identify this one node (`own_labels`)."""
    csi_nodes = (one for one in model.dependents(info.name) if isinstance(one, CSINode))
    topology = (
        key for one in csi_nodes for driver in one.spec.drivers for key in driver.topology_keys
    )
    return own_labels(info.labels, info.name, topology)


def node_like(info: NodeInfo, name: str, own: Iterable[str]) -> Node:
    """Return a node in service with the name `name` that is otherwise like `info`.

    Labels whose keys are in `own` get `name` as their value.
    """
    labels = {**info.labels, **dict.fromkeys(own, name)}
    meta = replace(info.node.metadata, name=name, uid=name, labels=labels)
    taints = tuple(one for one in info.node.spec.taints if is_lasting_taint(one.key))
    spec = replace(info.node.spec, provider_id="", unschedulable=False, taints=taints)
    conditions = tuple(map(_healthy, info.node.status.conditions))
    old = info.node.status
    allocatable = with_all_devices(old.allocatable, old.capacity)
    status = replace(old, conditions=conditions, allocatable=allocatable)
    return replace(info.node, metadata=meta, spec=spec, status=status)


def _healthy(posted: NodeCondition) -> NodeCondition:
    """Return the condition `posted` as a healthy kubelet reports it.

    If kubelets do not report conditions of this type, return `posted` unchanged.
    """
    found = HEALTHY.get(posted.type)
    if found is None:
        return posted
    return replace(posted, status=found.status, reason=found.reason, message=found.message)


def own_pods(model: ClusterModel, node: Node, like: NodeInfo) -> list[Pod]:
    """Return the pods of DaemonSets and the static pods of the new `node`, a copy of `like`.

    The pods do not have their final names and node yet; `pod_on` sets both.
    """
    made = model.daemon_pods(node)
    copied = [
        pod.pod
        for pod in like.pods.values()
        if not is_terminating(pod.pod)
        and (is_static(pod.pod) or (is_daemon_pod(pod.pod) and _owner(pod.pod) not in made))
    ]
    return [*filter(None, made.values()), *copied]


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid


def pod_on(pod: Pod, node: str) -> Pod:
    """Return a copy of `pod` on `node`, named after both: `web` on `n1` becomes `web-n1`.

    The copy of a static pod gets the name that its mirror pod would have on `node`.
    """
    name = static_pod_name(pod, node) if is_static(pod) else f"{pod.metadata.name}-{node}"
    meta = replace(pod.metadata, name=name, uid=name)
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
