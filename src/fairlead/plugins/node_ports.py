"""NodePorts: a host port is free on the node, or the pod does not fit (plugins/nodeports)."""

from __future__ import annotations

from typing import Final

from fairlead.api.host_port import ports_conflict
from fairlead.core.status import SKIP, Status, unschedulable
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import Locality
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo

CONFLICT: Final = unschedulable(
    "node(s) didn't have free ports for the requested pod ports"
).by("NodePorts")


class NodePorts:
    """PreFilter and Filter."""

    name = "NodePorts"
    locality = Locality.ROW

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Skipped for pods without host ports."""
        return None if pod.shape.host_ports else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Any wanted port against any used one."""
        used = node.used_ports
        if used and any(ports_conflict(a, b) for a in pod.shape.host_ports for b in used):
            return CONFLICT
        return None
