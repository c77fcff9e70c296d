"""Storage: the newest version of every object, and a bounded log of changes.

One counter numbers all changes, so a resourceVersion is a position in the common history of all
kinds. Changes use `put`, `add_text` or `remove`. These methods assign the version, append to the
log and call the listeners, in this order. The exceptions are `rewrite` and the methods that restore
a storage: they write no log entry and call no listeners. The rules about objects are in
`registry.store`. A `write_ahead_log` may keep a copy of the storage on disk. `look_for_room` checks
the disk space for this copy. If there is too little space, changes are refused until a later check
finds enough. Deletions are still accepted until the disk space that is reserved for them is used
up.

An object is a JSON value and is never mutated. A change makes a new value, which shares the
unchanged parts. The text of a changed object is encoded at most once (`StoredChange.text`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.error import expired, no_space
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.storage.pod_node_index import PodNodeIndex

Key = tuple[str, str]
# A stored object: a decoded value or its JSON text.
StoredObject = Json | bytes
Listener = Callable[["StoredChange"], None]

LOG_CAPACITY: Final = 10_000


class ChangeType(StrEnum):
    """The type of a change, as in watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(slots=True)
class StoredChange:
    """One entry of the log; `previous` is the object's previous version, None for a new object.

    For a deletion, `object` is the deleted object with the resourceVersion of the deletion, as in a
    watch event. `key` is the object's namespace and name. Entries are never changed. The class is
    not frozen, because creating a frozen entry takes three times as long.
    """

    type: ChangeType
    kind: Kind
    object: Json
    previous: Json | None
    version: int
    key: Key = field(compare=False, repr=False)
    _text: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> bytes:
        """The JSON text of `object`, encoded on first use."""
        text = self._text
        if text is None:
            text = self._text = encode(self.object)
        return text


class AddedText(StoredChange):
    """The creation of an object from its JSON text. `object` is decoded when it is first read."""

    __slots__ = ()

    def __init__(self, kind: Kind, key: Key, text: bytes, version: int) -> None:
        """`text` is the JSON of the new object `key`, whose resourceVersion is `version`."""
        super().__init__(ChangeType.ADDED, kind, {}, None, version, key, text)
        del self.object

    if not TYPE_CHECKING:  # With `__getattr__`, type checkers would accept every attribute name.

        def __getattr__(self, name: str) -> Json:
            """Return `object`, decoded from the text. The first read of `object` calls this."""
            if name != "object":
                raise AttributeError(name)
            self.object = _decode(self._text)
            return self.object


_NONE: Final[Mapping[Key, StoredObject]] = {}
_decode: Final = msgspec.json.Decoder(type=Json).decode
encode: Final[Callable[[Json], bytes]] = msgspec.json.Encoder().encode


def _always() -> bool:
    return True


def _every_resource(_resource: str) -> bool:
    return True


def _as_it_is(_kind: Kind, obj: Json, _before: Json | None) -> Json:
    return obj


def list_key(key: Key, namespace: str) -> str:
    """Return the key of an object in a list of `namespace`; "" means all namespaces.

    The key is the object's name. In a list of all namespaces, the key of a namespaced object is
    "namespace/name".
    """
    own, name = key
    return name if namespace or not own else f"{own}/{name}"


def value_of(stored: StoredObject) -> Json:
    """Return a stored object as a JSON value."""
    return _decode(stored) if isinstance(stored, bytes) else stored


class _StoredMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Stored(msgspec.Struct):
    metadata: _StoredMeta


_meta_of: Final = msgspec.json.Decoder(type=_Stored).decode


def version_of(stored: StoredObject) -> int:
    """Return the resourceVersion of a stored object.

    If the object is stored as text, no other field is decoded.
    """
    if isinstance(stored, bytes):
        return int(_meta_of(stored).metadata.resource_version)
    return int(stored["metadata"]["resourceVersion"])


class Deferred(Protocol):
    """An object whose JSON value is built when it is first read."""

    @property
    def kind(self) -> Kind:
        """The kind of the object."""
        ...

    @property
    def key(self) -> Key:
        """The namespace and name of the object."""
        ...

    @property
    def value(self) -> Json:
        """The object as a JSON value."""
        ...


class DeferredRows(Protocol):
    """Similar objects whose JSON values are built when they are first read."""

    @property
    def kind(self) -> Kind:
        """The kind of the objects."""
        ...

    @property
    def storage_keys(self) -> Iterable[Key]:
        """The namespace and name of each object."""
        ...

    @property
    def rows(self) -> Iterable[tuple[Any, int]]:
        """The pair (this DeferredRows, position) of each object; see `object_at`."""
        ...

    def object_at(self, index: int) -> Deferred:
        """Return the object at the position `index`."""
        ...


