"""Fairlead's annotations on workloads and nodes.

`fairlead.dev/replaces` on a Pod names the pod it stands in for, the first one of a chain, so
that reports can speak of it under its original's name. `fairlead.dev/drain: requested` on a
Node asks for a drain; taking it away calls the drain off.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, Pod

REPLACES: Final = "fairlead.dev/replaces"
DRAIN: Final = "fairlead.dev/drain"
REQUESTED: Final = "requested"


def original_name(pod: Pod) -> str:
    """The name of the first pod in the chain of replacements that led to `pod`."""
    return pod.metadata.annotations.get(REPLACES, pod.metadata.name)


def is_drain_requested(node: Node) -> bool:
    """Whether somebody wants the node's pods evicted."""
    return node.metadata.annotations.get(DRAIN) == REQUESTED
