"""Well-known conditions, taints and labels of nodes.

upstream: staging/src/k8s.io/api/core/v1/well_known_taints.go, well_known_labels.go, types.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.nodes.readiness import FALSE, UNKNOWN

MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"
NETWORK_UNAVAILABLE: Final = "NetworkUnavailable"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

NODE_CONTROLLER: Final = "node-controller"
DISRUPTION_TARGET: Final = "DisruptionTarget"

# The NoExecute taint for each Ready status; a node has at most one of the two.
TAINT_OF_STATUS: Final = {FALSE: NOT_READY, UNKNOWN: UNREACHABLE}
OPPOSITE_TAINT: Final = {NOT_READY: UNREACHABLE, UNREACHABLE: NOT_READY}
