"""Preconditions: a write that is meant for one incarnation or one version of an object only."""

from __future__ import annotations

from typing import Any

from fairlead.apiserver.error import ApiError, conflict
from fairlead.apiserver.kind import Kind

Json = dict[str, Any]


def require(kind: Kind, obj: Json, *, uid: str = "", resource_version: str = "") -> None:
    """Refuse to delete another object than the one meant; "" does not care.

    Raises ApiError 409.
    """
    # upstream: apiserver/pkg/registry/rest/delete.go:BeforeDelete, which names the kind
    meta = obj["metadata"]
    if uid and uid != meta["uid"]:
        raise _unmet(
            kind,
            meta,
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({meta['uid']}). The object might have been deleted and then recreated",
        )
    if resource_version and resource_version != meta["resourceVersion"]:
        raise _unmet(
            kind,
            meta,
            f"the ResourceVersion in the precondition ({resource_version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been "
            "modified",
        )


def require_uid(kind: Kind, obj: Json, uid: str) -> None:
    """Refuse to write to another object than the one meant; "" does not care.

    Raises ApiError 409.
    """
    # upstream: apiserver/pkg/storage/interfaces.go:Preconditions.Check, storage/errors.go
    meta = obj["metadata"]
    if uid and uid != meta["uid"]:
        place = "/".join(filter(None, (kind.plural, meta.get("namespace"), meta["name"])))
        raise conflict(
            kind,
            meta.get("namespace", ""),
            meta["name"],
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {meta['uid']}",
        )


def _unmet(kind: Kind, meta: Json, why: str) -> ApiError:
    return conflict(kind, meta.get("namespace", ""), meta["name"], why, resource=kind.qualified)
