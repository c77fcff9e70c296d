"""is_ready: whether a pod that the scheduler binds to a node would start there."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node
from fairlead.engine.kubelet.node_condition import ready_status
from fairlead.engine.nodelifecycle.well_known import NOT_READY, TRUE, UNREACHABLE

_TAINTS: Final = frozenset({NOT_READY, UNREACHABLE})


def is_ready(node: Node) -> bool:
    """Return whether the Ready condition of `node` is True or missing and no taint contradicts it.

    The node lifecycle controller taints nodes whose Ready condition is not True as not-ready or
    unreachable.
    """
    is_tainted = any(taint.key in _TAINTS for taint in node.spec.taints)
    return ready_status(node) in (TRUE, "") and not is_tainted
