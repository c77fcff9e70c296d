"""Filters by node conditions, which 1.16 reads directly; current versions use taints instead.

upstream: predicates.go: CheckNodeConditionPredicate, CheckNodeMemoryPressurePredicate, …
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, PodSpec
from fairlead.api.quantity import parse_quantity
from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

NOT_READY: Final = unresolvable("node(s) were not ready").by("CheckNodeCondition")
NO_NETWORK: Final = unresolvable("node(s) had unavailable network").by("CheckNodeCondition")
UNSCHEDULABLE: Final = unresolvable("node(s) were unschedulable").by("CheckNodeCondition")

_PRESSURE_REASONS: Final = {
    "MemoryPressure": "node(s) had memory pressure",
    "DiskPressure": "node(s) had disk pressure",
    "PIDPressure": "node(s) had pid pressure",
}


class CheckNodeCondition:
    """Rejects nodes that are not ready, have no network or are cordoned (Filter).

    Tolerations have no effect.
    """

    name = "CheckNodeCondition"
    locality = Locality.NODE

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node that is not ready, has no network or is cordoned.

        A node without a Ready condition counts as ready.
        """
        if _is_not(node.node, "Ready", "True"):
            return NOT_READY
        if _is_not(node.node, "NetworkUnavailable", "False"):
            return NO_NETWORK
        return UNSCHEDULABLE if node.node.spec.unschedulable else None


def _is_not(node: Node, kind: str, status: str) -> bool:
    return any(c.type == kind and c.status != status for c in node.status.conditions)


class CheckNodePressure:
    """Rejects nodes on which a certain condition, such as MemoryPressure, is True (Filter)."""

    locality = Locality.NODE

    def __init__(self, condition: str, *, only_best_effort: bool = False) -> None:
        """`condition`, such as MemoryPressure, is the condition that makes the plugin reject nodes.

        If `only_best_effort` is set, the plugin rejects nodes only for best-effort pods.
        """
        self.name = f"CheckNode{condition}"
        self._condition = condition
        self._only_best_effort = only_best_effort
        self._rejection = unresolvable(_PRESSURE_REASONS[condition]).by(self.name)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node on which the plugin's condition is True."""
        if self._only_best_effort and not _is_best_effort(pod.shape.spec):
            return None
        found = node.node.status.conditions
        if any(c.type == self._condition and c.status == "True" for c in found):
            return self._rejection
        return None


def _is_best_effort(spec: PodSpec) -> bool:
    """Return True if no container has requests or limits of cpu or memory above 0.

    upstream: qos.go: GetPodQOS
    """
    return not any(
        name in ("cpu", "memory") and parse_quantity(amount).nano > 0
        for container in spec.containers
        for name, amount in (
            *container.resources.requests.items(),
            *container.resources.limits.items(),
        )
    )
