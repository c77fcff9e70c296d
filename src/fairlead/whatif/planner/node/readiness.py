"""takes_pods: whether a pod that the scheduler binds to a node would start there."""

from __future__ import annotations

from typing import Final

from fairlead.api.nodes.readiness import is_ready_node
from fairlead.api.objects import Node
from fairlead.api.well_known_label import is_fargate
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE
from fairlead.whatif.planner.node.drain_exemption import deletion_words

_TAINTS: Final = frozenset({NOT_READY, UNREACHABLE})


def takes_pods(node: Node) -> bool:
    """Return whether `node` is Ready, is not being deleted, and is not a Fargate node.

    A node is Ready if its Ready condition is True or missing. In addition, it must not have the
    taint not-ready or unreachable of the node lifecycle controller. A Fargate node runs only its
    own pod.
    """
    is_tainted = any(taint.key in _TAINTS for taint in node.spec.taints)
    is_ready = is_ready_node(node) and not is_tainted
    return is_ready and not is_fargate(node.metadata.labels) and not deletion_words(node)
