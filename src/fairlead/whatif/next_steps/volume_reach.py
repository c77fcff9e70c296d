"""VolumeReach: whether a copy of a node would reach the volumes of a pod.

A copy of a node has the labels of the node, except labels that name the node itself (`own_labels`).
So the copy reaches the volumes of the node's zone, but not the node's local volumes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from fairlead.api.codec import decode_as
from fairlead.api.json import items
from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import (
    NodeSelector,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from fairlead.api.pods.volumes import named_claims
from fairlead.apiserver.kind import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STATEFUL_SET,
)
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.node_pool import own_labels
from fairlead.whatif.snapshot.samples import matching_pods

_Place = frozenset[tuple[str, str]]


class VolumeReach:
    """Decides whether copies of nodes would reach the volumes of pods.

    A volume that is not in the snapshot counts as reached by every node.
    """

    def __init__(self, context: StepContext, pods: Iterable[PodEnd]) -> None:
        self._selectors: dict[str, list[NodeSelector]] = {}  # {key of a pod: of its volumes}
        self._keys: frozenset[str] = frozenset()  # of the labels that the selectors read
        pods = list(pods)
        if pods and (selectors := _selectors_of_claims(context.manifests)):
            for pod, names in _claims(pods, context):
                claims = ((pod.namespace, name) for name in names)
                if found := [selectors[one] for one in claims if one in selectors]:
                    self._selectors[pod.key] = found
                    self._keys = self._keys.union(*map(_label_keys, found))

    def reaches(self, pod: PodEnd, node: NodeEnd) -> bool:
        """Return whether a copy of `node` would reach all volumes of `pod`."""
        return self._is_reached_from(self._place(node), pod)

    def _is_reached_from(self, place: _Place, pod: PodEnd) -> bool:
        labels = dict(place)
        selectors = self._selectors.get(pod.key, ())
        return all(node_selector_matches(one, labels, "") for one in selectors)

    def _place(self, node: NodeEnd) -> _Place:
        """Return those labels of a copy of `node` that decide which volumes it reaches."""
        left_out = own_labels(node.labels, node.name, self._keys)
        return frozenset(
            (key, value)
            for key, value in node.labels.items()
            if key in self._keys and key not in left_out
        )

    def most_reached(
        self, pods: Collection[PodEnd], nodes: Sequence[NodeEnd]
    ) -> tuple[list[PodEnd], list[NodeEnd]]:
        """Return (pods, nodes): a copy of any of these nodes reaches the volumes of all these pods.

        The returned pods are the largest set of `pods` whose volumes a copy of one node reaches. Of
        several sets of this size, the set of the node that comes first in `nodes` is returned.
        """
        bound = [pod for pod in pods if pod.key in self._selectors]
        if not bound:
            return list(pods), list(nodes)
        places = [self._place(node) for node in nodes]
        # Large clusters have many nodes, but few places.
        reached = {
            place: frozenset(pod.key for pod in bound if self._is_reached_from(place, pod))
            for place in dict.fromkeys(places)
        }
        most = max(reached.values(), key=len, default=frozenset[str]())
        chosen = [node for node, place in zip(nodes, places, strict=True) if reached[place] == most]
        return [one for one in pods if one.key not in self._selectors or one.key in most], chosen

    def unreached(self, pods: Iterable[PodEnd], nodes: Sequence[NodeEnd]) -> list[PodEnd]:
        """Return those of `pods` whose volumes no copy of `nodes` would reach."""
        pods = list(pods)
        reached = {pod.key for part, _ in self.groups(pods, nodes) for pod in part}
        return [pod for pod in pods if pod.key not in reached]

    def needs_several_places(self, pods: Iterable[PodEnd], nodes: Sequence[NodeEnd]) -> bool:
        """Return whether copies of `nodes` reach the volumes of `pods`, but no copy reaches all."""
        bound = [pod for pod in pods if pod.key in self._selectors]
        parts = [{node.name for node in found} for _, found in self.groups(bound, nodes)]
        return len(parts) > 1 and not set.intersection(*parts)

    def groups(
        self, pods: Iterable[PodEnd], nodes: Sequence[NodeEnd]
    ) -> Iterator[tuple[list[PodEnd], list[NodeEnd]]]:
        """Yield `pods`, divided by the places of their volumes, and the `nodes` for each part.

        A copy of any of these nodes reaches the volumes of all pods of the part. Pods whose volumes
        no copy reaches are left out.
        """
        parts: dict[frozenset[_Place] | None, list[PodEnd]] = {}
        places = {node.name: self._place(node) for node in nodes} if self._selectors else {}
        distinct = dict.fromkeys(places.values())
        for pod in pods:
            reached = None
            if pod.key in self._selectors:
                reached = frozenset(one for one in distinct if self._is_reached_from(one, pod))
            parts.setdefault(reached, []).append(pod)
        for reached, part in parts.items():
            if reached is None:
                yield part, list(nodes)
            elif reached:
                yield part, [node for node in nodes if places[node.name] in reached]


def _claims(pods: Sequence[PodEnd], context: StepContext) -> Iterator[tuple[PodEnd, Iterable[str]]]:
    """Yield (pod, names of its claims) for each of `pods`; ephemeral volumes are left out.

    A pod that the snapshot lacks has the claims that the specs of its workload name. A pod of a
    StatefulSet also has the claims of the volumeClaimTemplates.
    """
    claiming = matching_pods(context.manifests, lambda pod: any(named_claims(pod)))
    keys = {pod.key for pod in pods}
    present = {one.ref.key: tuple(named_claims(one.pod)) for one in claiming if one.ref.key in keys}
    absent = {pod.workload for pod in pods if pod.key not in present}
    specs = context.changed_specs(absent)
    owners = context.workloads({ref for ref in absent if ref.kind == STATEFUL_SET.kind})
    for pod in pods:
        if pod.key in present:
            yield pod, present[pod.key]
            continue
        names: list[str] = []
        if (spec := specs.get(pod.workload)) is not None:
            names += named_claims(Pod(metadata=ObjectMeta(), spec=spec))
        if (owner := owners.get(pod.workload)) is not None:
            templates = items(owner.value, "spec", "volumeClaimTemplates")
            names += (f"{one['metadata']['name']}-{pod.name}" for one in templates)
        yield pod, names


def _label_keys(selector: NodeSelector) -> set[str]:
    terms = selector.node_selector_terms
    return {one.key for term in terms for one in term.match_expressions}


def _selectors_of_claims(manifests: Sequence[Manifest]) -> dict[tuple[str, str], NodeSelector]:
    """Return the node selector of the volume of each bound claim, by namespace and name."""
    selectors: dict[str, NodeSelector] = {}
    claims: list[PersistentVolumeClaim] = []
    for one in entries_of(manifests):
        if isinstance(one, ReplicaManifests):
            continue  # pods
        if one.kind is PERSISTENT_VOLUME_CLAIM:
            claims.append(decode_as(PersistentVolumeClaim, one.value))
        elif one.kind is PERSISTENT_VOLUME:
            volume = decode_as(PersistentVolume, one.value)
            affinity = volume.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                selectors[volume.metadata.name] = affinity.required
    return {
        (claim.metadata.namespace, claim.metadata.name): selectors[claim.spec.volume_name]
        for claim in claims
        if claim.spec.volume_name in selectors
    }
