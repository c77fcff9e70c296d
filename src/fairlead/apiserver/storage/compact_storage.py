"""CompactStorage: keeps only the most recently used objects decoded, the others as JSON text.

A decoded JSON value takes five times the memory of its text, and slows down each run of Python's
garbage collector. Therefore only the objects that `put` or `find` accessed most recently stay
decoded. The other objects are decoded each time a list reads them.

The log of changes keeps decoded objects for watches. Both the number of these objects and the total
size of their texts are limited.

As in etcd, the size of each object and the total size of all objects are limited. A full store
still accepts deletions, and changes that do not make an object larger.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import no_space
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import (
    LOG_CAPACITY,
    ChangeType,
    Key,
    Storage,
    StoredChange,
    encode,
    value_of,
)
from fairlead.apiserver.storage.stored_size import OBJECT_BYTES_MAX, require_storable

HOT_MAX: Final = 10_000
HOT_BYTES_MAX: Final = 64 << 20  # more than 10,000 objects of 4 KB
# As etcd's default quota (--quota-backend-bytes); memory beside an object's text counts, too.
STORE_BYTES_MAX: Final = 2 << 30
OVERHEAD_BYTES: Final = 512
_SELDOM_READ: Final = "events"
# More than 10,000 changes of 4 KB; as decoded values they take five times as much memory.
LOG_BYTES_MAX: Final = 48 << 20


class CompactStorage(Storage):
    """Storage with at most `hot_max` decoded objects and a log of at most `log_bytes_max` bytes.

    All objects together take at most `bytes_max` bytes, including OVERHEAD_BYTES for each object.
    """

    def __init__(
        self,
        log_capacity: int = LOG_CAPACITY,
        *,
        hot_max: int = HOT_MAX,
        log_bytes_max: int = LOG_BYTES_MAX,
        bytes_max: int = STORE_BYTES_MAX,
    ) -> None:
        super().__init__(log_capacity)
        self._bytes_max = bytes_max
        self._bytes = 0  # the total size of all objects whose texts are known
        self._hot_bytes = 0
        self._log_bytes_max = log_bytes_max
        self._log_bytes = 0
        self._sizes: deque[int] = deque()  # of the changes in the log
        # Decoded objects with their texts; None if a text is not known. The first object is the
        # next to be evicted, which means that only its text is kept.
        self._hot: OrderedDict[tuple[str, Key], bytes | None] = OrderedDict()
        self._hot_max = hot_max

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object `name`; None if it does not exist."""
        objects: dict[Key, Any] = self._objects.get(kind.resource, {})
        key = namespace, name
        found = objects.get(key)
        if type(found) is not bytes:
            return found
        # Controllers read an object several times in a row, such as the node of a new pod.
        value = objects[key] = value_of(found)
        self._keep(kind, key, found)
        return value

    def stored_text(self, kind: Kind, obj: Json) -> bytes | None:
        """Return the text of `obj`; None if `obj` is not the stored Python object itself."""
        key = _key(obj["metadata"])
        if self.find_stored(kind, *key) is not obj:
            return None
        entry = kind.resource, key
        text = self._hot.get(entry)
        if text is None:
            text = encode(obj)
            self._bytes += _counted(text)
            self._set_hot(entry, text)
        return text

    def items(self, kind: Kind, namespace: str | None = None) -> Iterator[Json]:
        """Yield the objects of `kind`, sorted by namespace and name; see `Storage.items`."""
        return map(value_of, super().items(kind, namespace))

    def unsorted(self, kind: Kind) -> Iterable[Json]:
        """Return the objects of `kind` in insertion order."""
        return map(value_of, super().unsorted(kind))

    def put(self, kind: Kind, obj: Json, *, is_arranged: bool = False) -> Json:
        """Store a new version of `obj`; see `Storage.put`."""
        self._warm(kind, obj["metadata"])
        return super().put(kind, obj, is_arranged=is_arranged)

    def remove(self, kind: Kind, namespace: str, name: str) -> Json:
        """Remove an object and return its last version; see `Storage.remove`."""
        self._warm(kind, {"namespace": namespace, "name": name})
        return super().remove(kind, namespace, name)

    def restore(self, objects: Iterable[tuple[Kind, Json]], version: int) -> None:
        """Load objects that already have versions; see `Storage.restore`."""
        for kind, obj in objects:
            key = _key(obj["metadata"])
            self._of(kind)[key] = self.arranged(kind, obj, None)
            self._keep(kind, key)
        self._start_from(version)

    def restore_texts(self, texts: Iterable[tuple[Kind, Key, bytes]], version: int) -> None:
        """Load objects as JSON texts; see `restore`. A text is decoded when its object is read."""
        for kind, key, text in texts:
            objects: dict[Key, Any] = self._of(kind)
            objects[key] = text
            self._bytes += _counted(text)
        self._start_from(version)

    def _replace(self, kind: Kind, key: Key, obj: Json) -> None:
        """Store `obj` in place of the object `key`; see `Storage.rewrite`."""
        self._warm(kind, obj["metadata"])
        super()._replace(kind, key, obj)
        self._keep(kind, key, encode(obj), is_new=True)

    def _start_from(self, version: int) -> None:
        super().restore((), version)
        self._sizes.clear()
        self._log_bytes = 0

    def resume(self, changes: Iterable[StoredChange]) -> None:
        """Load the log of an earlier storage; see `Storage.resume`."""
        super().resume(changes)
        for change in self._log:
            self._weigh(change)
        self._bound_log()

    def _require_space(self, change: StoredChange) -> None:
        """Refuse an object that is too large, or whose growth makes the store too large.

        The size of the store does not matter if the object has a deletion timestamp. Raises
        ApiError 500.
        """
        text = change.text
        if len(text) > OBJECT_BYTES_MAX:
            require_storable(change.kind, change.object, text)
        if self._bytes + _counted(text) <= self._bytes_max:
            return
        growth = _counted(text) - _counted(self._hot.get((change.kind.resource, change.key)))
        is_too_much = growth > 0 and self._bytes + growth > self._bytes_max
        if is_too_much and not change.object["metadata"].get("deletionTimestamp"):
            raise no_space()

    def _keep_new(self, change: StoredChange) -> None:
        """Store the new object of `change` as JSON text, which is decoded when it is read."""
        objects: dict[Key, Any] = self._of(change.kind)
        objects[change.key] = change.text

    def _record(self, change: StoredChange) -> None:
        """Update the byte counts, add `change` to the log, and call the listeners."""
        self._weigh(change)
        key = change.key
        objects: dict[Key, Any] = self._of(change.kind)
        if change.type is ChangeType.DELETED:
            entry = change.kind.resource, key
            self._bytes -= _counted(self._hot.get(entry))
            self._set_hot(entry, None)
            self._hot.pop(entry, None)
        elif type(objects[key]) is bytes:  # see `_keep_new`
            self._bytes += _counted(change.text)
        else:
            self._keep(change.kind, key, change.text, is_new=True)
        super()._record(change)
        if self._log_bytes > self._log_bytes_max:
            self._bound_log()

    def _weigh(self, change: StoredChange) -> None:
        size = len(change.text)
        self._sizes.append(size)
        self._log_bytes += size

    def _bound_log(self) -> None:
        while self._log_bytes > self._log_bytes_max and len(self._log) > 1:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        super()._forget_oldest()
        self._log_bytes -= self._sizes.popleft()

    def _warm(self, kind: Kind, meta: Json) -> None:
        """Decode an object that is stored as text, because the object is about to change.

        `meta` is the metadata of the object. Nothing happens if the object does not exist.
        """
        key = _key(meta)
        objects: dict[Key, Any] = self._of(kind)
        found = objects.get(key)
        if isinstance(found, bytes):
            objects[key] = value_of(found)
            self._set_hot((kind.resource, key), found)

    def _keep(
        self, kind: Kind, key: Key, text: bytes | None = None, *, is_new: bool = False
    ) -> None:
        """Mark a decoded object as recently used; encode decoded objects if there are too many.

        The limits are `hot_max` decoded objects and HOT_BYTES_MAX bytes. Objects of the kind Event
        are encoded first, then the least recently used objects.

        `text` is the JSON text of the object, or None if the text is not known. If `is_new` is
        True, `text` is a new version, and its size is counted in the total size.
        """
        entry, hot = (kind.resource, key), self._hot
        known = hot.get(entry)
        self._hot_bytes += (len(text) if text else 0) - (len(known) if known else 0)
        if is_new:
            self._bytes += _counted(text) - _counted(known)
        hot[entry] = text
        # Events are numerous and seldom read, so they are evicted first.
        hot.move_to_end(entry, last=kind.resource != _SELDOM_READ)
        while len(hot) > self._hot_max or self._hot_bytes > HOT_BYTES_MAX:
            (resource, coldest), text = hot.popitem(last=False)
            objects: dict[Key, Any] = self._objects[resource]
            if text is None:
                text = encode(objects[coldest])
                self._bytes += _counted(text)
            else:
                self._hot_bytes -= len(text)
            objects[coldest] = text

    def _set_hot(self, entry: tuple[str, Key], text: bytes | None) -> None:
        """Record `text` as the JSON text of the decoded object `entry`; None means unknown."""
        known = self._hot.get(entry)
        self._hot_bytes += (len(text) if text else 0) - (len(known) if known else 0)
        self._hot[entry] = text


def _key(meta: Json) -> Key:
    return meta.get("namespace", ""), meta["name"]


def _counted(text: bytes | None) -> int:
    """Return the size of an object with the JSON text `text`; 0 if the text is not known."""
    return len(text) + OVERHEAD_BYTES if text else 0
