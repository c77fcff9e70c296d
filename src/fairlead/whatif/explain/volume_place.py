"""Explains on which nodes the volumes of a pod can be used, if not on all nodes.

The scheduler says only how many nodes do not match the node affinity of a volume. It names neither
the volume nor the zone or node that the volume needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.codec import decode_as
from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from fairlead.whatif.explain.node_requirement import requirement_words
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.inventory import Inventory


def volume_places(pod: Pod, inventory: Inventory) -> Iterator[str]:
    """Yield a sentence for each bound claim of `pod` whose volume only some nodes can use.

    Nothing is yielded for a volume with a node affinity without labels.
    """
    namespace = pod.metadata.namespace
    for name in all_claims(pod):
        claim = inventory.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        spec = None if claim is None else decode_as(PersistentVolumeClaim, claim.value).spec
        volume = None if spec is None else inventory.get(PERSISTENT_VOLUME, "", spec.volume_name)
        if volume is None:
            continue
        affinity = decode_as(PersistentVolume, volume.value).spec.node_affinity
        if affinity is not None and affinity.required is not None:
            what = f"Volume {volume.ref.name} of claim {namespace}/{name}"
            if where := _where(affinity.required, inventory):
                yield f"{what} {where}."


def _where(selector: NodeSelector, inventory: Inventory) -> str:
    """Return the nodes that `selector` matches, as a predicate; "" if it matches all nodes."""
    nodes = [one.node for one in inventory.of_kind(NODE)]
    found = [
        node
        for node in nodes
        if node_selector_matches(selector, node.metadata.labels, node.metadata.name)
    ]
    words = " or ".join(
        joined(map(requirement_words, term.match_expressions))
        for term in selector.node_selector_terms
        if term.match_expressions
    )
    if not words or len(found) == len(nodes):
        return ""
    if not found:
        return f"needs a node with {words}, but no node has this"
    names = listed([node.metadata.name for node in found])
    usable = f"can be used only on {names} ({words})"
    if any(takes_pods(node) and not node.spec.unschedulable for node in found):
        return usable
    return f"{usable}, which {'takes' if len(found) == 1 else 'take'} no new pods"
