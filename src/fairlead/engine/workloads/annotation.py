"""Fairlead's annotations on pods and nodes.

`fairlead.dev/replaces` on a Pod contains the name of the original pod that it replaces, directly or
through other replacements. Reports show that name. `fairlead.dev/drain: requested` on a Node
requests a drain. Removing the annotation cancels the drain.

`fairlead.dev/drain-in-turn` on several Nodes drains these nodes one after another (see
`drain.rolling_drain`). During a rolling drain, `fairlead.dev/drain` is `done` on a node that has
been emptied and has not yet returned to service. It is also `done` on a deleted node that has been
emptied, before its finalizers are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import Node, Pod
from fairlead.api.pods.replicas import Replicas

REPLACES: Final = "fairlead.dev/replaces"
DRAIN: Final = "fairlead.dev/drain"
REQUESTED: Final = "requested"
DONE: Final = "done"
IN_TURN: Final = "fairlead.dev/drain-in-turn"


def original_name(pod: Pod) -> str:
    """Return the name of the original pod that `pod` replaces, directly or indirectly.

    If `pod` replaces no pod, return its own name.
    """
    return pod.metadata.annotations.get(REPLACES, pod.metadata.name)


def original_key(pod: Pod) -> str:
    """Return `namespace/name` of the original pod that `pod` replaces, directly or indirectly."""
    return f"{pod.metadata.namespace}/{original_name(pod)}"


def original_keys(replicas: Replicas) -> Sequence[str]:
    """Return the `original_key` of each of `replicas`, all of which have the same annotations."""
    first = replicas[0]
    if REPLACES not in first.metadata.annotations:
        return replicas.keys
    return [original_key(first)] * len(replicas)


def is_drain_requested(node: Node) -> bool:
    """Return whether the node's `fairlead.dev/drain` annotation requests a drain."""
    return node.metadata.annotations.get(DRAIN) == REQUESTED


def is_in_turn(node: Node) -> bool:
    """Return whether `fairlead.dev/drain-in-turn` puts the node in a rolling drain."""
    return IN_TURN in node.metadata.annotations
