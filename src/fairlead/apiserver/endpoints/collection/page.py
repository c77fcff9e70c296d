"""Pages: a list in parts that fit together, though objects change between them.

A continue token names the version of the first page and the key to go on with; later pages show
the objects as they were at that version, which the log of changes tells as far back as it
reaches. A client that comes too late may go on with the present (version -1).

upstream: apiserver/pkg/storage/continue.go, etcd3/store.go:GetList
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from fairlead.apiserver.endpoints.collection.continue_token import Token, token_too_old
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import ChangeType, Kept, Key, Storage

# The place of an object in a list of one namespace, or of all; and the object.
Entry = tuple[str, Kept]

_LIST_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Listed:
    """Objects at a version, as they are kept; what is not stored has none: -1.

    `continue_token` is "" and `remaining` None at the end.
    """

    objects: Sequence[Kept]
    version: int
    continue_token: str = ""
    remaining: int | None = None


def list_too_old() -> ApiError:
    """410: the log does not reach back to the version that a list asks for."""
    return ApiError("Expired", 410, _LIST_TOO_OLD)


def page_too_old(token: Token) -> ApiError:
    """410: likewise for the page that a token stands for."""
    return token_too_old(token, _PAGE_TOO_OLD)


def objects_now(storage: Storage, kind: Kind, namespace: str) -> list[Entry]:
    """The objects of one namespace, or of all (""), in the order of their places."""
    found = storage.kept(kind, namespace or None)
    return sorted(((_place(key, namespace), kept) for key, kept in found), key=itemgetter(0))


def _place(key: Key, namespace: str) -> str:
    own, name = key
    return name if namespace or not own else f"{own}/{name}"


def objects_at(storage: Storage, kind: Kind, namespace: str, version: int) -> list[Entry]:
    """Likewise as they were at `version`. Raises ApiError 410 when that is forgotten."""
    changes = storage.changes_since(version)
    objects = dict(objects_now(storage, kind, namespace))
    for change in reversed(changes):
        meta = change.object["metadata"]
        if change.kind.resource != kind.resource:
            continue
        if namespace and meta.get("namespace", "") != namespace:
            continue
        place = _place((meta.get("namespace", ""), meta["name"]), namespace)
        if change.type is ChangeType.ADDED:
            objects.pop(place, None)
        elif change.previous is not None:
            objects[place] = change.previous
    return sorted(objects.items(), key=itemgetter(0))
