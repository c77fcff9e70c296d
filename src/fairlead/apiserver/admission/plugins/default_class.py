"""The class that objects get which name none: the newest that says that it is the default.

upstream: pkg/volume/util/storageclass.go:GetDefaultClass,
plugin/pkg/admission/network/defaultingressclass/admission.go
"""

from __future__ import annotations

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import Storage


def default_class(storage: Storage, kind: Kind, *annotations: str) -> str:
    """The name of the default class, by one of `annotations`; "" where there is none.

    Of several it is the newest, by name among those of one time.
    """
    defaults = []
    for one in storage.items(kind):
        said = one["metadata"].get("annotations") or {}
        if any(said.get(key) == "true" for key in annotations):
            defaults.append(one["metadata"])
    if not defaults:
        return ""
    newest = max(meta["creationTimestamp"] for meta in defaults)
    return min(str(meta["name"]) for meta in defaults if meta["creationTimestamp"] == newest)
