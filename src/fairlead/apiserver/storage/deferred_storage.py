"""DeferredStorage: decodes restored objects when they are first read.

A simulation reads only a few of its initial objects as JSON, because controllers use typed views. A
pod of a real cluster has about 15 KB of text, and its JSON value would take five times as much
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import (
    LOG_CAPACITY,
    Deferred,
    DeferredRows,
    Key,
    Storage,
    StoredObject,
)


class DeferredStorage(Storage):
    """Storage that keeps restored objects undecoded until they are read."""

    def __init__(self, log_capacity: int = LOG_CAPACITY) -> None:
        super().__init__(log_capacity)
        self._resources: set[str] = set()  # kinds that may have deferred objects

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object `name`; None if it does not exist."""
        found: Any = super().find(kind, namespace, name)
        if found is None or type(found) is dict:
            return found
        value = _value_of(found)
        self._objects[kind.resource][namespace, name] = value
        return value

    def find_stored(self, kind: Kind, namespace: str, name: str) -> StoredObject | None:
        """Return the object `name` as a JSON value; None if it does not exist."""
        return self.find(kind, namespace, name)

    def items(self, kind: Kind, namespace: str | None = None) -> Iterator[Json]:
        """Yield the objects of `kind`, sorted by namespace and name; see `Storage.items`."""
        self._build_values(kind, namespace)
        return super().items(kind, namespace)

    def unsorted(self, kind: Kind) -> Iterable[Json]:
        """Return the objects of `kind` in insertion order."""
        self._build_values(kind, None)
        return super().unsorted(kind)

    def stored_items(
        self, kind: Kind, namespace: str | None = None
    ) -> Iterator[tuple[Key, StoredObject]]:
        """Yield (key, object) for the objects of `kind`, unordered; see `Storage.stored_items`."""
        self._build_values(kind, namespace)
        return super().stored_items(kind, namespace)

    def put(self, kind: Kind, obj: Json, *, is_arranged: bool = False) -> Json:
        """Store a new version of `obj`; see `Storage.put`."""
        if kind.resource in self._resources:
            meta = obj["metadata"]
            self.find(kind, meta.get("namespace", ""), meta["name"])
        return super().put(kind, obj, is_arranged=is_arranged)

    def remove(self, kind: Kind, namespace: str, name: str) -> Json:
        """Remove an object and return its last version; see `Storage.remove`."""
        self.find(kind, namespace, name)
        return super().remove(kind, namespace, name)

    def restore_deferred(self, objects: Iterable[Deferred], version: int) -> None:
        """Add `objects`, each of which builds its JSON value when the value is first read.

        See `Storage.restore`.
        """
        for kind, some in groupby(objects, key=attrgetter("kind")):
            kept: dict[Key, Any] = self._of(kind)
            kept.update((one.key, one) for one in some)
            self._resources.add(kind.resource)
        self.restore((), version)

    def find_deferred(self, kind: Kind, key: Key) -> Deferred | Json | None:
        """Return the object under `key`; None if it does not exist.

        The object is a Deferred until something reads its JSON value. This method does not build
        the value.
        """
        kept: Mapping[Key, Any] = self._objects.get(kind.resource, {})
        found = kept.get(key)
        return _of_row(found) if type(found) is tuple else found

    def unread(self, kind: Kind) -> Iterator[tuple[Key, Deferred | Json | None]]:
        """Yield (key, object) for all objects of `kind`, in any order.

        A Deferred is yielded as it is, without making its JSON value. If `restore_rows` added an
        object, and nothing has read or written it since, the pair is (key, None).
        """
        kept: Mapping[Key, Any] = self._objects.get(kind.resource, {})
        for key, found in kept.items():
            yield key, None if type(found) is tuple else found

    def replace_deferred(self, successor: Deferred) -> bool:
        """Replace an object by `successor`, whose value is built when it is first read.

        `successor` has the next version. Listeners are not called, so the caller must inform the
        listeners that need the change.

        Returns False and changes nothing if this storage logs changes, indexes pods or is full.
        """
        if not self._may_skip_listeners:
            return False
        kind = successor.kind
        kept: dict[Key, Any] = self._of(kind)
        kept[successor.key] = successor
        self._resources.add(kind.resource)
        self._version += 1
        self._oldest = self._version
        return True

    def remove_deferred(self, kind: Kind, key: Key, versions: int) -> bool:
        """Remove an object without building its value; raise the storage version by `versions`.

        As in `replace_deferred`, listeners are not called.

        Returns False and removes nothing if this storage logs changes, indexes pods or is full.
        """
        if not self._may_skip_listeners:
            return False
        del self._objects[kind.resource][key]
        self._list_keys.pop(kind.resource, None)
        self._version += versions
        self._oldest = self._version
        return True

    @property
    def _may_skip_listeners(self) -> bool:
        return not self._log.maxlen and self._pods_by_node is None and not self.is_full

    def restore_rows(self, objects: DeferredRows, version: int) -> None:
        """Add `objects`; the JSON value of each one is built when it is first read.

        The storage must not contain any of these objects yet. See `Storage.restore`.
        """
        kept: dict[Key, Any] = self._of(objects.kind)
        kept.update(zip(objects.storage_keys, objects.rows, strict=True))
        self._resources.add(objects.kind.resource)
        self.restore((), version)

    def _build_values(self, kind: Kind, namespace: str | None) -> None:
        if kind.resource not in self._resources:
            return
        kept: dict[Key, Any] = self._objects[kind.resource]
        for key, found in kept.items():
            if type(found) is not dict and namespace in (None, key[0]):
                # An iteration allows this change, because the keys stay the same.
                kept[key] = _value_of(found)
        if namespace is None:
            self._resources.discard(kind.resource)


def _value_of(found: Deferred | tuple[DeferredRows, int]) -> Json:
    return (_of_row(found) if isinstance(found, tuple) else found).value


def _of_row(row: tuple[DeferredRows, int]) -> Deferred:
    rows, index = row
    return rows.object_at(index)
