"""ViewedObjects: changes views immediately, and JSON values when something reads them.

When a zone fails, tens of thousands of pods become unready. Some pods are evicted and replaced; the
others restart and become ready again. The nodes of the zone get taints, and lose them again.
Controllers read the views of these objects, but hardly anything reads their JSON values. Therefore
the frequent kinds of writes make the new view from the previous view, and store a WrittenObject
without a JSON value:

    stored   DumpedObject v7            WrittenObject(base=v7, writes=[Ready=False at t], view=v8)
    view     v7 (M, S, A)               v8 (M', S, A')

M, S and A are metadata, spec and status. A WrittenObject has the earlier object (`base`) and the
writes since then. The JSON value is made when the storage reads it, by the rules of the store.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.json import Json
from fairlead.api.objects import Node, ObjectMeta, Pod
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Key
from fairlead.engine.core.command import ObjectRef

Viewed = TypeVar("Viewed", bound=Pod | Node)

# After so many writes to an object, the JSON value is made, so that the writes need not be kept.
WRITES_MAX: Final = 8


class KeptWrite(Protocol):
    """A write to an object; the view shows the write already, but the JSON value does not yet."""

    def applied_to(self, obj: Json, /) -> Json:
        """Return `obj` with the change of this write; the resourceVersion does not matter."""
        ...


class Views(Protocol[Viewed]):
    """The newest views of all existing objects of a kind."""

    def newest(self, uid: str) -> Viewed | None:
        """Return the newest view of the object with this uid, or None if there is none."""
        ...

    def put(self, view: Viewed) -> None:
        """Replace the newest view of an object by `view`."""
        ...

    def forget(self, view: Viewed) -> None:
        """Remove `view`, the newest view of a deleted object."""
        ...


class WrittenObject(msgspec.Struct, Generic[Viewed], frozen=True, gc=False):
    """A stored object of `kind`: the object `base` after `writes`; `view` is the resulting view."""

    kind: Kind
    base: DumpedObject | Json
    writes: tuple[KeptWrite, ...]
    view: Viewed

    @property
    def key(self) -> Key:
        """The namespace and name of the object."""
        return self.view.metadata.namespace, self.view.metadata.name

    @property
    def value(self) -> Json:
        """The object as JSON. Each access makes it again; callers must not mutate the result."""
        base = self.base
        obj: Json = base.value if isinstance(base, DumpedObject) else base
        for write in self.writes:
            obj = write.applied_to(obj)
        version = self.view.metadata.resource_version
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}


class ViewedObjects(Generic[Viewed]):
    """Changes the views of stored objects immediately; makes the JSON of an object when it is read.

    The callers use this class only while no webhook or policy binding exists.
    """

    def __init__(
        self, kind: Kind, storage: DeferredStorage, views: Views[Viewed], quotas: QuotaLedgers
    ) -> None:
        """`views` are the newest views of the objects of `kind` in `storage`.

        `quotas` counts these objects.
        """
        self._kind = kind
        self._storage = storage
        self._views = views
        self._quotas = quotas

    def find(self, target: ObjectRef) -> WrittenObject[Viewed] | None:
        """Return the object `target`: its stored value, and the writes that the value lacks.

        Returns None in the following cases, in which the store must perform the writes:

        - The object does not exist.
        - The object's newest view may differ from the stored version.
        - A quota counts the object.
        - The object is stored as JSON without a status.
        - There are too many writes to keep.
        """
        if self._quotas.are_counted(target.namespace):
            return None
        found: Any = self._storage.find_deferred(self._kind, (target.namespace, target.name))
        if type(found) is WrittenObject:
            stored: WrittenObject[Viewed] | None = found
        elif type(found) is DumpedObject:
            stored = WrittenObject(self._kind, found, (), cast("Viewed", found.view))
        else:
            stored = self._viewed(found) if type(found) is dict else None
        if stored is None or target.uid not in ("", stored.view.metadata.uid):
            return None
        return stored if len(stored.writes) < WRITES_MAX else None

    def _viewed(self, obj: Json) -> WrittenObject[Viewed] | None:
        """Return a WrittenObject with the stored JSON value `obj`, its view, and no writes.

        Returns None if no view has the same resourceVersion as `obj`, or if `obj` has no status.
        """
        meta = obj["metadata"]
        view = self._views.newest(meta["uid"])
        if view is None or not obj.get("status"):
            return None
        is_newest = meta["resourceVersion"] == view.metadata.resource_version
        return WrittenObject(self._kind, obj, (), view) if is_newest else None

    def next_metadata(self, before: ObjectMeta, versions: int = 1) -> ObjectMeta:
        """Return a copy of `before` with the resourceVersion after `versions` more writes."""
        meta: ObjectMeta = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
        force_setattr(meta, "resource_version", str(self._storage.version + versions))
        return meta

    def replace(self, before: WrittenObject[Viewed], write: KeptWrite, view: Viewed) -> bool:
        """Apply `write` to the object `before`; `view` is the view of the resulting object.

        Returns False and changes nothing if the store must perform the write instead.
        """
        after = WrittenObject(self._kind, before.base, (*before.writes, write), view)
        if not self._storage.replace_deferred(after):
            return False
        self._views.put(view)
        return True

    def remove(self, before: WrittenObject[Viewed], versions: int) -> bool:
        """Remove the object `before`, and increase the storage's version by `versions`.

        Returns False and changes nothing if the object must be removed through the store instead.
        """
        if not self._storage.remove_deferred(self._kind, before.key, versions):
            return False
        self._views.forget(before.view)
        return True
