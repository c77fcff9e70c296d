"""NodeUnschedulable: rejects cordoned nodes (plugins/nodeunschedulable)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from fairlead.api.nodes.taint import tolerates
from fairlead.api.objects import Node, Taint
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

UNSCHEDULABLE: Final = unresolvable("node(s) were unschedulable").by("NodeUnschedulable")
# The taint that a pod must tolerate to run on a cordoned node, whether or not the node has it.
_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates_cordon(pod: PodInfo) -> bool:
    """Return whether `pod` may run on cordoned nodes."""
    return any(tolerates(toleration, _CORDON) for toleration in pod.shape.spec.tolerations)


class NodeUnschedulable:
    """Rejects cordoned nodes if the pod does not tolerate the unschedulable taint (Filter)."""

    name = "NodeUnschedulable"
    locality = Locality.NODE
    events = frozenset({EventKind.NODE_ADD, EventKind.NODE_TAINT, EventKind.POD_TOLERATION})
    wakes_alike = True

    def shape_key(self, shape: Shape) -> Hashable:
        """Return the tolerations, the only part of a `Shape` that this plugin reads."""
        return shape.spec.tolerations

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a cordoned node if the pod does not tolerate the unschedulable taint."""
        if not node.node.spec.unschedulable:
            return None
        if tolerates_cordon(pod):
            return None
        return UNSCHEDULABLE

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        codes = table.values(table.unschedulable, rows).astype(np.int32)
        if tolerates_cordon(pod):
            codes[:] = 0
        return Verdicts(codes, (UNSCHEDULABLE, UNSCHEDULABLE))

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a node was added or uncordoned, or the pod now tolerates cordoned nodes.

        An added node counts only if it is not cordoned.
        """
        old, new = event.old, event.new
        if isinstance(new, Node):
            cordoned_before = not isinstance(old, Node) or old.spec.unschedulable
            return cordoned_before and not new.spec.unschedulable
        return any(tolerates(toleration, _CORDON) for toleration in pod.shape.spec.tolerations)
