"""PodViews: typed views of the pods in a store; those of successive versions share equal parts.

Most writes change the status of a pod only. Then the new view has the spec and the metadata of the
view before, so nothing else is decoded, and controllers can tell by identity that the spec is the
same.

    stored   v7 {metadata: m, spec: s, status: a}     v8 {metadata: m', spec: s, status: b}
    view     v7 (M, S, A)                             v8 (M', S, B)    S is the same object

Stored values are never mutated (see `Storage`), so parts that are the same object are equal.
managedFields are in no view, so a change of them alone changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from fairlead.api.codec import DecodeError, View, decode, decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, ObjectMeta, Pod, PodCondition, PodStatus
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import ChangeType, StoredChange

_VERSION: Final = "resourceVersion"
_UNVIEWED: Final = frozenset((_VERSION, "managedFields"))
_CONDITIONS: Final = frozenset(("conditions",))


class _Conditions(Struct):
    """The part of a status that changes most often."""

    conditions: tuple[PodCondition, ...]


class PodViews:
    """The newest views of existing pods; other objects are decoded by `decode_whole`."""

    def __init__(self, decode_whole: Callable[[Json], ApiObject] = decode) -> None:
        """Start without pods."""
        self._decode = decode_whole
        self._newest: dict[str, Pod] = {}  # by uid

    def load(self, views: Iterable[ApiObject]) -> None:
        """Note the pods among `views`, the objects that a store was filled with."""
        self._newest |= {one.metadata.uid: one for one in views if isinstance(one, Pod)}

    def view_of(self, change: StoredChange) -> ApiObject:
        """Return the view of the object in `change`. Raises DecodeError."""
        if change.kind is not POD:
            return self._decode(change.object)
        uid = change.object["metadata"]["uid"]
        before = self._newest.get(uid)
        made = None if before is None else _successor(before, change)
        view = self._decode(change.object) if made is None else made
        if change.type is ChangeType.DELETED:
            self._newest.pop(uid, None)
        elif isinstance(view, Pod):
            self._newest[uid] = view
        return view


def _successor(before: Pod, change: StoredChange) -> Pod | None:
    """Return the view after `change`, made from the one `before`; None if it must be decoded."""
    old, new = change.previous, change.object
    if old is None or old["metadata"][_VERSION] != before.metadata.resource_version:
        return None
    if new.get("spec") is not old.get("spec"):
        return None
    meta = _next_metadata(before.metadata, old["metadata"], new["metadata"])
    status = _next_status(before.status, old.get("status", {}), new.get("status", {}))
    return Pod(metadata=meta, spec=before.spec, status=status)


def _next_metadata(before: ObjectMeta, old: Json, new: Json) -> ObjectMeta:
    """Return the view of `new`, whose version differs from that of `old`, the JSON of `before`."""
    if not _differs_only_in(_UNVIEWED, old, new):
        return _decoded(ObjectMeta, new)
    meta: ObjectMeta = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(meta, "resource_version", new[_VERSION])
    return meta


def _next_status(before: PodStatus, old: Json, new: Json) -> PodStatus:
    """Return the view of `new`; `before` is the view of `old`."""
    if old is new:
        return before
    if "conditions" not in new or not _differs_only_in(_CONDITIONS, old, new):
        return _decoded(PodStatus, new)
    status: PodStatus = before.__copy__()  # type: ignore[attr-defined]
    force_setattr(status, "conditions", _decoded(_Conditions, new).conditions)
    return status


def _differs_only_in(members: frozenset[str], old: Json, new: Json) -> bool:
    """Return whether both have the same objects as members, apart from `members`."""
    return old.keys() - members == new.keys() - members and all(
        value is old.get(key) for key, value in new.items() if key not in members
    )


def _decoded(view: type[View], part: Json) -> View:
    """Return the view of a part of an object, in which nulls count as absent."""
    try:
        return decode_as(view, part)  # nulls of members that no view contains do not matter
    except DecodeError:
        return decode_as(view, without_nulls(part))
