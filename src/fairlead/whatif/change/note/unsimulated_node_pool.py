"""Changes of Karpenter's objects that have no effect because nothing simulates them.

In a cluster, Karpenter drains and deletes the nodes of a deleted NodePool or NodeClaim. If a change
makes the nodes of a NodePool drift, Karpenter replaces them. A change of a node class makes the
nodes of its NodePools drift, and a deleted node class makes its NodePools not Ready.

upstream: sigs.k8s.io/karpenter pkg/apis/v1/nodeclaim.go (ownerReferences);
pkg/controllers/nodeclaim/disruption/drift.go; pkg/controllers/nodepool/readiness/controller.go;
karpenter-provider-aws pkg/cloudprovider/drift.go: areStaticFieldsDrifted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.json import mapping, text
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_class import is_node_class

NODE_POOL_GROUP: Final = "karpenter.sh"
"""The API group of NodePools, NodeClaims and NodeOverlays."""
_NODE_POOL: Final = "NodePool"
_CLASS: Final = ("spec", "template", "spec", "nodeClassRef")
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


class KarpenterChange(Struct, frozen=True):
    """The part of a change that concerns objects of Karpenter and node classes of its providers.

    `written` are the objects that the change creates or alters, `deleted` those that it deletes.
    `altered_classes` and `deleted_classes` are the node classes that existed before; a new node
    class is in `written`. `existing` are the nodes and objects of Karpenter before the change.
    """

    written: tuple[Manifest, ...]
    deleted: tuple[Manifest, ...]
    altered_classes: tuple[Manifest, ...]
    deleted_classes: tuple[Manifest, ...]
    existing: tuple[Manifest, ...]

    def unsimulated(self, *, by_karpenter: bool) -> tuple[list[Manifest], list[Manifest]]:
        """Return the (written, deleted) objects that have no effect here.

        `by_karpenter` says whether Karpenter is simulated. If so, only changes of node classes have
        no effect.
        """
        if by_karpenter:
            return [*self.altered_classes], [*self.deleted_classes]
        return [*self.written, *self.altered_classes], [*self.deleted, *self.deleted_classes]

    def notes(self, *, by_karpenter: bool) -> Iterator[str]:
        """Yield notes about the objects that have no effect here, and their effect in a cluster.

        `by_karpenter` says whether Karpenter is simulated.
        """
        words = unsimulated_change(self.written, self.deleted)
        if words and not by_karpenter:
            yield (
                f"{_has_no_effect(words)}, because Karpenter is not simulated; --autoscale "
                f"karpenter simulates it.{_in_cluster(self._effects_on_nodes())}"
            )
        words = unsimulated_change(self.altered_classes, self.deleted_classes)
        if words:
            why = "changes of node classes are not simulated"
            if by_karpenter:
                why = "new nodes have the settings of the node classes in the dump in both runs"
            in_cluster = _in_cluster(self._effects_of_classes())
            yield f"{_has_no_effect(words)}, because {why}.{in_cluster}{self._replacement()}"

    def _effects_on_nodes(self) -> Iterator[str]:
        templates = {one.ref: mapping(one.value, "spec", "template") for one in self.existing}
        drifting = [
            one
            for one in self.written
            if one.kind.kind == _NODE_POOL
            and mapping(one.value, "spec", "template") != templates.get(one.ref)
        ]
        if drained := _count(self.existing, self.deleted):
            yield f"drains and deletes {counted(drained, 'node')}"
        if replaced := _count(self.existing, drifting):
            yield f"may replace {counted(replaced, 'node')}"

    def _effects_of_classes(self) -> Iterator[str]:
        if replaced := _count(self.existing, self._pools_of(self.altered_classes)):
            yield f"may replace {counted(replaced, 'node')}, which drift"
        if pools := self._pools_of(self.deleted_classes):
            yield f"creates no new nodes from {listed([one.title for one in pools], _NAMES_MAX)}"

    def _replacement(self) -> str:
        """Return how to simulate the replacement of the nodes of altered classes, or ""."""
        pools = self._pools_of(self.altered_classes)
        if not _count(self.existing, pools):
            return ""
        path = "spec.template.metadata.annotations.replace=now"
        options = (f"--set nodepool/{one.ref.name}:{path}" for one in pools)
        return f" To simulate this: --autoscale karpenter {' '.join(options)}"

    def _pools_of(self, classes: Iterable[Manifest]) -> list[Manifest]:
        names = {(one.kind.group, one.kind.kind, one.ref.name) for one in classes}
        return [
            one
            for one in self.existing
            if one.kind.kind == _NODE_POOL
            if tuple(text(one.value, *_CLASS, key) for key in ("group", "kind", "name")) in names
        ]


def karpenter_change(
    written: Iterable[Manifest], deleted: Iterable[Manifest], existing: Iterable[Manifest]
) -> KarpenterChange:
    """Return the KarpenterChange of a change.

    `written` and `deleted` are the objects that the change writes and deletes. Objects that the
    change leaves as they are in `existing` are left out.
    """
    before = {one.ref: one for one in existing if one.kind is NODE or _is_of_karpenter(one)}
    different = [
        one
        for one in written
        if _is_of_karpenter(one)
        and (one.ref not in before or _stated(one) != _stated(before[one.ref]))
    ]
    gone = [one for one in deleted if _is_of_karpenter(one)]
    return KarpenterChange(
        tuple(one for one in different if not is_node_class(one) or one.ref not in before),
        tuple(one for one in gone if not is_node_class(one)),
        tuple(one for one in different if is_node_class(one) and one.ref in before),
        tuple(one for one in gone if is_node_class(one)),
        tuple(before.values()),
    )


def _is_of_karpenter(one: Manifest) -> bool:
    return one.kind.group == NODE_POOL_GROUP or is_node_class(one)


def _stated(one: Manifest) -> object:
    """Return what `one` states, except its status."""
    return {key: value for key, value in one.value.items() if key != "status"}


def _has_no_effect(words: str) -> str:
    verb = "have" if " and " in words else "has"
    return f"{words[0].upper()}{words[1:]} {verb} no effect on nodes here"


def _in_cluster(effects: Iterable[str]) -> str:
    found = [*effects]
    return f" In the cluster, Karpenter {joined(found)}." if found else ""


def _count(found: Iterable[Manifest], objects: Iterable[Manifest]) -> int:
    """Return how many nodes in `found` belong to `objects`, which are NodePools and NodeClaims."""
    pools, names = set(), set()
    for one in objects:
        if one.kind.kind == _NODE_POOL:
            pools.add(one.ref.name)
        else:
            names.add(text(one.value, "status", "nodeName"))
    return sum(
        node.metadata.labels.get(NODE_POOL) in pools or node.ref.name in names
        for node in found
        if node.kind is NODE
    )
