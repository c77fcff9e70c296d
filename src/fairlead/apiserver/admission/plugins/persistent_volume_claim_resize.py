"""PersistentVolumeClaimResize: claims grow only where their class lets them.

upstream: plugin/pkg/admission/storage/persistentvolume/resize/admission.go
"""

from __future__ import annotations

from typing import ClassVar

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, parse_quantity
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.plugins.storage import CLASS_BETA
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from fairlead.apiserver.storage.storage import Storage

_UNBOUND = "Only bound persistent volume claims can be expanded"
_FIXED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)


class ClaimGrowth:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Let a claim ask for more. Raises ApiError 403."""
        kind, obj = asked.kind, asked.obj
        old = asked.about.old
        if kind is not PERSISTENT_VOLUME_CLAIM or asked.operation is not Operation.UPDATE:
            return obj
        if old is None or asked.about.subresource or _size(obj) <= _size(old):
            return obj
        why = ""
        if (old.get("status") or {}).get("phase") != "Bound":
            why = _UNBOUND
        elif not _is_elastic(old, obj, storage):
            why = _FIXED
        if why:
            meta = obj["metadata"]
            raise forbidden(kind, meta.get("namespace", ""), meta["name"], why)
        return obj


def _size(claim: Json) -> Quantity:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("storage", "0")))


def _is_elastic(old: Json, new: Json, storage: Storage) -> bool:
    name = _class_of(new)
    if not name or name != _class_of(old):
        return False
    found = storage.find(STORAGE_CLASS, "", name)
    return found is not None and bool(found.get("allowVolumeExpansion"))


def _class_of(claim: Json) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_BETA) or claim["spec"].get("storageClassName") or "")