class Storage:
    """Stores all objects in memory, for a single writer."""

    def __init__(self, log_capacity: int = LOG_CAPACITY) -> None:
        """Start empty at version 0.

        The log keeps the newest `log_capacity` changes. Use 0 if no client watches.
        """
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._kinds: dict[str, Kind] = {}
        self._log: deque[StoredChange] = deque(maxlen=log_capacity)
        self._subscriptions: list[tuple[Listener, Callable[[str], bool]]] = []
        self._listeners: dict[str, tuple[Listener, ...]] = {}  # by resource
        self._version = 0
        self._oldest = 0
        self._pods_by_node: PodNodeIndex | None = None  # made when it is first needed
        # By resource and namespace: the sorted keys of a list.
        self._list_keys: dict[str, dict[str, list[str]]] = {}
        self._rewritten: dict[str, int] = {}  # by resource: the version of the last `rewrite`
        # Orders the fields of an object as clients expect them. The third argument is the previous
        # version, whose fields are already in this order; None for a new object.
        self.arranged: Callable[[Kind, Json, Json | None], Json] = _as_it_is
        # These functions return whether the durable copy accepts changes, and whether it accepts
        # deletions.
        self.has_room: Callable[[], bool] = _always
        self.has_room_to_delete: Callable[[], bool] = _always
        self._is_full = False
        self._is_exhausted = False

    @property
    def version(self) -> int:
        """The version of the newest change."""
        return self._version

    def look_for_room(self) -> bool:
        """Check the disk space; return whether there is enough for changes.

        Until the next check, the storage accepts or refuses changes by this result. Each request
        checks once at its start, so that its changes succeed or fail as a whole.
        """
        self._is_full = not self.has_room()
        self._is_exhausted = self._is_full and not self.has_room_to_delete()
        return not self._is_full

    @property
    def is_full(self) -> bool:
        """Whether the last `look_for_room` found too little disk space for changes."""
        return self._is_full

    @property
    def problem(self) -> str:
        """The error text if the disk is full, otherwise ""."""
        if not self._is_full:
            return ""
        accepted = "nothing can be written" if self._is_exhausted else "only deletions are accepted"
        return f"no space left on the disk: {accepted}"

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object `name`; None if it does not exist."""
        objects = self._objects.get(kind.resource)
        return objects.get((namespace, name)) if objects else None

    def find_stored(self, kind: Kind, namespace: str, name: str) -> StoredObject | None:
        """Return the object `name` as a JSON value or text (see `value_of`).

        Return None if the object does not exist.
        """
        return self._objects.get(kind.resource, _NONE).get((namespace, name))

    def stored_text(self, kind: Kind, obj: Json) -> bytes | None:
        """Return the JSON text of `obj`; None if `obj` is not the stored Python object itself."""
        meta = obj["metadata"]
        stored = self.find_stored(kind, meta.get("namespace", ""), meta["name"])
        return encode(obj) if stored is obj else None

    def items(self, kind: Kind, namespace: str | None = None) -> Iterator[Json]:
        """Yield the objects of `kind`, sorted by namespace and name.

        `namespace` None means all namespaces.
        """
        objects = self._objects.get(kind.resource, {})
        wanted = objects if namespace is None else [key for key in objects if key[0] == namespace]
        for key in sorted(wanted):
            yield objects[key]

    def unsorted(self, kind: Kind) -> Iterable[Json]:
        """Return the objects of `kind` in insertion order; cheaper than `items`."""
        return self._objects.get(kind.resource, {}).values()

    def stored_items(
        self, kind: Kind, namespace: str | None = None
    ) -> Iterator[tuple[Key, StoredObject]]:
        """Yield (key, JSON value or text) of the objects of `kind`, unordered.

        `namespace` None means all namespaces. Use this method if only some objects are needed as
        JSON values; `value_of` decodes a text.
        """
        for key, kept in self._objects.get(kind.resource, {}).items():
            if namespace is None or key[0] == namespace:
                yield key, kept

    def stored_pods_on(self, node: str) -> Iterator[tuple[Key, StoredObject]]:
        """Yield (key, stored pod) for each pod on `node`; `node` must not be empty."""
        if self._pods_by_node is None:
            self._pods_by_node = PodNodeIndex(self.stored_items(POD))
        for key in self._pods_by_node.on(node):
            found = self.find_stored(POD, *key)
            if found is not None:
                yield key, found

    def list_keys(self, kind: Kind, namespace: str) -> Sequence[str]:
        """Return the sorted keys (see `list_key`) of the objects of `kind` in `namespace`.

        The keys are cached until objects are added or removed. `namespace` "" means all namespaces.
        """
        known = self._list_keys.get(kind.resource)
        keys = None if known is None else known.get(namespace)
        if keys is None:
            found = self._objects.get(kind.resource, _NONE)
            keys = sorted([list_key(key, namespace) for key in found if namespace in ("", key[0])])
            if keys:  # a client may ask for any number of namespaces that do not exist
                self._list_keys.setdefault(kind.resource, {})[namespace] = keys
        return keys

    def count(self, kind: Kind) -> int:
        """Return the number of objects of `kind`."""
        return len(self._objects.get(kind.resource, _NONE))

    def has_any(self, resources: frozenset[str]) -> bool:
        """Return whether an object of one of `resources` exists.

        Each of `resources` has the form of `Kind.resource`, such as `deployments.apps`. For rare
        kinds, this is cheaper than `count`.
        """
        if self._objects.keys().isdisjoint(resources):
            return False
        return any(self._objects.get(resource) for resource in resources)

    def kinds(self) -> list[Kind]:
        """Return the kinds that have or had objects.

        The kinds are in the order in which their first objects were stored. A custom kind is
        returned in its storage version.
        """
        return list(self._kinds.values())

    def put(self, kind: Kind, obj: Json, *, is_arranged: bool = False) -> Json:
        """Store `obj` under the next version; return the stored object.

        `is_arranged` means that the fields of `obj` are already in the order of stored objects.
        Raises ApiError 500 if there is no disk space, or if the object is too large.
        """
        meta = obj["metadata"]
        if self._is_full and (self._is_exhausted or not meta.get("deletionTimestamp")):
            raise no_space()
        version = self._version + 1
        meta = {**meta, "resourceVersion": str(version)}
        kind = kind.as_stored
        objects = self._of(kind)
        key = (meta.get("namespace", ""), meta["name"])
        previous = objects.get(key)
        stored = {**obj, "metadata": meta}
        if not is_arranged:
            stored = self.arranged(kind, stored, previous)
        type_ = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        change = StoredChange(type_, kind, stored, previous, version, key)
        self._require_space(change)
        self._version = version
        objects[key] = stored
        self._record(change)
        return stored

    def add_text(self, kind: Kind, key: Key, text_at: Callable[[int], bytes]) -> None:
        """Store a new object, whose JSON text is the result of `text_at(version)`.

        `version` is the resourceVersion that the text must contain. There must be no object with
        the key `key`. The members in the text must be in the order that `arranged` defines. Raises
        ApiError 500 like `put`.
        """
        if self._is_full:
            raise no_space()
        version = self._version + 1
        change = AddedText(kind, key, text_at(version), version)
        self._require_space(change)
        self._version = version
        self._keep_new(change)
        self._record(change)

    def _keep_new(self, change: StoredChange) -> None:
        """Store the new object of `change`; a subclass may store the object's JSON text instead."""
        self._of(change.kind)[change.key] = change.object

    def remove(self, kind: Kind, namespace: str, name: str) -> Json:
        """Remove an object; return its last version.

        Raises KeyError if the object does not exist. Raises ApiError 500 if there is no disk space.
        """
        if self._is_exhausted:
            raise no_space()
        key = namespace, name
        previous = self._objects[kind.resource].pop(key)
        self._version += 1
        meta = {**previous["metadata"], "resourceVersion": str(self._version)}
        last = {**previous, "metadata": meta}
        kind = kind.as_stored
        self._record(StoredChange(ChangeType.DELETED, kind, last, previous, self._version, key))
        return last

    def rewrite(self, kind: Kind, read: Callable[[Json], Json]) -> None:
        """Replace each object of `kind` by `read(object)`, which has the same resourceVersion.

        `read` returns the object itself if nothing changes. No listener is called. The changes in
        the log are not rewritten. Therefore a later watch of `kind` cannot start at a version from
        before the rewrite.
        """
        if kind.resource in self._kinds:
            self._kinds[kind.resource] = kind.as_stored
        for key in list(self._objects.get(kind.resource, ())):
            found = self.find_stored(kind, *key)
            if found is None:
                continue
            obj = value_of(found)
            new = read(obj)
            if new is not obj:
                self._replace(kind, key, self.arranged(kind, new, obj))
                self._rewritten[kind.resource] = self._version

    def _replace(self, kind: Kind, key: Key, obj: Json) -> None:
        """Store `obj` in place of the object `key`, without a new version."""
        self._of(kind)[key] = obj

    def restore(self, objects: Iterable[tuple[Kind, Json]], version: int) -> None:
        """Add or replace objects that already have versions, without calling listeners.

        `version` is the newest version of the objects. `version` becomes the version of the
        storage, unless the storage already has a higher version. The log becomes empty, so watches
        can start only at the version of the storage.
        """
        for kind, obj in objects:
            meta = obj["metadata"]
            self._of(kind)[meta.get("namespace", ""), meta["name"]] = self.arranged(kind, obj, None)
        self._pods_by_node = None
        self._list_keys.clear()
        self._version = self._oldest = max(self._version, version)
        self._log.clear()

    def restore_texts(self, texts: Iterable[tuple[Kind, Key, bytes]], version: int) -> None:
        """Add objects from JSON texts; `restore` explains `version`."""
        self.restore(((kind, msgspec.json.decode(text)) for kind, _, text in texts), version)

    def restore_deferred(self, objects: Iterable[Deferred], version: int) -> None:
        """Add objects; a subclass may build their values later. See `restore`."""
        self.restore(((one.kind, one.value) for one in objects), version)

    def restore_rows(self, objects: DeferredRows, version: int) -> None:
        """Add all objects in `objects`; a subclass may build their values later. See `restore`."""
        self.restore_deferred((objects.object_at(index) for _, index in objects.rows), version)

    def resume(self, changes: Iterable[StoredChange]) -> None:
        """Load the changes that led to the restored objects; the newest change comes last.

        The versions of `changes` are consecutive. The newest change has the `version` that was
        passed to `restore`.
        """
        self._log.extend(changes)
        if self._log:
            self._oldest = self._log[0].version - 1

    def changes_since(self, version: int, kind: Kind | None = None) -> list[StoredChange]:
        """Return the changes of all kinds after `version`, in order; [] if there are none.

        Raises ApiError 410 if the log no longer contains all of them, or if objects of `kind` were
        rewritten after `version`.
        """
        oldest = self._oldest
        if kind is not None:
            oldest = max(oldest, self._rewritten.get(kind.resource, 0))
        if version < oldest:
            raise expired(version, oldest)
        # Each version is one entry, so an entry's index follows from its version.
        return list(islice(self._log, version - self._oldest, None))

    def subscribe(
        self, listener: Listener, concerns: Callable[[str], bool] = _every_resource
    ) -> Callable[[], None]:
        """Call `listener` with each later change; return a function that unsubscribes `listener`.

        `concerns` returns whether the listener needs the changes of a resource, such as
        `leases.coordination.k8s.io`. `concerns` must always return the same value for the same
        resource.
        """
        subscription = listener, concerns
        self._subscriptions.append(subscription)
        self._listeners.clear()

        def unsubscribe() -> None:
            self._subscriptions.remove(subscription)
            self._listeners.clear()

        return unsubscribe

    def _of(self, kind: Kind) -> dict[tuple[str, str], Json]:
        objects = self._objects.get(kind.resource)
        if objects is None:
            self._kinds[kind.resource] = kind.as_stored
            objects = self._objects[kind.resource] = {}
        return objects

    def _require_space(self, change: StoredChange) -> None:
        """Do nothing; a subclass may raise ApiError 500 for a change that is too large to store."""

    def _record(self, change: StoredChange) -> None:
        if not self._log.maxlen:
            self._oldest = change.version
        else:
            if len(self._log) == self._log.maxlen:
                self._forget_oldest()
            self._log.append(change)
        if change.type is not ChangeType.MODIFIED:
            self._list_keys.pop(change.kind.resource, None)
        if self._pods_by_node is not None and change.kind.resource == POD.resource:
            self._index_pod(change, self._pods_by_node)
        resource = change.kind.resource
        listeners = self._listeners.get(resource)
        if listeners is None:
            subscribed = (one for one, concerns in self._subscriptions if concerns(resource))
            listeners = self._listeners[resource] = tuple(subscribed)
        for listener in listeners:
            listener(change)

    def _index_pod(self, change: StoredChange, index: PodNodeIndex) -> None:
        if change.type is ChangeType.DELETED:
            index.remove(change.key)
        else:
            index.put(change.key, change.object)

    def _forget_oldest(self) -> None:
        self._log.popleft()
        self._oldest += 1
