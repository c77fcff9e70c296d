"""Fairlead's annotations on pods and nodes.

`fairlead.dev/replaces` on a Pod names the original pod that it replaces (directly or through other
replacements), so that reports can use that name. `fairlead.dev/drain: requested` on a Node requests
a drain; removing it cancels the drain. `fairlead.dev/drain-in-turn` on Nodes drains them one after
another (see `drain.rolling_drain`); for such a node, `fairlead.dev/drain` is `done` while it is
empty and not yet back.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, Pod

REPLACES: Final = "fairlead.dev/replaces"
DRAIN: Final = "fairlead.dev/drain"
REQUESTED: Final = "requested"
DONE: Final = "done"
IN_TURN: Final = "fairlead.dev/drain-in-turn"


def original_name(pod: Pod) -> str:
    """Return the name of the original pod that `pod` replaces, directly or indirectly."""
    return pod.metadata.annotations.get(REPLACES, pod.metadata.name)


def is_drain_requested(node: Node) -> bool:
    """Return whether the node's pods are to be evicted."""
    return node.metadata.annotations.get(DRAIN) == REQUESTED


def is_in_turn(node: Node) -> bool:
    """Return whether the node belongs to a rolling drain."""
    return IN_TURN in node.metadata.annotations
