"""The start of a new node: it registers, and becomes Ready a moment later.

In between, only pods that tolerate the taint `node.kubernetes.io/not-ready` can be placed on the
node. Pods of most DaemonSets tolerate it, so they are placed before other pending pods. A real node
needs some seconds to become Ready. `READY_AFTER` is much shorter and only ensures this order.

upstream: pkg/kubelet/nodestatus/setters.go: ReadyCondition; pkg/kubelet/runtime.go: runtimeErrors
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import NANOSECONDS_PER_MICROSECOND

READY_AFTER: Final = NANOSECONDS_PER_MICROSECOND
"""The time in ns from the registration of a starting node until it is Ready."""
_READY: Final = "Ready"
_REASON: Final = "KubeletNotReady"
_MESSAGE: Final = "container runtime status check may not have completed yet"


def starting_condition(at: str) -> Json:
    """Return the Ready condition of a node that registers at the timestamp `at`."""
    return {
        "type": _READY,
        "status": "False",
        "reason": _REASON,
        "message": _MESSAGE,
        "lastTransitionTime": at,
        "lastHeartbeatTime": at,
    }


def is_starting(node: Node) -> bool:
    """Return whether `node` has registered but has not become Ready yet."""
    found = condition(node, _READY)
    return found is not None and found.status == "False" and found.message == _MESSAGE
