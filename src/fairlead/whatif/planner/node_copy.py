"""NodeCopy: a new node like one of the cluster, with copies of that node's DaemonSet pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_daemon_pod
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_template import HOSTNAME, is_lasting_taint

# Labels that tell nodes of one kind apart.
_INDIVIDUAL: Final = (HOSTNAME, "topology.ebs.csi.aws.com/zone")
_TOPOLOGY: Final = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")

NodeKind = tuple[tuple[tuple[str, str], ...], str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class NodeCopy:
    """A node that does not exist yet, with the pods that come with it."""

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


def copy_node(info: NodeInfo, name: str) -> NodeCopy:
    """Return a copy of `info` called `name`, in service even if `info` is cordoned or not ready."""
    labels = {**info.labels, HOSTNAME: name}
    meta = replace(info.node.metadata, name=name, uid=name, labels=labels)
    taints = tuple(one for one in info.node.spec.taints if is_lasting_taint(one.key))
    spec = replace(info.node.spec, provider_id="", unschedulable=False, taints=taints)
    pods = (_pod_on(pod.pod, name) for pod in info.pods.values() if is_daemon_pod(pod.pod))
    return NodeCopy(replace(info.node, metadata=meta, spec=spec), tuple(pods))


def _pod_on(pod: Pod, node: str) -> Pod:
    name = f"{pod.metadata.name}-{node}"
    meta = replace(pod.metadata, name=name, uid=name)
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))


def kind_of_node(info: NodeInfo) -> NodeKind:
    """Return what nodes of a pool have in common: labels without places, taints, sizes."""
    labels = tuple(
        sorted(
            (key, value)
            for key, value in info.labels.items()
            if key not in _INDIVIDUAL and not key.startswith(_TOPOLOGY)
        )
    )
    taints = sorted(
        f"{one.key}={one.value}:{one.effect}"
        for one in info.node.spec.taints
        if is_lasting_taint(one.key)
    )
    sizes = tuple(sorted((key, str(value)) for key, value in info.node.status.allocatable.items()))
    return labels, ",".join(taints), sizes
