"""PodViews: typed views of the pods in a store; views of successive versions share equal parts.

If a write changes only the status of a pod, as most writes do, the new view has the same spec
object as the previous view, and only the changed parts are decoded. A controller that finds the
same spec object in both views knows that the spec has not changed.

    stored   v7 {metadata: m, spec: s, status: a}     v8 {metadata: m', spec: s, status: b}
    view     v7 (M, S, A)                             v8 (M', S, B)    S is the same object

A binding sets only the node in the spec. The spec of the new view is therefore a copy of the
previous spec with this node, and shares all other parts.

Stored values are never mutated (see `Storage`). Therefore, a part of a pod has not changed if it is
the same object in two stored versions. Views do not contain managedFields. If only managedFields
change, the new view differs from the previous view only in its resource version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from fairlead.api.codec import DecodeError, View, decode, decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import ApiObject, ObjectMeta, Pod, PodCondition, PodSpec
from fairlead.api.pods.replicas import LoadedObjects, pod_at
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import ChangeType, StoredChange

VERSION: Final = "resourceVersion"
_UNVIEWED: Final = frozenset((VERSION, "managedFields"))
_CONDITIONS: Final = frozenset(("conditions",))
_NODE: Final = frozenset(("nodeName",))


class HasConditions(Struct):
    """The conditions of a status; they change more often than the other fields of the status."""

    conditions: tuple[Any, ...]


class _Conditions(HasConditions):
    conditions: tuple[PodCondition, ...]


def _decoded_whole(change: StoredChange) -> ApiObject:
    return decode(change.object)


class PodViews:
    """The newest views of existing pods."""

    def __init__(self, decode_whole: Callable[[StoredChange], ApiObject] = _decoded_whole) -> None:
        """Start without pods.

        `decode_whole` decodes every object that is not a pod. `decode_whole` also decodes a pod if
        no earlier view of the pod can be reused.
        """
        self._decode = decode_whole
        self._newest: LazyDict[Pod] = LazyDict(pod_at)  # by uid

    def load(self, loaded: LoadedObjects) -> None:
        """Add the views of the pods among the initial objects of a store."""
        for replicas in loaded.replicas:
            self._newest.load(replicas.rows_by_uid)

    def newest(self, uid: str) -> Pod | None:
        """Return the newest view of the pod with this uid, or None if no pod has this uid."""
        return self._newest.get(uid)

    def put(self, view: Pod) -> None:
        """Replace the newest view of a pod by `view`."""
        self._newest[view.metadata.uid] = view

    def forget(self, view: Pod) -> None:
        """Remove `view`, the newest view of a deleted pod."""
        self._newest.pop(view.metadata.uid, None)

    def view_of(self, change: StoredChange) -> ApiObject:
        """Return the view of the object in `change`. Raises DecodeError."""
        if change.kind is not POD:
            return self._decode(change)
        uid = change.object["metadata"]["uid"]
        before = self._newest.get(uid)
        made = None if before is None else _successor(before, change)
        view = self._decode(change) if made is None else made
        if change.type is ChangeType.DELETED:
            self._newest.pop(uid, None)
        elif isinstance(view, Pod):
            self._newest[uid] = view
        return view


def _successor(before: Pod, change: StoredChange) -> Pod | None:
    """Return the view of a pod after `change`; None if the whole pod must be decoded.

    The view is made from `before`, an earlier view of the pod.
    """
    old, new = change.previous, change.object
    if old is None or old["metadata"][VERSION] != before.metadata.resource_version:
        return None
    spec = _next_spec(before.spec, old.get("spec", {}), new.get("spec", {}))
    if spec is None:
        return None
    meta = next_metadata(before.metadata, old["metadata"], new["metadata"])
    status = next_status(before.status, _Conditions, old.get("status", {}), new.get("status", {}))
    return Pod(metadata=meta, spec=spec, status=status)


def _next_spec(before: PodSpec, old: Json, new: Json) -> PodSpec | None:
    """Return the view of the spec `new`; `before` is the view of the previous spec `old`.

    Returns None if `new` has no nodeName, or if it differs from `old` in any other field.
    """
    if new is old:
        return before
    if not new.get("nodeName") or not differs_only_in(_NODE, old, new):
        return None
    spec: PodSpec = before.__copy__()  # type: ignore[attr-defined]
    force_setattr(spec, "node_name", new["nodeName"])
    return spec


def next_metadata(before: ObjectMeta, old: Json, new: Json) -> ObjectMeta:
    """Return the view of the metadata `new`; `before` is the view of the earlier metadata `old`."""
    if not differs_only_in(_UNVIEWED, old, new):
        return decoded_part(ObjectMeta, new)
    meta: ObjectMeta = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(meta, "resource_version", new[VERSION])
    return meta


def next_status(before: View, conditions: type[HasConditions], old: Json, new: Json) -> View:
    """Return the view of the status `new`; `before` is the view of the previous status `old`.

    `conditions` is the class into which the conditions of such a status are decoded.
    """
    if old is new:
        return before
    if "conditions" not in new or not differs_only_in(_CONDITIONS, old, new):
        return decoded_part(type(before), new)
    status: View = before.__copy__()  # type: ignore[attr-defined]
    force_setattr(status, "conditions", decoded_part(conditions, new).conditions)
    return status


def differs_only_in(members: frozenset[str], old: Json, new: Json) -> bool:
    """Return whether `old` and `new` have identical (`is`) values for all keys not in `members`."""
    for key, value in new.items():
        if value is not old.get(key) and key not in members:
            return False
    return old.keys() == new.keys() or old.keys() - members == new.keys() - members


def decoded_part(view: type[View], part: Json) -> View:
    """Return the view of `part`, a part of an object. Members that are null count as absent."""
    try:
        return decode_as(view, part)  # nulls of members that no view contains do not matter
    except DecodeError:
        return decode_as(view, without_nulls(part))
