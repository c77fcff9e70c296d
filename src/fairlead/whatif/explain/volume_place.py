"""Explains on which nodes the volumes of a pod can be used, if not on all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.objects import Pod
from fairlead.apiserver.kind import NODE
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.volume_place import places_of


def volume_places(pod: Pod, inventory: Inventory) -> Iterator[str]:
    """Yield a sentence for each bound claim of `pod` whose volume only some nodes can use.

    Nothing is yielded for a volume with a node affinity without labels.
    """
    nodes = [one.node for one in inventory.of_kind(NODE)]
    labels = {node.metadata.name: node.metadata.labels for node in nodes}
    usable = {
        node.metadata.name for node in nodes if takes_pods(node) and not node.spec.unschedulable
    }
    for place in places_of(pod, inventory):
        if where := place.words(labels, usable):
            yield f"Volume {place.volume} of claim {place.claim} {where}."
