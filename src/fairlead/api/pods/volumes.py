"""Classifies a pod's volumes: claims, exclusive disks, migratable in-tree volumes."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from fairlead.api.objects import PersistentVolumeClaim, Pod, Volume

BOUND: Final = "Bound"
"""The phase of a PersistentVolumeClaim or PersistentVolume that is bound."""


def is_claimed(volume: Volume) -> bool:
    """Return True if the volume uses a PersistentVolumeClaim, either named or ephemeral."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None


def is_exclusive(volume: Volume) -> bool:
    """Return True if `volume` is a disk that two pods on the same node may be unable to share."""
    # upstream: plugins/volumerestrictions/volume_restrictions.go: needsRestrictionsCheck
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def is_migratable(volume: Volume) -> bool:
    """Return True if the volume is of an in-tree type that is migrated to a CSI driver."""
    # upstream: csi-translation-lib/translate.go: IsInlineMigratable
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.azure_file is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
        or volume.vsphere_volume is not None
    )


# Reads, in one call, all fields that is_claimed, is_exclusive and is_migratable read.
_placing_sources: Final = attrgetter(
    "persistent_volume_claim",
    "ephemeral",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "rbd",
    "iscsi",
    "azure_disk",
    "azure_file",
    "cinder",
    "portworx_volume",
    "vsphere_volume",
)
_NO_SOURCES: Final = _placing_sources(Volume())


def is_placed(volume: Volume) -> bool:
    """Return True if `is_claimed`, `is_exclusive` or `is_migratable` is True for the volume.

    No other volume can restrict the nodes on which its pod can run.
    """
    return _placing_sources(volume) != _NO_SOURCES


def claim_name(pod: Pod, volume: Volume) -> str:
    """Return the name of the claim of `volume`, which must be a claimed volume (`is_claimed`)."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    # upstream: component-helpers/storage/ephemeral/ephemeral.go: VolumeClaimName
    return f"{pod.metadata.name}-{volume.name}"


def named_claims(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims in the pod's spec, but no claims of ephemeral volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def all_claims(pod: Pod) -> Iterator[str]:
    """Yield the claim names of the pod's volumes, in order; ephemeral volumes are included."""
    for volume in pod.spec.volumes:
        if is_claimed(volume):
            yield claim_name(pod, volume)


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Return True if `claim` was made for an ephemeral volume of `pod`, so that `pod` owns it.

    The caller has found `claim` by its name. The UID of the owner decides, because the claim may
    belong to an earlier pod of the same name.
    """
    # upstream: component-helpers/storage/ephemeral/ephemeral.go: VolumeIsForPod
    owners = claim.metadata.owner_references
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in owners)
