"""Nominator: the nominated node of each pending pod.

upstream: pkg/scheduler/backend/queue/nominator.go
"""

from __future__ import annotations

from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.pod_info import PodInfo


class Nominator:
    """The nominated pods of each node, in order of their last nomination.

    `log` contains the names of nodes whose nominations changed, so that caches can drop the
    verdicts on these nodes. A change of a nominated pod is not logged if no Filter reads the
    changed part.
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self.log: ChangeLog[str] = ChangeLog()

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Nominate the current version of `pod` to `node`; `withdraw` undoes this."""
        uid = pod.uid
        if self._node_of.get(uid) == node:
            pods = self._by_node[node]
            before = pods.pop(uid)
            pods[uid] = pod  # the last of the node's nominations
            if not _counts_equally(before, pod):
                self.log.append(node)
            return
        self.withdraw(uid)
        self._node_of[uid] = node
        self._by_node.setdefault(node, {})[uid] = pod
        self.log.append(node)

    def withdraw(self, uid: str) -> None:
        """Remove the nomination of the pod with `uid`, if there is one."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._by_node[node]
        del pods[uid]
        if not pods:
            del self._by_node[node]
        self.log.append(node)

    def node_of(self, uid: str) -> str:
        """Return the node to which the pod with `uid` is nominated; "" if it is not nominated."""
        return self._node_of.get(uid, "")

    def pods_on(self, node: str) -> list[PodInfo]:
        """Return the pods nominated to `node`, earliest nomination first."""
        return list(self._by_node.get(node, {}).values())

    def nodes(self) -> list[str]:
        """Return the nodes with at least one nominated pod."""
        return list(self._by_node)

    def competing_pods_on(self, node: str, pod: PodInfo) -> list[PodInfo]:
        """Return the other pods nominated to `node` that have at least the priority of `pod`.

        upstream: framework/runtime/framework.go: addGENominatedPods
        """
        pods = self._by_node.get(node)
        if not pods:
            return []
        return [p for p in pods.values() if p.priority >= pod.priority and p.uid != pod.uid]


def _counts_equally(before: PodInfo, after: PodInfo) -> bool:
    """Return whether Filters treat two versions of a nominated pod equally."""
    return (
        before.shape is after.shape
        and before.priority == after.priority
        and before.labels == after.labels
        and before.terminating == after.terminating
        and before.pod.metadata.annotations == after.pod.metadata.annotations
    )
