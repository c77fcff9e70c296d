"""NodeCopy: a new node like an existing node, with copies of that node's DaemonSet pods."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import Node, NodeCondition, Pod
from fairlead.api.pods.facts import is_daemon_pod
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.kubelet.node_condition import HEALTHY, ready_status
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import is_lasting_taint


class NodeCopy(Struct, frozen=True):
    """A node that does not exist yet, with the DaemonSet pods on it."""

    node: Node
    daemon_pods: tuple[Pod, ...]

    def add_to(self, model: ClusterModel) -> None:
        """Add the node and its pods to `model`."""
        model.put_node(self.node)
        for pod in self.daemon_pods:
            model.put(pod)

    def manifest(self) -> Manifest:
        """Return the node as an object of a snapshot."""
        name = self.node.metadata.name
        value: Json = {"apiVersion": "v1", "kind": "Node", **as_json(self.node)}
        return Manifest(name, NODE, ObjectRef("Node", "", name), value)


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
    return NodeCopy(replace(info.node, metadata=meta, spec=spec, status=status), tuple(pods))


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
