"""Changes of Karpenter's objects that have no effect because Karpenter is not simulated.

In a cluster, Karpenter drains and deletes the nodes of a deleted NodePool or NodeClaim. If a change
makes the nodes of a NodePool drift, Karpenter replaces them.

upstream: sigs.k8s.io/karpenter pkg/apis/v1/nodeclaim.go (ownerReferences);
pkg/controllers/nodeclaim/disruption/drift.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.json import mapping, text
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.whatif.snapshot.manifest import Manifest

NODE_POOL_GROUP: Final = "karpenter.sh"
"""The API group of NodePools, NodeClaims and NodeOverlays."""
_NODE_POOL: Final = "NodePool"
_NAMES_MAX: Final = 2


def unsimulated_change(written: Iterable[Manifest], deleted: Iterable[Manifest]) -> str:
    """Return words such as `the deletion of NodePool spot`; "" if there are no objects.

    `written` and `deleted` are objects that the change writes and deletes without an effect.
    """
    parts = []
    for what, objects in (("change", written), ("deletion", deleted)):
        if titles := [one.title for one in objects]:
            parts.append(f"the {what} of {listed(titles, _NAMES_MAX)}")
    return joined(parts) if parts else ""


def unsimulated_notes(
    written: Sequence[Manifest], deleted: Sequence[Manifest], existing: Iterable[Manifest]
) -> Iterator[str]:
    """Yield a note if a change of Karpenter's objects has no effect on nodes in this answer.

    `written` and `deleted` are the objects that the change writes and deletes. `existing` are the
    objects before the change.
    """
    written = [one for one in written if one.kind.group == NODE_POOL_GROUP]
    deleted = [one for one in deleted if one.kind.group == NODE_POOL_GROUP]
    words = unsimulated_change(written, deleted)
    if not words:
        return
    before = [one for one in existing if one.kind is NODE or one.kind.group == NODE_POOL_GROUP]
    templates = {one.ref: mapping(one.value, "spec", "template") for one in before}
    drifting = [
        one
        for one in written
        if one.kind.kind == _NODE_POOL
        and mapping(one.value, "spec", "template") != templates.get(one.ref)
    ]
    nodes = [one for one in before if one.kind is NODE]
    effects = []
    if drained := _count(nodes, deleted):
        effects.append(f"drains and deletes {counted(drained, 'node')}")
    if replaced := _count(nodes, drifting):
        effects.append(f"may replace {counted(replaced, 'node')}")
    in_cluster = f" In the cluster, Karpenter {joined(effects)}." if effects else ""
    verb = "have" if " and " in words else "has"
    yield (
        f"{words[0].upper()}{words[1:]} {verb} no effect on nodes here, because Karpenter is not "
        f"simulated; --autoscale karpenter simulates it.{in_cluster}"
    )


def _count(nodes: Iterable[Manifest], objects: Iterable[Manifest]) -> int:
    """Return how many of `nodes` belong to `objects`, which are NodePools and NodeClaims."""
    pools, names = set(), set()
    for one in objects:
        if one.kind.kind == _NODE_POOL:
            pools.add(one.ref.name)
        else:
            names.add(text(one.value, "status", "nodeName"))
    return sum(
        node.metadata.labels.get(NODE_POOL) in pools or node.ref.name in names for node in nodes
    )
