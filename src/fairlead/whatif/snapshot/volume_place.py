"""Places: the only nodes on which the volume of a bound claim can be used.

The scheduler says only how many nodes do not match the node affinity of a volume. The message names
neither the volume nor the zone or node that the volume needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.nodes.node_selector import requirement_words, term_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import (
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Taint,
    Toleration,
)
from fairlead.api.selector import Labels
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from fairlead.whatif.snapshot.inventory import Inventory

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class PlaceNode(Struct, frozen=True):
    """A node that may be able to use a volume.

    `is_ready` means that a pod that is bound to the node would start there. `unschedulable` means
    that the node is cordoned.
    """

    name: str
    labels: Labels
    is_ready: bool
    unschedulable: bool
    taints: Collection[Taint]

    def admits(self, tolerations: Collection[Toleration]) -> bool:
        """Return whether the node, if it has room, takes new pods with `tolerations`."""
        taints = (_CORDON, *self.taints) if self.unschedulable else self.taints
        untolerated = find_untolerated(taints, tolerations, (NO_SCHEDULE, NO_EXECUTE))
        return self.is_ready and untolerated is None


class Place(Struct, frozen=True):
    """The nodes that can use a volume; at least one other node cannot use it."""

    requirement: str  # a text that states the labels of these nodes
    nodes: tuple[str, ...]
    is_open: bool  # whether one of `nodes` admits a pod that uses the volume
    in_service: bool  # whether one of `nodes` is ready and is not cordoned

    def words(self, *, is_plural: bool = False) -> str:
        """Return where the volume can be used, as a predicate.

        If `is_plural` is set, the subject of the predicate is several volumes.
        """
        if not self.nodes:
            needs = "need" if is_plural else "needs"
            return f"{needs} a node with {self.requirement}, but no node has this"
        place = f"can be used only on {listed(self.nodes)} ({self.requirement})"
        if self.is_open:
            return place
        is_one = len(self.nodes) == 1
        if self.in_service:
            return f"{place}, which {'does' if is_one else 'do'} not admit new pods of this kind"
        return f"{place}, which {'takes' if is_one else 'take'} no new pods"


class PlaceFinder:
    """Finds the places of volumes; it searches the nodes for each distinct selector only once."""

    def __init__(self, nodes: Iterable[PlaceNode]) -> None:
        """Search `nodes`, which are all nodes of the cluster."""
        self._nodes = list(nodes)
        self._found: dict[NodeSelector, list[PlaceNode]] = {}
        # For each key of a label, the nodes by the value of the label.
        self._by_label: dict[str, dict[str, list[int]]] = {}

    def find(
        self, selector: NodeSelector, tolerations: Iterable[Collection[Toleration]]
    ) -> Place | None:
        """Return the place of a volume whose node affinity is `selector`.

        `tolerations` are the tolerations of each pod that uses the volume. The result is None if
        all nodes can use the volume, or if `selector` names no labels.
        """
        words = " or ".join(
            joined(map(requirement_words, term.match_expressions))
            for term in selector.node_selector_terms
            if term.match_expressions
        )
        if not words:
            return None
        found = self._found.get(selector)
        if found is None:
            found = self._found[selector] = self._matching(selector)
        if len(found) == len(self._nodes):
            return None
        return Place(
            words,
            tuple(node.name for node in found),
            any(node.admits(own) for own in tolerations for node in found),
            any(node.is_ready and not node.unschedulable for node in found),
        )

    def _matching(self, selector: NodeSelector) -> list[PlaceNode]:
        numbers = {
            number
            for term in selector.node_selector_terms
            for number in self._candidates(term)
            if term_matches(term, self._nodes[number].labels, self._nodes[number].name)
        }
        return [self._nodes[number] for number in sorted(numbers)]

    def _candidates(self, term: NodeSelectorTerm) -> Iterable[int]:
        """Return the numbers of the nodes that `term` may match.

        If `term` requires one of several values of a label, only the nodes with these values are
        returned. For example, a local volume requires the host name of its node. In a large
        cluster, it would take seconds to compare each of many local volumes with each node.
        """
        for one in term.match_expressions:
            if one.operator == "In":
                by_value = self._nodes_by(one.key)
                return [number for value in one.values for number in by_value.get(value, ())]
        return range(len(self._nodes))

    def _nodes_by(self, key: str) -> Mapping[str, list[int]]:
        if key not in self._by_label:
            by_value: dict[str, list[int]] = defaultdict(list)
            for number, node in enumerate(self._nodes):
                if key in node.labels:
                    by_value[node.labels[key]].append(number)
            self._by_label[key] = by_value
        return self._by_label[key]


class PlacedVolume(Struct, frozen=True):
    """The volume `volume` of the bound claim `claim` (NAMESPACE/NAME).

    Only the nodes that `selector` matches can use the volume.
    """

    volume: str
    claim: str
    selector: NodeSelector


def placed_volumes(
    namespace: str, claims: Iterable[str], inventory: Inventory
) -> Iterator[PlacedVolume]:
    """Yield the volumes of `claims` that have a node affinity.

    `claims` are the names of claims in `namespace`. Claims that are not bound, or whose volume is
    not in `inventory`, are left out.
    """
    for name in claims:
        claim = inventory.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        spec = None if claim is None else decode_as(PersistentVolumeClaim, claim.value).spec
        volume = None if spec is None else inventory.get(PERSISTENT_VOLUME, "", spec.volume_name)
        if volume is None:
            continue
        affinity = decode_as(PersistentVolume, volume.value).spec.node_affinity
        if affinity is not None and affinity.required is not None:
            yield PlacedVolume(volume.ref.name, f"{namespace}/{name}", affinity.required)
