"""PodEvictionMode: deletes the pods of not-ready nodes after `pod_eviction_timeout`.

If a node reports NotReady, its timeout starts with the monitor pass that notices this. If a node
sends no heartbeats, its timeout starts with the monitor pass that noticed its last heartbeat. Nodes
are processed at the zone's rate: their pods are deleted, except the pods of DaemonSets. A processed
node is not processed again before it has been ready.

upstream (1.16): pkg/controller/nodelifecycle/node_lifecycle_controller.go:monitorNodeHealth,
doEvictionPass, pkg/controller/util/node/controller_utils.go:DeletePods, SetPodTerminationReason
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.nodes.readiness import FALSE, UNKNOWN
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_daemon_pod, is_terminating
from fairlead.engine.core.command import (
    Command,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    node_ref,
    pod_ref,
)
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import NodeEmptied, PodEvicted, Reporter
from fairlead.engine.nodelifecycle.eviction.mode import Observation
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.node_edit import FindNode
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.well_known import NODE_CONTROLLER
from fairlead.engine.nodelifecycle.zones.zone_queues import ZoneQueues

# Reason and message of upstream's pkg/util/node/node.go.
NODE_LOST: Final = "NodeLost"
NODE_LOST_MESSAGE: Final = "Node {node} which was running pod {pod} is unresponsive"
WHY: Final = "node lost"


class PodEvictionMode:
    """The eviction mode before 1.13: deletes the pods of not-ready nodes."""

    def __init__(
        self,
        queues: ZoneQueues,
        pods: NodePods,
        find: FindNode,
        timeout: DurationNs,
        reporter: Reporter,
    ) -> None:
        """`find` returns the newest version of a node; `timeout` is --pod-eviction-timeout (ns)."""
        self._queues = queues
        self._pods = pods
        self._find = find
        self._timeout = timeout
        self._reporter = reporter

    @property
    def queues(self) -> ZoneQueues:
        """The queues of nodes with pods to delete, by zone."""
        return self._queues

    def on_not_ready(self, seen: Observation) -> list[Command]:
        """Queue the node if its timeout has expired; return []."""
        due = self.next_check(seen.status, seen.health)
        if due is not None and seen.now > due:
            self._queues[seen.zone].add(seen.name, seen.now)
        return []

    def on_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """Remove `node` from the eviction queue of `zone`; return []."""
        self._queues[zone].remove(node.metadata.name)
        return []

    def next_check(self, status: str, health: NodeHealth) -> Instant | None:
        """Return the time at which the node's `pod_eviction_timeout` expires.

        `status` is the status of the node's Ready condition. Returns None if the status is True.
        """
        since = {FALSE: health.ready_since, UNKNOWN: health.probe}.get(status)
        return None if since is None else since + self._timeout

    def process(self, zone: str, name: str, now: Instant) -> list[Command]:
        """Set status.reason of the pods on the node `name` to NodeLost, and delete the pods.

        Pods of DaemonSets and pods that are already terminating are not deleted.
        """
        self._queues[zone].finish(name)
        node = self._find(name)
        if node is not None:
            self._reporter.report(NodeEmptied(name, zone, now))
        pods = self._pods.on(name)
        if not pods:
            return []
        ref = ObjectRef("Node", "", name) if node is None else node_ref(node)
        text = f"Node {name} event: Deleting all Pods from Node {name}."
        commands: list[Command] = [_event(ref, "DeletingAllPods", text)]
        for pod in pods:
            commands += self._delete(pod, now)
        return commands

    def _delete(self, pod: Pod, now: Instant) -> Iterator[Command]:
        ref, node = pod_ref(pod), pod.spec.node_name
        if pod.status.reason != NODE_LOST:
            message = NODE_LOST_MESSAGE.format(node=node, pod=ref.name)
            yield PatchStatus(ref, {"reason": NODE_LOST, "message": message})
        if is_terminating(pod) or is_daemon_pod(pod):
            return
        text = f"Marking for deletion Pod {ref.name} from Node {node}"
        yield _event(ref, "NodeControllerEviction", text)
        yield DeleteObject(ref, why=WHY)
        self._reporter.report(PodEvicted(ref, node, WHY, now))


def _event(regarding: ObjectRef, reason: str, note: str) -> RecordEvent:
    return RecordEvent(regarding, "Normal", reason, "", note, NODE_CONTROLLER)
