"""The names and words of upstream that the rules here share.

upstream: staging/src/k8s.io/api/core/v1/well_known_taints.go, well_known_labels.go, types.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pod import condition

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
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

NODE_CONTROLLER: Final = "node-controller"
DISRUPTION_TARGET: Final = "DisruptionTarget"

# What a node that is not ready is tainted with, so that its pods leave; each excludes the other.
TAINT_OF_STATUS: Final = {FALSE: NOT_READY, UNKNOWN: UNREACHABLE}
OPPOSITE: Final = {NOT_READY: UNREACHABLE, UNREACHABLE: NOT_READY}


def ready_condition(node: Node) -> NodeCondition | None:
    """The Ready condition of `node`, None when nobody ever posted one."""
    found = condition(node, READY)
    assert found is None or isinstance(found, NodeCondition)
    return found


def ready_status(node: Node) -> str:
    """True, False, Unknown; "" when there is no Ready condition."""
    found = ready_condition(node)
    return "" if found is None else found.status
