"""Preconditions of a write: the expected uid and resourceVersion."""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import STALE, ApiError, conflict
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategies.table import strategy_of

RV_ON_CREATE: Final = "resourceVersion should not be set on objects to be created"


def require(kind: Kind, obj: Json, *, uid: str | None, resource_version: str | None) -> None:
    """Refuse a deletion or eviction if the uid or resourceVersion of `obj` is not the required one.

    If a required value is None, every object matches it. Raises ApiError 409.
    """
    # upstream: apiserver/pkg/registry/rest/delete.go:BeforeDelete, which names the kind
    meta = obj["metadata"]
    if uid is not None and uid != meta["uid"]:
        raise _unmet(
            kind,
            meta,
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({meta['uid']}). The object might have been deleted and then recreated",
        )
    if resource_version is not None and resource_version != meta["resourceVersion"]:
        raise _unmet(
            kind,
            meta,
            f"the ResourceVersion in the precondition ({resource_version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been "
            "modified",
        )


def require_uid(kind: Kind, obj: Json, uid: str) -> None:
    """Refuse a write if the uid of the object differs from `uid`; "" matches every object.

    Raises ApiError 409.
    """
    # upstream: apiserver/pkg/storage/interfaces.go:Preconditions.Check, storage/errors.go
    meta = obj["metadata"]
    if uid and uid != meta.get("uid", ""):
        place = "/".join(filter(None, (_storage_prefix(kind), meta.get("namespace"), meta["name"])))
        raise conflict(
            kind,
            meta.get("namespace", ""),
            meta["name"],
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {meta.get('uid', '')}",
        )


def require_same_version(kind: Kind, old: Json, new: Json) -> None:
    """Refuse an update if the uid or resourceVersion of `new` differs from that of `old`.

    A missing uid or resourceVersion in `new`, and the resourceVersion "0", match every object.
    Raises ApiError 409.
    """
    before, meta = old["metadata"], new["metadata"]
    require_uid(kind, old, meta.get("uid", ""))
    if meta.get("resourceVersion", "0") not in ("0", before["resourceVersion"]):
        raise conflict(kind, before.get("namespace", ""), before["name"], STALE)


def require_no_version(obj: Json) -> None:
    """Refuse a new object whose resourceVersion is a number other than 0. Raises ApiError 500."""
    version = obj["metadata"].get("resourceVersion", "")
    if version.isascii() and version.isdecimal() and version.strip("0"):
        raise ApiError("", 500, RV_ON_CREATE)


def _storage_prefix(kind: Kind) -> str:
    # upstream: pkg/kubeapiserver/default_storage_factory_builder.go:SpecialDefaultResourcePrefixes
    if kind.custom is not None:
        return f"{kind.group}/{kind.plural}"
    return strategy_of(kind).storage_prefix or kind.plural


def _unmet(kind: Kind, meta: Json, why: str) -> ApiError:
    return conflict(kind, meta.get("namespace", ""), meta["name"], why, resource=kind.qualified)
