"""Finds the default class, such as the default StorageClass, for objects that name no class.

upstream: pkg/volume/util/storageclass.go:GetDefaultClass,
plugin/pkg/admission/network/defaultingressclass/admission.go
"""

from __future__ import annotations

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import Storage


def default_class(storage: Storage, kind: Kind, *annotations: str) -> str:
    """Return the name of the default class; "" if there is none.

    A class, such as a StorageClass, is a default class if one of `annotations` has the value
    "true". If there are several default classes, the newest is returned. If several are equally
    new, the one whose name sorts first is returned.
    """
    defaults = []
    for candidate in storage.items(kind):
        annotations_of_class = candidate["metadata"].get("annotations") or {}
        if any(annotations_of_class.get(key) == "true" for key in annotations):
            defaults.append(candidate["metadata"])
    if not defaults:
        return ""
    newest = max(meta["creationTimestamp"] for meta in defaults)
    return min(str(meta["name"]) for meta in defaults if meta["creationTimestamp"] == newest)
