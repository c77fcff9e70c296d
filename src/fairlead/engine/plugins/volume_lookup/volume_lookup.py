"""VolumeLookup: a pod's claims, their classes and volumes, as the volume plugins read them."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.engine.state.related_objects import RelatedObjects

# Former annotations that still win over the field they became.
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class VolumeLookup:
    """Reads `related`."""

    def __init__(self, related: RelatedObjects) -> None:
        """Nothing is kept."""
        self._related = related

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """The claim called `name`."""
        return self._related.get(PersistentVolumeClaim, f"{namespace}/{name}")

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume called `name`."""
        return self._related.get(PersistentVolume, name)

    def csi_node(self, name: str) -> CSINode | None:
        """What CSI drivers say about the node called `name`."""
        return self._related.get(CSINode, name)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """The claim's class, None if it names none or one that is not there."""
        name = class_name(claim)
        return self._related.get(StorageClass, name) if name else None


def class_name(one: PersistentVolumeClaim | PersistentVolume) -> str:
    """The name of the storage class, "" for none.

    upstream: component-helpers/storage/volume/helpers.go: GetPersistentVolumeClaimClass
    """
    annotated = one.metadata.annotations.get(_CLASS_ANNOTATION)
    return one.spec.storage_class_name or "" if annotated is None else annotated


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim and its volume agreed on each other (binder.go: isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def claim_not_found(name: str) -> str:
    """The API server's words."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """The API server's words."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """The API server's words."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def not_made_for(namespace: str, claim: str, pod: str) -> str:
    """Of an ephemeral volume's claim that belongs to somebody else.

    upstream: component-helpers/storage/ephemeral/ephemeral.go: VolumeIsForPod
    """
    return f"PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)"
