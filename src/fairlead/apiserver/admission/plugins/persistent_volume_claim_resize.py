"""PersistentVolumeClaimResize: allows a claim to grow only if its StorageClass allows expansion.

upstream: plugin/pkg/admission/storage/persistentvolume/resize/admission.go
"""

from __future__ import annotations

from typing import ClassVar

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, parse_quantity
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.plugins.storage import CLASS_BETA
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from fairlead.apiserver.storage.storage import Storage

_UNBOUND = "Only bound persistent volume claims can be expanded"
_NOT_EXPANDABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)


class PersistentVolumeClaimResize:
    """The admission plugin `PersistentVolumeClaimResize`."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse to enlarge an unbound claim, or a claim whose StorageClass allows no expansion.

        Raises ApiError 403.
        """
        kind, obj = attributes.kind, attributes.obj
        old = attributes.old
        if kind is not PERSISTENT_VOLUME_CLAIM or attributes.operation is not Operation.UPDATE:
            return obj
        if old is None or attributes.subresource or _size(obj) <= _size(old):
            return obj
        problem = ""
        if (old.get("status") or {}).get("phase") != "Bound":
            problem = _UNBOUND
        elif not _can_be_expanded(old, obj, storage):
            problem = _NOT_EXPANDABLE
        if problem:
            meta = obj["metadata"]
            raise forbidden(kind, meta.get("namespace", ""), meta["name"], problem)
        return obj


def _size(claim: Json) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("storage", "0")))


def _can_be_expanded(old: Json, new: Json, storage: Storage) -> bool:
    name = _storage_class(new)
    if not name or name != _storage_class(old):
        return False
    storage_class = storage.find(STORAGE_CLASS, "", name)
    return storage_class is not None and bool(storage_class.get("allowVolumeExpansion"))


def _storage_class(claim: Json) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_BETA) or claim["spec"].get("storageClassName") or "")
