"""Preconditions: a write that is meant for one incarnation or one version of an object only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, conflict
from fairlead.apiserver.kind import Kind

# Where upstream keeps the objects of some kinds, others are under their plurals.
# upstream: pkg/kubeapiserver/default_storage_factory_builder.go:SpecialDefaultResourcePrefixes
_FOLDERS: Final[Mapping[str, str]] = {
    "replicationcontrollers": "controllers",
    "endpoints": "services/endpoints",
    "services": "services/specs",
    "nodes": "minions",
    "ingresses.networking.k8s.io": "ingress",
}
_APART: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")


def require(kind: Kind, obj: Json, *, uid: str | None, resource_version: str | None) -> None:
    """Refuse to delete another object than the one meant; None does not care.

    Raises ApiError 409.
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
    """Refuse to write to another object than the one meant; "" does not care.

    Raises ApiError 409.
    """
    # upstream: apiserver/pkg/storage/interfaces.go:Preconditions.Check, storage/errors.go
    meta = obj["metadata"]
    if uid and uid != meta.get("uid", ""):
        place = "/".join(filter(None, (_folder(kind), meta.get("namespace"), meta["name"])))
        raise conflict(
            kind,
            meta.get("namespace", ""),
            meta["name"],
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {meta.get('uid', '')}",
        )


def _folder(kind: Kind) -> str:
    if kind.custom is not None or kind.group in _APART:
        return f"{kind.group}/{kind.plural}"
    return _FOLDERS.get(kind.resource, kind.plural)


def _unmet(kind: Kind, meta: Json, why: str) -> ApiError:
    return conflict(kind, meta.get("namespace", ""), meta["name"], why, resource=kind.qualified)
