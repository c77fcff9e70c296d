"""Explains which nodes can use the volumes of a pod, if only some nodes can."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.objects import Node, Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.apiserver.kind import NODE
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.volume_place import PlaceFinder, PlaceNode, placed_volumes


def volume_places(pod: Pod, inventory: Inventory) -> Iterator[str]:
    """Yield a sentence for each bound claim of `pod` whose volume only some nodes can use.

    Nothing is yielded for a volume whose node affinity has no labels.
    """
    finder = PlaceFinder(_place_node(one.node) for one in inventory.of_kind(NODE))
    for one in placed_volumes(pod.metadata.namespace, all_claims(pod), inventory):
        if place := finder.find(one.selector, [pod.spec.tolerations]):
            yield f"Volume {one.volume} of claim {one.claim} {place.words()}."


def _place_node(node: Node) -> PlaceNode:
    meta, spec = node.metadata, node.spec
    return PlaceNode(meta.name, meta.labels, takes_pods(node), spec.unschedulable, spec.taints)
