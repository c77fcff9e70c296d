"""Fairlead's annotations on nodes.

`fairlead.dev/drain: requested` requests a drain. Removing the annotation cancels the drain.

`fairlead.dev/drain-in-turn` on several Nodes drains these nodes one after another (see
`drain.rolling_drain`).

When a drained node is empty, `fairlead.dev/drain` becomes `done` if the node is in a rolling drain
or is being deleted. In a rolling drain, the annotation stays `done` until the node returns to
service. A node that is being deleted loses Karpenter's finalizer next.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node

DRAIN: Final = "fairlead.dev/drain"
REQUESTED: Final = "requested"
DONE: Final = "done"
IN_TURN: Final = "fairlead.dev/drain-in-turn"


def is_drain_requested(node: Node) -> bool:
    """Return whether the node's `fairlead.dev/drain` annotation requests a drain."""
    return node.metadata.annotations.get(DRAIN) == REQUESTED


def is_in_turn(node: Node) -> bool:
    """Return whether `fairlead.dev/drain-in-turn` puts the node in a rolling drain."""
    return IN_TURN in node.metadata.annotations
