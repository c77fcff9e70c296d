"""Fairlead's annotations on workloads and nodes.

`fairlead.dev/replaces` on a Pod names the pod it stands in for, the first one of a chain, so
that reports can speak of it under its original's name. `fairlead.dev/drain: requested` on a
Node asks for a drain; taking it away calls the drain off. `fairlead.dev/drain-in-turn` on Nodes
has them drained one after another (fairlead.engine.workloads.drain.rolling_drain); of such a node,
`fairlead.dev/drain` says `done` from when it is empty until it is back.
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
    """The name of the first pod in the chain of replacements that led to `pod`."""
    return pod.metadata.annotations.get(REPLACES, pod.metadata.name)


def is_drain_requested(node: Node) -> bool:
    """Whether somebody wants the node's pods evicted."""
    return node.metadata.annotations.get(DRAIN) == REQUESTED


def is_in_turn(node: Node) -> bool:
    """Whether the node is one of several that are drained in turn."""
    return IN_TURN in node.metadata.annotations
