"""NodeCopy: a new node like an existing node, with its DaemonSet pods, volume limits and devices.

The limits of attached volumes are in the node's CSINode, the devices in its ResourceSlices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import CSINode, Node, NodeCondition, Pod, ResourceSlice
from fairlead.api.pods.facts import is_daemon_pod
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import CSI_NODE, NODE, RESOURCE_SLICE, Kind
from fairlead.engine.autoscaling.node_dependents import device_pool_name
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.kubelet.node_condition import HEALTHY, ready_status
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import is_lasting_taint


class NodeCopy(Struct, frozen=True):
    """A node that does not exist yet, with the DaemonSet pods on it.

    The node gets copies of the CSINode and of the ResourceSlices of the node `like`; if
    `has_devices` is False, it gets no ResourceSlices.
    """

    node: Node
    daemon_pods: tuple[Pod, ...]
    like: str
    has_devices: bool = True

    def add_to(self, model: ClusterModel) -> None:
        """Add the node, its pods, its CSINode and its ResourceSlices to `model`."""
        model.put_node(self.node)
        for one in (*self._dependents(model), *self.daemon_pods):
            model.put(one)

    def manifests(self, model: ClusterModel) -> Iterator[Manifest]:
        """Yield the node, its CSINode and its ResourceSlices as objects of a snapshot.

        `model` contains those of the node `like`.
        """
        yield _manifest(NODE, self.node)
        for one in self._dependents(model):
            yield _manifest(CSI_NODE if isinstance(one, CSINode) else RESOURCE_SLICE, one)

    def _dependents(self, model: ClusterModel) -> Iterator[CSINode | ResourceSlice]:
        name = self.node.metadata.name
        for one in model.dependents(self.like):
            meta = replace(one.metadata, name=name, uid=name, owner_references=())
            if isinstance(one, CSINode):
                yield replace(one, metadata=meta)
            elif self.has_devices:
                named = f"{one.metadata.name}-{name}"
                pool = device_pool_name(one.spec.pool.name, self.like, name)
                spec = replace(one.spec, node_name=name, pool=replace(one.spec.pool, name=pool))
                yield replace(one, metadata=replace(meta, name=named, uid=named), spec=spec)


def _manifest(kind: Kind, view: Node | CSINode | ResourceSlice) -> Manifest:
    name = view.metadata.name
    value: Json = {"apiVersion": kind.api_version, "kind": kind.kind, **as_json(view)}
    return Manifest(name, kind, ObjectRef(kind.kind, "", name), value)


def node_to_copy(infos: Iterable[NodeInfo]) -> NodeInfo:
    """Return the node that new nodes of a pool copy; `infos` are the nodes of the pool.

    This is the newest node in service, or the newest node if none is in service.
    """
    return max(infos, key=lambda info: (_is_in_service(info.node), _age(info.node)))


def _is_in_service(node: Node) -> bool:
    return not node.spec.unschedulable and ready_status(node) in ("True", "")


def _age(node: Node) -> tuple[str, str]:
    return node.metadata.creation_timestamp, node.metadata.name


def daemon_pods_on(info: NodeInfo) -> tuple[PodInfo, ...]:
    """Return the pods of DaemonSets on a node."""
    return tuple(pod for pod in info.pods.values() if is_daemon_pod(pod.pod))


def copy_node(info: NodeInfo, name: str, daemon_pods: Iterable[PodInfo] | None = None) -> NodeCopy:
    """Return a copy of `info` with the name `name`, in service even if `info` is not in service.

    `daemon_pods` are the pods to copy; by default those of DaemonSets that are on `info` now.
    """
    labels = {**info.labels, HOSTNAME: name}
    meta = replace(info.node.metadata, name=name, uid=name, labels=labels)
    taints = tuple(one for one in info.node.spec.taints if is_lasting_taint(one.key))
    spec = replace(info.node.spec, provider_id="", unschedulable=False, taints=taints)
    copied = daemon_pods_on(info) if daemon_pods is None else daemon_pods
    pods = (_pod_on(pod.pod, name) for pod in copied)
    conditions = tuple(map(_healthy, info.node.status.conditions))
    status = replace(info.node.status, conditions=conditions)
    node = replace(info.node, metadata=meta, spec=spec, status=status)
    return NodeCopy(node, tuple(pods), info.name)


def _healthy(posted: NodeCondition) -> NodeCondition:
    """Return `posted` as a healthy kubelet reports it, or unchanged if no kubelet reports it."""
    found = HEALTHY.get(posted.type)
    if found is None:
        return posted
    return replace(posted, status=found.status, reason=found.reason, message=found.message)


def _pod_on(pod: Pod, node: str) -> Pod:
    name = f"{pod.metadata.name}-{node}"
    meta = replace(pod.metadata, name=name, uid=name)
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
