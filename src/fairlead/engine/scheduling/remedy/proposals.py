"""proposals: for each rejecting plugin, the changes to try, smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from fairlead.api.nodes.taint import NO_SCHEDULE, find_untolerated, taint_text
from fairlead.api.objects import (
    Node,
    NodeSpec,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)
from fairlead.api.pods.host_port import ports_conflict
from fairlead.api.pods.volumes import is_exclusive, named_claims
from fairlead.engine.core.status import Status
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.volume_restrictions import READ_WRITE_ONCE_POD, in_conflict
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.remedy.affinity import (
    delete_conflicting,
    drop_pod_affinity,
    propose_for_node_affinity,
)
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.scheduling.remedy.resources import free_resources, lower_requests
from fairlead.engine.scheduling.remedy.spread import propose_for_spread
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Propose = Callable[[Framework, PodInfo, NodeInfo, Status], Iterator[RemedyChange]]

NODE_AFFINITY: Final = "NodeAffinity"  # the plugin
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_REJECTING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_TOGETHER_MAX: Final = 10  # pods whose volumes are deleted together
replace = msgspec.structs.replace


def proposals(
    framework: Framework, pod: PodInfo, node: NodeInfo, status: Status, *, deletes: bool
) -> Iterator[RemedyChange]:
    """Yield the changes that may remove the rejection `status`.

    Deletions of pods are yielded only if `deletes` is set. Yields nothing if no function in
    `_BY_PLUGIN` proposes changes for the plugin that rejects.
    """
    for propose in _BY_PLUGIN.get(rejecting_plugin(status), ()):
        if deletes or propose not in _DELETING:
            yield from propose(framework, pod, node, status)


def rejecting_plugin(status: Status) -> str:
    """Return the name of the plugin that rejects a node with `status`."""
    # The status of a node excluded by name has no plugin; only NodeAffinity excludes by name.
    return status.plugin or NODE_AFFINITY


def _uncordon(
    _framework: Framework, _pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    yield RemedyChange(f"uncordon node {node.name}", node=uncordoned(node.node))


def uncordoned(node: Node) -> Node:
    """Return `node` without its cordon and the taint of the cordon."""
    # The node lifecycle controller removes the taint
    # (node_lifecycle_controller.go: doNoScheduleTaintingPass).
    taints = tuple(one for one in node.spec.taints if not _is_of_cordon(one))
    return with_spec(node, replace(node.spec, unschedulable=False, taints=taints))


def _tolerate(
    _framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    spec = pod.pod.spec
    taint = find_untolerated(node.node.spec.taints, spec.tolerations, _REJECTING_EFFECTS)
    if taint is None:
        return
    one = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    yield RemedyChange(f"tolerate taint {taint_text(taint)}", pod=tolerating(pod.pod, one))
    everything = Toleration(operator="Exists")
    yield RemedyChange("tolerate every taint", pod=tolerating(pod.pod, everything))


def _free_port(
    _framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    wanted = pod.shape.host_ports
    taking: list[PodInfo] = []
    taken: dict[str, None] = {}
    for other in sorted(node.pods.values(), key=importance, reverse=True):
        used = [b for b in other.shape.host_ports if any(ports_conflict(a, b) for a in wanted)]
        if used:
            taking.append(other)
            taken |= {f"{protocol} {port}": None for _, protocol, port in used}
    if taking:
        yield deleting(taking, f" (host port {', '.join(taken)})")


def _free_volumes(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield one change that deletes all pods whose volumes conflict with the volumes of `pod`.

    A pod on any node conflicts if it shares a ReadWriteOncePod claim with `pod`. A pod on `node`
    also conflicts if it shares a disk with `pod`.
    """
    cluster = framework.cluster
    claims = []
    for name in named_claims(pod.pod):
        claim = cluster.related.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
            claims.append(name)
    disks = [volume for volume in pod.pod.spec.volumes if is_exclusive(volume)]
    users: list[PodInfo] = []
    for one in cluster.table.nodes():
        for other in one.pods.values():
            uses = other.namespace == pod.namespace and set(claims) & set(named_claims(other.pod))
            if uses or (one is node and in_conflict(disks, other)):
                users.append(other)
    if users:
        because = f" (ReadWriteOncePod claim {', '.join(claims)})" if claims else " (its disk)"
        yield deleting(sorted(users, key=importance, reverse=True), because)


def _free_attachments(
    _framework: Framework, _pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield deletions of one pod each, then deletions of several pods.

    Only pods on `node` that have volumes are deleted, the least important pods first. A volume
    with a VolumeAttachment counts against the node's volume limit even after its pod is deleted.
    So all of the deletions may be useless.
    """
    users = [other for other in node.pods.values() if other.shape.has_volumes]
    users.sort(key=importance, reverse=True)
    for other in users:
        yield deleting([other], f" on node {node.name}")
    for number in range(2, min(len(users), _TOGETHER_MAX) + 1):
        yield deleting(users[:number], f" on node {node.name}")


_BY_PLUGIN: Final[Mapping[str, tuple[Propose, ...]]] = {
    "NodeUnschedulable": (_uncordon,),
    "TaintToleration": (_tolerate,),
    NODE_AFFINITY: (propose_for_node_affinity,),
    "NodePorts": (_free_port,),
    "NodeResourcesFit": (lower_requests, free_resources),
    "PodTopologySpread": (propose_for_spread,),
    "InterPodAffinity": (delete_conflicting, drop_pod_affinity),
    "VolumeRestrictions": (_free_volumes,),
    "NodeVolumeLimits": (_free_attachments,),
}
# The functions that only delete pods. Some of them read every pod of the cluster.
_DELETING: Final = frozenset(
    (_free_port, free_resources, delete_conflicting, _free_volumes, _free_attachments)
)


def with_spec(node: Node, spec: NodeSpec) -> Node:
    """Return `node` with its spec replaced by `spec`."""
    return replace(node, spec=spec)


def tolerating(pod: Pod, toleration: Toleration) -> Pod:
    """Return `pod` with `toleration` added."""
    spec: PodSpec = replace(pod.spec, tolerations=(*pod.spec.tolerations, toleration))
    return replace(pod, spec=spec)


def _is_of_cordon(taint: Taint) -> bool:
    return taint.key == _UNSCHEDULABLE and taint.effect == NO_SCHEDULE
