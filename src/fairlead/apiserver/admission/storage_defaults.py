"""Claims get the class they did not name, and neither claims nor volumes go while in use.

upstream: plugin/pkg/admission/storage/storageclass/setdefault/admission.go,
plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.plugin import ALONE, Circumstances, Operation
from fairlead.apiserver.kind import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    Kind,
)
from fairlead.apiserver.storage import Json, Storage

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"
CLASS_BETA: Final = "volume.beta.kubernetes.io/storage-class"
_FINALIZERS: Final = {
    PERSISTENT_VOLUME_CLAIM: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUME: "kubernetes.io/pv-protection",
    VOLUME_ATTRIBUTES_CLASS: "kubernetes.io/vac-protection",
}


class DefaultStorageClass:
    """The admission plugin."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """Give a new claim the default class; of several the newest, by name among equals."""
        if not _is_new(operation, circumstances) or kind is not PERSISTENT_VOLUME_CLAIM:
            return obj
        spec = obj["spec"]
        annotations = obj["metadata"].get("annotations") or {}
        if "storageClassName" in spec or CLASS_BETA in annotations:
            return obj
        defaults = [one for one in storage.items(STORAGE_CLASS) if _is_default(one)]
        if not defaults:
            return obj
        newest = max(one["metadata"]["creationTimestamp"] for one in defaults)
        names = [
            one["metadata"]["name"]
            for one in defaults
            if one["metadata"]["creationTimestamp"] == newest
        ]
        return {**obj, "spec": {**spec, "storageClassName": min(names)}}


class StorageObjectInUseProtection:
    """The admission plugin."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """Add the finalizer that a controller takes away when nobody uses the object."""
        finalizer = _FINALIZERS.get(kind)
        if finalizer is None or not _is_new(operation, circumstances):
            return obj
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer in finalizers:
            return obj
        return {**obj, "metadata": {**meta, "finalizers": [*finalizers, finalizer]}}


def _is_new(operation: Operation, circumstances: Circumstances) -> bool:
    return operation is Operation.CREATE and not circumstances.subresource


def _is_default(storage_class: Json) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return "true" in (annotations.get(IS_DEFAULT), annotations.get(IS_DEFAULT_BETA))
