"""Owners that an object names twice: the second time does not count, and the client is told.

References are the same if they are alike in all; two of one owner that differ both stay.

upstream: apiserver/pkg/endpoints/handlers/rest.go:dedupOwnerReferencesAndAddWarning
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.json_equality import canonical_key

_SENT: Final = ".metadata.ownerReferences contains duplicate entries"
_MADE: Final = f"{_SENT} after mutating admission happens"
_ADVICE: Final = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
    "please fix your requests; duplicate UID(s) observed: "
)


def with_each_owner_once(obj: Json, warn: Callable[[str], None], *, is_made: bool = False) -> Json:
    """`obj` with each reference once; `is_made`: it is what a patch has made, or admission."""
    meta = obj["metadata"]
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    if not isinstance(owners, list) or len(owners) < 2:
        return obj
    kept: dict[str | bytes, Json] = {}
    again = [
        owner.get("uid", "")
        for owner in owners
        if kept.setdefault(canonical_key(owner), owner) is not owner
    ]
    if not again:
        return obj
    warn(f"{_MADE if is_made else _SENT}; {_ADVICE}{', '.join(again)}")
    return {**obj, "metadata": {**meta, "ownerReferences": list(kept.values())}}
