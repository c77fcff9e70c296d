"""ImagePlatforms: on which operating systems and architectures the images of a dump run.

The scheduler does not compare the images of a pod with the operating system and the architecture of
a node. A pod on a node of another platform never becomes ready: its image cannot be pulled, or its
program cannot be executed. The dump shows that an image exists for the platforms of the nodes on
which the image runs. Tags and digests are ignored, because a new version of an image usually exists
for the platforms of the old version.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.objects import Pod
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ARCH, BETA_ARCH, BETA_OS, OS
from fairlead.apiserver.kind import NODE, POD
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of

Labels = Mapping[str, str]

_WINDOWS: Final = "windows"


class Platform(Struct, frozen=True, order=True):
    """The operating system and the architecture of a node."""

    os: str
    arch: str

    def __str__(self) -> str:
        """Return a text such as `linux/arm64`."""
        return f"{self.os}/{self.arch}"

    @property
    def labels(self) -> Labels:
        """The labels that a node of the platform has."""
        return {OS: self.os, BETA_OS: self.os, ARCH: self.arch, BETA_ARCH: self.arch}

    @classmethod
    def of(cls, labels: Labels) -> Platform | None:
        """Return the platform in the labels of a node; None if a label is missing."""
        os, arch = labels.get(OS), labels.get(ARCH)
        return cls(os, arch) if os and arch else None


class ImagePlatforms(Struct, frozen=True):
    """The platforms of the nodes of a dump, and the platforms on which its images run.

    `proven` maps a repository of images to the platforms on which its images run. `placed` maps the
    UID of each pod of the dump to its node. `proven` and `placed` are empty if all nodes have the
    same platform.
    """

    platforms: frozenset[Platform]
    proven: Mapping[str, set[Platform]] = {}
    placed: Mapping[str, str] = {}

    @classmethod
    def of(cls, manifests: Iterable[Manifest], others: Iterable[Labels] = ()) -> ImagePlatforms:
        """Return the platforms of the nodes and images of the dump `manifests`.

        `others` are the labels of further nodes, whose platforms are added.
        """
        entries = list(entries_of(manifests))
        labels = {
            one.ref.name: one.node.metadata.labels
            for one in entries
            if one.kind is NODE and not isinstance(one, ReplicaManifests)
        }
        known = _platforms_of(chain(labels.values(), others))
        if len(known) < 2:
            return cls(known)
        nodes = {name: Platform.of(own) for name, own in labels.items()}
        proven: dict[str, set[Platform]] = defaultdict(set)
        placed: dict[str, str] = {}
        for entry in entries:
            if entry.kind is not POD:
                continue
            if isinstance(entry, ReplicaManifests):  # the pods have equal images and phases
                pod, uids, names = entry.replicas[0], entry.replicas.uids, entry.replicas.nodes
            else:
                pod = entry.pod
                uids, names = [pod.metadata.uid], [pod.spec.node_name]
            placed.update(zip(uids, names, strict=True))
            # A pod that does not run may wait for an image that does not exist.
            if pod.status.phase == "Running":
                found = {nodes.get(name) for name in names}
                for image in _repositories(pod):
                    proven[image].update(one for one in found if one is not None)
        return cls(known, proven, placed)

    @property
    def are_alike(self) -> bool:
        """Whether all nodes have the same platform."""
        return len(self.platforms) < 2

    def notes(self, pods: Iterable[tuple[Pod, str, Labels]]) -> Iterator[str]:
        """Yield a note about the `pods` that may lack images for their nodes (`may_mismatch`).

        Each item of `pods` is (pod, name of its node, labels of this node).
        """
        found: Counter[tuple[str, Platform]] = Counter()
        for pod, node, labels in pods:
            platform = Platform.of(labels)
            if platform is not None and self.may_mismatch(pod, node, labels):
                found[str(workload_of(pod)), platform] += 1
        if found:
            names = [
                f"{counted(count, 'pod')} of {workload} on {platform}"
                for (workload, platform), count in sorted(found.items())
            ]
            yield (
                "The images of these pods do not run on nodes of such a platform in the dump: "
                f"{listed(names)}. The scheduler does not check images. A nodeSelector for {OS} "
                f"or {ARCH} keeps pods off nodes on which their images cannot run."
            )

    def may_mismatch(self, pod: Pod, node: str, labels: Labels) -> bool:
        """Return whether images of `pod` may be missing for the platform of a node.

        `node` and `labels` are the name and the labels of the node. The result is False for the
        pod's node in the dump. It is also False if the nodeSelector and the required node affinity
        of the pod admit only the platform of the node.
        """
        platform = Platform.of(labels)
        if platform is None or self.placed.get(pod.metadata.uid) == node:
            return False
        return not self.fits(pod, platform) and self._may_run_elsewhere(pod, node, labels)

    def fits(self, pod: Pod, platform: Platform) -> bool:
        """Return whether the images of `pod` are known to run on `platform`.

        An image runs on the platforms on which it runs in the dump. An image that does not run in
        the dump is assumed to run on all platforms except Windows. If a required node affinity of
        the pod lists operating systems or architectures, the images are assumed to run on these
        platforms.
        """
        stated = _stated_labels(pod)
        if OS in stated and ARCH in stated:
            return True
        for image in _repositories(pod):
            known = self.proven.get(image)
            if known is None:
                if platform.os == _WINDOWS and OS not in stated:
                    return False
            elif not any(
                (OS in stated or one.os == platform.os)
                and (ARCH in stated or one.arch == platform.arch)
                for one in known
            ):
                return False
        return True

    def _may_run_elsewhere(self, pod: Pod, node: str, labels: Labels) -> bool:
        """Return whether `pod` could run on a node like `node`, but of another platform.

        `labels` are the labels of `node`. Only the nodeSelector and the required node affinity of
        the pod are checked.
        """
        return any(
            required_node_affinity_matches(pod.spec, {**labels, **other.labels}, node)
            for other in self.platforms
            if other != Platform.of(labels)
        )


SAME_PLATFORM: Final = ImagePlatforms(frozenset())


def _platforms_of(nodes: Iterable[Labels]) -> frozenset[Platform]:
    """Return the platforms of nodes with the labels `nodes`."""
    stated = {(labels.get(OS), labels.get(ARCH)) for labels in nodes}
    return frozenset(Platform(os, arch) for os, arch in stated if os and arch)


def _stated_labels(pod: Pod) -> set[str]:
    """Return the label keys that have an In requirement in every node affinity term of `pod`.

    Only required node affinity counts.
    """
    affinity = pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    if node_affinity is None:
        return set()
    required = node_affinity.required_during_scheduling_ignored_during_execution
    terms = () if required is None else required.node_selector_terms
    listed = [{one.key for one in term.match_expressions if one.operator == "In"} for term in terms]
    return set.intersection(*listed) if listed else set()


def _repositories(pod: Pod) -> Iterator[str]:
    """Yield the images of the pod's containers without tags and digests."""
    for container in pod.spec.containers:
        if container.image:
            path, slash, name = container.image.partition("@")[0].rpartition("/")
            yield f"{path}{slash}{name.partition(':')[0]}"
