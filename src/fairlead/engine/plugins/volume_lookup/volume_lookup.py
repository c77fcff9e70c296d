"""VolumeLookup: finds a pod's claims and their storage classes and volumes."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.engine.state.related_objects import RelatedObjects

# A deprecated annotation, which still takes precedence over spec.storageClassName.
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class VolumeLookup:
    """Finds claims, classes and volumes among the `related` objects."""

    def __init__(self, related: RelatedObjects) -> None:
        """Use `related` for all lookups, without a cache."""
        self._related = related

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return the claim `name` in `namespace`, or None."""
        return self._related.get(PersistentVolumeClaim, f"{namespace}/{name}")

    def volume(self, name: str) -> PersistentVolume | None:
        """Return the volume `name`, or None."""
        return self._related.get(PersistentVolume, name)

    def csi_node(self, name: str) -> CSINode | None:
        """Return the CSINode of the node `name`, or None."""
        return self._related.get(CSINode, name)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the claim's storage class; None if it is not set or does not exist."""
        name = class_name(claim)
        return self._related.get(StorageClass, name) if name else None


def class_name(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """Return the name of the storage class of `obj`; "" if none is set.

    upstream: component-helpers/storage/volume/helpers.go: GetPersistentVolumeClaimClass
    """
    annotated = obj.metadata.annotations.get(_CLASS_ANNOTATION)
    return obj.spec.storage_class_name or "" if annotated is None else annotated


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the binding of the claim is complete (binder.go: isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def claim_not_found(name: str) -> str:
    """Return the API server's NotFound message for a claim."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the API server's NotFound message for a volume."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """Return the API server's NotFound message for a storage class."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def claim_not_owned(namespace: str, claim: str, pod: str) -> str:
    """Return the message that a pod does not own the claim of its ephemeral volume.

    upstream: component-helpers/storage/ephemeral/ephemeral.go: VolumeIsForPod
    """
    return f"PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)"
