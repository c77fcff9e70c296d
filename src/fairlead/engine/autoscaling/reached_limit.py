"""ReachedLimit: a limit that keeps an autoscaler from adding a node for a pending pod."""

from __future__ import annotations

from msgspec import Struct


class ReachedLimit(Struct, frozen=True):
    """A limit without which a pending pod would get a new node.

    `kind` is the kind of the object that has the limit: `NodePool`, `node group` or `flag`. `name`
    is its name. `amount` is the limit in words, such as `cpu 120, 116 in use` or `3 nodes`.
    """

    kind: str
    name: str
    amount: str
