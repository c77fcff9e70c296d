"""VolumePlace: on which nodes the volume of a bound claim can be used, if not on all nodes.

The scheduler says only how many nodes do not match the node affinity of a volume. It names neither
the volume nor the zone or node that the volume needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.nodes.node_selector import node_selector_matches, requirement_words
from fairlead.api.objects import NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.api.selector import Labels
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from fairlead.whatif.snapshot.inventory import Inventory


class VolumePlace(Struct, frozen=True):
    """The volume `volume` of the bound claim `claim` (NAMESPACE/NAME).

    Only the nodes that `selector` matches can use the volume.
    """

    volume: str
    claim: str
    selector: NodeSelector

    def nodes(self, nodes: Mapping[str, Labels]) -> list[str]:
        """Return those of `nodes`, which maps names to labels, that can use the volume."""
        return [
            name for name, labels in nodes.items()
            if node_selector_matches(self.selector, labels, name)
        ]  # fmt: skip

    def words(
        self, nodes: Mapping[str, Labels], usable: Collection[str], *, is_plural: bool = False
    ) -> str:
        """Return where the volume can be used, as a predicate; "" if on all nodes.

        `nodes` maps names to labels, and `usable` are the names of the nodes that take new pods. If
        `is_plural` is set, the subject of the predicate is several volumes.
        """
        found = self.nodes(nodes)
        words = " or ".join(
            joined(map(requirement_words, term.match_expressions))
            for term in self.selector.node_selector_terms
            if term.match_expressions
        )
        if not words or len(found) == len(nodes):
            return ""
        if not found:
            needs = "need" if is_plural else "needs"
            return f"{needs} a node with {words}, but no node has this"
        place = f"can be used only on {listed(found)} ({words})"
        if any(name in usable for name in found):
            return place
        return f"{place}, which {'takes' if len(found) == 1 else 'take'} no new pods"


def places_of(pod: Pod, inventory: Inventory) -> Iterator[VolumePlace]:
    """Yield the places of the volumes of `pod` that have a node affinity.

    Claims that are not bound, or whose volume is not in `inventory`, are left out.
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
            yield VolumePlace(volume.ref.name, f"{namespace}/{name}", affinity.required)
