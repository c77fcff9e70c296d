"""NodePorts: the pod's host ports must be free on the node (plugins/nodeports)."""

from __future__ import annotations

from typing import Final

from fairlead.api.pods.host_port import ports_conflict
from fairlead.engine.core.status import SKIP, Status, unschedulable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

CONFLICT: Final = unschedulable("node(s) didn't have free ports for the requested pod ports").by(
    "NodePorts"
)


class NodePorts:
    """Rejects nodes on which a host port of the pod is already in use (PreFilter, Filter)."""

    name = "NodePorts"
    locality = Locality.ROW
    events = frozenset({EventKind.NODE_ADD, EventKind.ASSIGNED_POD_DELETE})
    wakes_alike = True

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod has no host ports."""
        return None if pod.shape.host_ports else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject the node if a host port of the pod conflicts with a used port."""
        used = node.used_ports
        if used and any(ports_conflict(a, b) for a in pod.shape.host_ports for b in used):
            return CONFLICT
        return None

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a node was added, or a pod with a conflicting port was removed."""
        gone = event.old
        if not isinstance(gone, PodInfo):
            return True
        wanted, used = pod.shape.host_ports, gone.shape.host_ports
        return any(ports_conflict(a, b) for a in wanted for b in used)
