"""The admission plugins DefaultStorageClass and StorageObjectInUseProtection.

upstream: plugin/pkg/admission/storage/storageclass/setdefault/admission.go,
plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.plugins.default_class import default_class
from fairlead.apiserver.kind import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
)
from fairlead.apiserver.storage.storage import Storage

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"
CLASS_BETA: Final = "volume.beta.kubernetes.io/storage-class"
_FINALIZERS: Final = {
    PERSISTENT_VOLUME_CLAIM: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUME: "kubernetes.io/pv-protection",
    VOLUME_ATTRIBUTES_CLASS: "kubernetes.io/vac-protection",
}


class DefaultStorageClass:
    """The admission plugin `DefaultStorageClass`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new claim that names no class gets the default StorageClass."""
        obj = attributes.obj
        if attributes.kind is not PERSISTENT_VOLUME_CLAIM or not attributes.is_new:
            return obj
        spec = obj["spec"]
        annotations = obj["metadata"].get("annotations") or {}
        if "storageClassName" in spec or CLASS_BETA in annotations:
            return obj
        name = default_class(storage, STORAGE_CLASS, IS_DEFAULT, IS_DEFAULT_BETA)
        return {**obj, "spec": {**spec, "storageClassName": name}} if name else obj


class StorageObjectInUseProtection:
    """The admission plugin `StorageObjectInUseProtection`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new claim, volume or VolumeAttributesClass gets a finalizer."""
        obj, finalizer = attributes.obj, _FINALIZERS.get(attributes.kind)
        if finalizer is None or not attributes.is_new:
            return obj
        return with_finalizer(obj, finalizer)


def with_finalizer(obj: Json, name: str) -> Json:
    """Return `obj` with the finalizer `name` appended, unless it already has that finalizer."""
    meta = obj["metadata"]
    finalizers = meta.get("finalizers") or []
    if name in finalizers:
        return obj
    return {**obj, "metadata": {**meta, "finalizers": [*finalizers, name]}}
