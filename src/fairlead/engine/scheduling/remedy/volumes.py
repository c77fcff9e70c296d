"""Remedies for volumes: delete the pods that use an exclusive claim or too many volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import PersistentVolumeClaim
from fairlead.api.pods.volumes import is_exclusive, named_claims
from fairlead.engine.core.status import Status
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.volume_restrictions import READ_WRITE_ONCE_POD, in_conflict
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.remedy.change import RemedyChange, deleting
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

_TOGETHER_MAX: Final = 10


def propose_for_exclusive_volumes(
    framework: Framework, pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield the deletion of the pods whose volumes exclude `pod`.

    These are the pods on all nodes that use a ReadWriteOncePod claim of `pod`, and the pods on
    `node` that use one of its disks.
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


def propose_for_volume_limits(
    _framework: Framework, _pod: PodInfo, node: NodeInfo, _status: Status
) -> Iterator[RemedyChange]:
    """Yield the deletion of each pod with volumes on `node`, then of several of them.

    The least important pods come first.

    A volume that stays attached without a pod still counts, and then no change is a remedy.
    """
    users = [other for other in node.pods.values() if other.shape.has_volumes]
    users.sort(key=importance, reverse=True)
    for other in users:
        yield deleting([other], f" on node {node.name}")
    for number in range(2, min(len(users), _TOGETHER_MAX) + 1):
        yield deleting(users[:number], f" on node {node.name}")
