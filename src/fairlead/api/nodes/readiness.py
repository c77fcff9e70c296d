"""The Ready condition of a node, and the time between a node's registration and its readiness.

A new node registers, and becomes Ready a moment later. In between, only pods that tolerate the
taint `node.kubernetes.io/not-ready:NoSchedule` can be placed on the node. The pods of system
DaemonSets usually tolerate every taint, so they are placed before other pending pods. A real node
needs some seconds to become Ready. `READY_AFTER` is much shorter: it leaves just enough time to
place the pods that tolerate the taint.

upstream: pkg/kubelet/nodestatus/setters.go: ReadyCondition; pkg/kubelet/runtime.go: runtimeErrors
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Node, NodeCondition
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import NANOSECONDS_PER_MICROSECOND

READY: Final = "Ready"
TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

READY_AFTER: Final = NANOSECONDS_PER_MICROSECOND
"""The time in ns from the registration of a starting node until it is Ready."""
_REASON: Final = "KubeletNotReady"
_MESSAGE: Final = "container runtime status check may not have completed yet"


def ready_condition(node: Node) -> NodeCondition | None:
    """Return the Ready condition of `node`; None if `node` has no Ready condition."""
    found = condition(node, READY)
    assert found is None or isinstance(found, NodeCondition)
    return found


def ready_status(node: Node) -> str:
    """Return the status of the Ready condition: True, False, Unknown, or "" if there is none."""
    found = ready_condition(node)
    return "" if found is None else found.status


def is_ready_node(node: Node) -> bool:
    """Return whether the Ready condition of `node` is True or missing.

    Nodes in manifests and in dumps of simulated clusters may have no conditions.
    """
    return ready_status(node) in (TRUE, "")


def starting_condition(at: str) -> Json:
    """Return the Ready condition of a node that registers at the timestamp `at`."""
    return {
        "type": READY,
        "status": FALSE,
        "reason": _REASON,
        "message": _MESSAGE,
        "lastTransitionTime": at,
        "lastHeartbeatTime": at,
    }


def is_starting(node: Node) -> bool:
    """Return whether `node` has registered but has not become Ready yet."""
    found = ready_condition(node)
    return found is not None and found.status == FALSE and found.message == _MESSAGE
