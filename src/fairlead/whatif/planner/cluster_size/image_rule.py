"""ImageRule: keeps the pods of a new cluster on nodes on which their images run.

A platform is an operating system and an architecture. The scheduler does not check images, so it
could place a pod on a node of a platform for which the pod's images do not exist. If such nodes are
cheap, the search would choose them. In the dump, pods with these images run on nodes of certain
platforms (`ImagePlatforms`). Therefore, pods get an additional node affinity for these platforms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.api.nodes.node_selector import is_unmatchable, required_node_affinity_matches
from fairlead.api.nodes.taint import find_untolerated
from fairlead.api.objects import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ARCH, OS
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape
from fairlead.whatif.outcome.image_platform import ImagePlatforms, Platform
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.node_bound import taint_effects

# Nodes without these labels may have any platform.
_UNKNOWN: Final = tuple(
    NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, "DoesNotExist"),))
    for key in (OS, ARCH)
)


class ImageRule:
    """Adds a node affinity to pods, for the platforms on which their images run.

    `images` are the platforms of the images in the snapshot of `model`.
    """

    def __init__(self, images: ImagePlatforms, model: ClusterModel) -> None:
        """Store the nodes of `model`; the rule does nothing if all nodes have one platform."""
        self._images = images
        self._model = model
        self._nodes = () if images.are_alike else tuple(model.table.nodes())
        # A shape is the part of a pod's spec that affects scheduling. The keys are the `id()` of a
        # shape: in `_affinities` the shape before the pod gets an affinity, in `_changed` the shape
        # with the affinity.
        self._affinities: dict[int, tuple[Shape, Affinity | None]] = {}
        self._changed: dict[int, Shape] = {}

    def kept_on_platforms(self, pod: PodInfo) -> PodInfo:
        """Return `pod` with a node affinity for the platforms on which its images run.

        The platforms are those of present nodes. Nodes are left out if the node selector, node
        affinity or tolerations of `pod` do not allow them. If the images run on all remaining
        nodes, or on none of them, return `pod` unchanged.
        """
        if not self._nodes:
            return pod
        known = self._affinities.get(id(pod.shape))
        if known is None:
            known = self._affinities[id(pod.shape)] = pod.shape, self._affinity(pod)
        affinity = known[1]
        if affinity is None:
            return pod
        spec = replace(pod.pod.spec, affinity=affinity)
        found = self._model.pod_info(replace(pod.pod, spec=spec))
        self._changed[id(found.shape)] = found.shape
        return found

    def notes(self, pods: Iterable[PodInfo]) -> Iterator[str]:
        """Yield a note about the `pods` to which this rule added a node affinity."""
        found = Counter(str(workload_of(pod.pod)) for pod in pods if id(pod.shape) in self._changed)
        if found:
            names = [f"{counted(count, 'pod')} of {one}" for one, count in sorted(found.items())]
            yield (
                "These pods are placed only on nodes of a platform on which their images run in "
                f"the dump: {listed(names)}. The scheduler does not check images. A nodeSelector "
                f"for {OS} or {ARCH} keeps pods off other nodes. If the images exist for further "
                "platforms, state these in a required node affinity with the operator In."
            )

    def _affinity(self, pod: PodInfo) -> Affinity | None:
        spec, effects = pod.pod.spec, taint_effects(self._model, pod)
        allowed = [
            Platform.of(info.labels)
            for info in self._nodes
            if required_node_affinity_matches(spec, info.labels, info.name)
            and find_untolerated(info.node.spec.taints, spec.tolerations, effects) is None
        ]
        fitting = {one for one in allowed if one is None or self._images.fits(pod.pod, one)}
        if not fitting or fitting.issuperset(allowed):
            return None
        return _with_platforms(pod.pod, sorted(one for one in fitting if one is not None))


def _with_platforms(pod: Pod, platforms: Iterable[Platform]) -> Affinity:
    """Return `pod`'s affinity, limited to nodes whose platform is in `platforms` or unknown."""
    affinity = pod.spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    required = node_affinity.required_during_scheduling_ignored_during_execution
    terms = (NodeSelectorTerm(),) if required is None else required.node_selector_terms
    more = (*map(_term_of, platforms), *_UNKNOWN)
    selector = NodeSelector(
        tuple(
            replace(term, match_expressions=(*term.match_expressions, *one.match_expressions))
            for term in terms
            if required is None or not is_unmatchable(term)
            for one in more
        )
    )
    return replace(
        affinity,
        node_affinity=replace(
            node_affinity, required_during_scheduling_ignored_during_execution=selector
        ),
    )


def _term_of(platform: Platform) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=(
            NodeSelectorRequirement(OS, "In", (platform.os,)),
            NodeSelectorRequirement(ARCH, "In", (platform.arch,)),
        )
    )
