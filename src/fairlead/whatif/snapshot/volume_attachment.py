"""Leaves out VolumeAttachments of volumes that pods on the same node use.

The scheduler counts a volume towards the limit of a node if a pod on the node uses it. The
scheduler also counts a volume with a VolumeAttachment to the node. In a cluster, the attach-detach
controller deletes the attachment after the last pod that uses the volume has left the node. No
component of a simulation does this, so the attachment would count forever. While the pod is on the
node, the count is the same without the attachment. If no pod on the node uses the volume, the
attachment is kept, because its cause is unknown.

One difference remains: in a simulation, preemption assumes that the removal of a pod also detaches
its volumes. In a cluster, preemption counts a volume until its VolumeAttachment is deleted.

upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go: Filter,
getNodeVolumeAttachmentInfo; pkg/controller/volume/attachdetach/reconciler/reconciler.go: reconcile
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.volumes import all_claims
from fairlead.apiserver.kind import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VOLUME_ATTACHMENT,
)
from fairlead.apiserver.registry.dump.snapshot_load import Content
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, contents_of, entries_of
from fairlead.whatif.snapshot.samples import matching_pods


def simulated_contents(manifests: Sequence[Manifest]) -> Iterator[Content]:
    """Yield the objects in `manifests` in the form that the store of a simulation loads."""
    entries = entries_of(manifests)
    attached = [one for one in entries if one.kind is VOLUME_ATTACHMENT]
    if not attached:
        yield from contents_of(manifests)
        return
    used = set(_used(manifests))
    for entry in entries:
        if isinstance(entry, ReplicaManifests):
            yield entry.replicas
        elif entry.kind is not VOLUME_ATTACHMENT or _place(entry) not in used:
            yield entry.content


def _place(attachment: Manifest) -> tuple[str, str]:
    """Return the node and the volume of `attachment`."""
    view = attachment.as_view(VolumeAttachment)
    return view.spec.node_name, view.spec.source.persistent_volume_name


def _used(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    """Yield (node, volume) for each CSI volume that a pod on the node uses."""
    volumes: set[str] = set()
    claims: dict[tuple[str, str], str] = {}
    for one in entries_of(manifests):
        if isinstance(one, ReplicaManifests):
            continue  # pods
        if one.kind is PERSISTENT_VOLUME:
            if one.as_view(PersistentVolume).spec.csi is not None:
                volumes.add(one.ref.name)
        elif one.kind is PERSISTENT_VOLUME_CLAIM:
            claim = one.as_view(PersistentVolumeClaim)
            claims[one.ref.namespace, one.ref.name] = claim.spec.volume_name
    for one in matching_pods(manifests, _counts):
        pod = one.pod
        for name in all_claims(pod):
            volume = claims.get((pod.metadata.namespace, name), "")
            if volume in volumes:
                yield pod.spec.node_name, volume


def _counts(pod: Pod) -> bool:
    """Return whether `pod` has volume claims that count towards the limits of its node."""
    return any(all_claims(pod)) and not is_terminal(pod)
