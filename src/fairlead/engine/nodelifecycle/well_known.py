"""Well-known conditions, taints and labels of nodes.

upstream: staging/src/k8s.io/api/core/v1/well_known_taints.go, well_known_labels.go, types.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pods.facts import condition

READY: Final = "Ready"
MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"
NETWORK_UNAVAILABLE: Final = "NetworkUnavailable"

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

NODE_CONTROLLER: Final = "node-controller"
DISRUPTION_TARGET: Final = "DisruptionTarget"

# The NoExecute taint for each Ready status; a node has at most one of the two.
TAINT_OF_STATUS: Final = {FALSE: NOT_READY, UNKNOWN: UNREACHABLE}
OPPOSITE_TAINT: Final = {NOT_READY: UNREACHABLE, UNREACHABLE: NOT_READY}


def ready_condition(node: Node) -> NodeCondition | None:
    """Return the Ready condition of `node`; None if `node` has no Ready condition."""
    found = condition(node, READY)
    assert found is None or isinstance(found, NodeCondition)
    return found


def ready_status(node: Node) -> str:
    """Return the status of the Ready condition: True, False, Unknown, or "" if there is none."""
    found = ready_condition(node)
    return "" if found is None else found.status
