"""Watches: queues of encoded events, one queue per client.

A watch starts with the existing objects (as ADDED events) or with the changes since a version. Then
the watch receives each change as it is stored. A watch with a selector sends an ADDED event when an
object starts to match. The watch sends a DELETED event when an object no longer matches. Each
change is encoded once per encoder; all watches with an equal encoder share the encoded event.
Watches without a selector form a group if they have the same namespace and equal encoders. A change
is examined only once for all watches of a group, so that a thousand watches on all pods cost
little.

The HTTP layer sets the callback `on_data`. The watch calls `on_data` in three cases: an event
enters the empty queue, `convert_waiting` has new changes to convert, or the watch ends. `on_data`
is not called for an event that is queued behind others. The HTTP layer must close the watch when
the client disconnects.

A watch ends in three cases: a conversion fails, one of its queues becomes too long
(BACKLOG_BYTES_MAX, WAITING_MAX), or `close` is called. `is_over` is then True. The HTTP layer sends
the events that are still queued, and then ends the response.

Some watches need a webhook that converts objects to the watched version. Such a watch first puts
its changes and bookmarks into a second queue. The HTTP layer runs `convert_waiting`, which converts
the changes in order and queues their events. Other watches and requests are not delayed.

upstream: apiserver/pkg/storage/cacher/cache_watcher.go, endpoints/handlers/watch.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.conversion.converter import calls_webhook
from fairlead.apiserver.endpoints.request.selector import SelectionPredicate
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.storage.storage import ChangeType, Storage, StoredChange, StoredObject
from fairlead.apiserver.suspension import WebhookCalls

BACKLOG_BYTES_MAX: Final = 64 << 20
WAITING_MAX: Final = 10_000
CONVERTED_MAX: Final = 100
BOOKMARK_EVERY_S: Final = 60.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

WatchEvent = tuple[ChangeType, Json]


def line_of(name: str, text: bytes) -> bytes:
    """Return the line for an event of the type `name`; `text` is its encoded object."""
    return b'{"type":"%s","object":%s}\n' % (name.encode(), text)


def error_event(status: Json) -> bytes:
    """Return the encoded ERROR event that ends a watch."""
    return line_of("ERROR", encode(status))


class WatchEventEncoder(Protocol):
    """Encodes the events of a watch."""

    def event(self, name: str, obj: StoredObject, *, is_first: bool) -> bytes:
        """Return one event as a line of bytes.

        `name` is the event type, such as ADDED. `obj` is an object of the watched kind, or a
        bookmark. `is_first` marks the watch's first event.
        """
        ...

    @property
    def is_shared(self) -> bool:
        """True if watches with an equal encoder can send the same line for an event.

        The first event of a watch may need another line than later events.
        """
        ...


# Returns objects in the version of the watch. Raises ApiError 500.
Convert = Callable[[Sequence[StoredObject]], WebhookCalls[list[Json]]]


# Identifies watches that send the same events, by namespace and encoder.
Group = tuple[str, WatchEventEncoder]


class WatchScope(Struct, frozen=True):
    """The objects that a watch covers.

    A `namespace` of "" means all namespaces. The watch ignores changes whose version is at most
    `after`. `convert` is None if no webhook converts the objects.
    """

    kind: Kind
    namespace: str
    predicate: SelectionPredicate
    encoder: WatchEventEncoder
    after: int = 0
    convert: Convert | None = None

    @property
    def group(self) -> Group | None:
        """The group of watches that send the same events; None if there is no such group.

        The watches of a group have the same namespace and equal encoders. `after` may differ.
        """
        if self.convert is not None or not self.predicate.is_everything:
            return None
        return (self.namespace, self.encoder) if self.encoder.is_shared else None

    def may_concern(self, change: StoredChange) -> bool:
        """Return whether `change` is newer than `after` and in a watched namespace."""
        if change.version <= self.after:
            return False
        return not self.namespace or change.key[0] == self.namespace

    def event_of(self, change: StoredChange) -> WatchEvent | None:
        """Return the event for `change`; None if the change does not concern a watched object."""
        if not self.may_concern(change):
            return None
        return self.event(change, change.object, change.previous)

    def event(self, change: StoredChange, obj: Json, before: Json | None) -> WatchEvent | None:
        """Return the event for `change`, as `event_of` does.

        `obj` is the object of `change`, and `before` is the object before the change. `obj` and
        `before` have the API version of the watch.
        """
        if self.predicate.is_everything:
            return change.type, obj
        matches = change.type is not ChangeType.DELETED and self.predicate.matches(obj)
        matched = before is not None and self.predicate.matches(before)
        if matches:
            return (ChangeType.MODIFIED if matched else ChangeType.ADDED), obj
        if matched and before is not None:
            return ChangeType.DELETED, _at_version(before, change.version)
        return None


class Bookmark(Struct, frozen=True):
    """A BOOKMARK event; it stays queued until all earlier changes are converted and sent."""

    metadata: Json


class Existing(Struct, frozen=True):
    """The objects that exist when a watch starts, and that wait for their conversion."""

    objects: Sequence[StoredObject]


Waiting = StoredChange | Bookmark | Existing


class Watch:
    """One client's queue of events.

    `timeout_s` is the duration of the watch. `bookmark_s` is the time of the final bookmark in
    seconds after the start. If `bookmark_s` is None, the watch sends no bookmarks. `is_drained` is
    True if the last call of `pop_lines` returned all queued events.
    """

    def __init__(
        self,
        scope: WatchScope,
        *,
        timeout_s: float,
        bookmark_s: float | None,
        content_type: str,
        close: Callable[[Watch], None],
    ) -> None:
        """`content_type` is the content type of the response.

        When the watch ends, it calls `close` with itself as the argument.
        """
        self.scope = scope
        self.timeout_s = timeout_s
        self.bookmark_s = bookmark_s
        self.content_type = content_type
        self.is_over = False
        self.on_data: Callable[[], None] | None = None
        self._close = close
        self.is_drained = True
        self._first: Iterator[bytes] = iter(())
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._is_first = True
        # changes and bookmarks that wait for a conversion, oldest first
        self._waiting: deque[Waiting] = deque()

    @property
    def is_first(self) -> bool:
        """True until the first event is added."""
        return self._is_first

    @property
    def has_waiting(self) -> bool:
        """True if changes or bookmarks wait for `convert_waiting`."""
        return bool(self._waiting) and not self.is_over

    def bookmark_in_s(self, elapsed_s: float) -> float | None:
        """Return the seconds from `elapsed_s` to the next bookmark; None after the final bookmark.

        `elapsed_s` is the time since the watch began. Bookmarks are sent every minute and just
        before the timeout, so that an idle client can resume from a recent version.
        """
        # upstream: apiserver/pkg/storage/cacher/cache_watcher.go:nextBookmarkTime
        if self.bookmark_s is None or elapsed_s >= self.bookmark_s:
            return None
        return min(BOOKMARK_EVERY_S, self.bookmark_s - elapsed_s)

    def begin_waiting(self, existing: Sequence[StoredObject]) -> None:
        """Queue `existing` for `convert_waiting`; call this before the first call of `defer`."""
        self._wait(Existing(existing))

    def begin(self, existing: Sequence[StoredObject]) -> None:
        """Queue ADDED events for `existing` objects, before all other events."""
        self._first = self._added(existing)
        self._is_first = self._is_first and not existing

    def _added(self, existing: Sequence[StoredObject]) -> Iterator[bytes]:
        """Yield the encoded ADDED events of `existing`, one at a time to save memory."""
        for number, kept in enumerate(existing):
            yield self.scope.encoder.event("ADDED", kept, is_first=number == 0)

    def must_wait(self, change: StoredChange) -> bool:
        """Return whether the watch must call a webhook before it can send `change`.

        The webhook converts the object in `change`, or in an earlier change that is not sent yet.
        """
        if self.scope.convert is None:
            return False
        kind, objects = self.scope.kind, (change.object, change.previous)
        return bool(self._waiting) or any(
            obj is not None and calls_webhook(kind, obj) for obj in objects
        )

    def defer(self, change: StoredChange) -> None:
        """Queue `change` for `convert_waiting` if it may concern a watched object."""
        # A conversion webhook does not change names.
        if self.scope.may_concern(change) and self.scope.predicate.name in ("", change.key[1]):
            self._wait(change)

    def _wait(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        if len(self._waiting) > WAITING_MAX:
            self.close()
        if self.on_data is not None:
            self.on_data()

    def convert_waiting(self) -> WebhookCalls[None]:
        """Convert at most CONVERTED_MAX waiting changes, oldest first, and queue their events.

        If the conversion fails, the watch ends with an ERROR event.
        """
        # The changes stay in the queue meanwhile, so that later bookmarks wait, too.
        batch = list(islice(self._waiting, CONVERTED_MAX))
        stored = [obj for waiting in batch for obj in _objects(waiting, self.scope.predicate)]
        assert self.scope.convert is not None
        try:
            objects = iter((yield from self.scope.convert(stored)))
        except ApiError as refusal:
            self._waiting.clear()
            self.add(error_event(failure(refusal)))
            self.close()
            return
        for waiting in batch:
            if self.is_over:
                return
            self._waiting.popleft()
            self._send_converted(waiting, objects)

    def _send_converted(self, waiting: Waiting, objects: Iterator[Json]) -> None:
        """Queue the events of `waiting`; their converted objects are the next ones in `objects`."""
        match waiting:
            case Bookmark():
                self.send("BOOKMARK", {"metadata": waiting.metadata})
            case Existing():
                taken = islice(objects, len(waiting.objects))
                self.begin([obj for obj in taken if self.scope.predicate.matches(obj)])
            case StoredChange():
                event = self.scope.event(
                    waiting, *_converted(waiting, objects, self.scope.predicate)
                )
                if event is not None:
                    self.send(*event)

    def pop_lines(self, bytes_max: int = BACKLOG_BYTES_MAX) -> list[bytes]:
        """Remove queued events, oldest first, and return them.

        Stop when the total size of the returned events exceeds `bytes_max`, or when no event is
        left.
        """
        taken, size, self.is_drained = [], 0, False
        for line in self._first:
            taken.append(line)
            size += len(line)
            if size > bytes_max:
                return taken
        while self._lines:
            line = self._lines.popleft()
            taken.append(line)
            size += len(line)
            self._bytes -= len(line)
            if size > bytes_max:
                return taken
        self.is_drained = True
        return taken

    def send(self, name: str, obj: Json) -> None:
        """Encode and queue an event of the type `name` for `obj`."""
        self.add(self.scope.encoder.event(name, obj, is_first=self._is_first))

    def add(self, line: bytes) -> None:
        """Queue an encoded event.

        If too many bytes are queued, end the watch: its client is too slow.
        """
        self._is_first = False
        was_empty = not self._lines
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > BACKLOG_BYTES_MAX:
            self.close()
        elif was_empty and self.on_data is not None:
            self.on_data()

    def bookmark(self, version: int, *, is_initial: bool = False) -> None:
        """Queue a bookmark, which states that all changes up to `version` were sent.

        If `is_initial` is True, the bookmark also tells the client that the initial events have
        ended.
        """
        meta: Json = {"resourceVersion": str(version)}
        if is_initial:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        if self._waiting:
            self._wait(Bookmark(meta))
        else:
            self.send("BOOKMARK", {"metadata": meta})

    def close(self) -> None:
        """End the watch, and signal the HTTP layer, which still sends the queued events."""
        self.is_over = True
        self._close(self)
        if self.on_data is not None:
            self.on_data()


class Watches:
    """All open watches of one storage."""

    def __init__(self, storage: Storage) -> None:
        """Subscribe to `storage`, so that its changes are sent to the watches."""
        self._storage = storage
        self._by_resource: dict[str, dict[Group | None, dict[Watch, None]]] = {}
        self._lines: dict[Any, bytes] = {}
        self._lines_version = 0
        storage.subscribe(self._send_to_all)

    @property
    def version(self) -> int:
        """The storage version up to which all watches have received their events."""
        return self._storage.version

    def add(self, watch: Watch) -> None:
        """Subscribe `watch` to all later changes."""
        groups = self._by_resource.setdefault(watch.scope.kind.resource, {})
        groups.setdefault(watch.scope.group, {})[watch] = None

    def remove(self, watch: Watch) -> None:
        """Unsubscribe `watch`."""
        groups = self._by_resource.get(watch.scope.kind.resource, {})
        watches = groups.get(watch.scope.group, {})
        watches.pop(watch, None)
        if not watches:
            groups.pop(watch.scope.group, None)

    def count(self, kind: Kind | None = None) -> int:
        """Return the number of open watches of `kind`, or of all kinds if `kind` is None."""
        if kind is not None:
            return sum(map(len, self._by_resource.get(kind.resource, {}).values()))
        return sum(
            len(watches) for groups in self._by_resource.values() for watches in groups.values()
        )

    def close(self, kind: Kind) -> None:
        """End the watches of `kind`, in all its versions."""
        for watches in list(self._by_resource.get(kind.resource, {}).values()):
            for watch in list(watches):
                watch.close()

    def close_all(self) -> None:
        """End every watch. The server calls this when it stops."""
        for groups in self._by_resource.values():
            for watches in list(groups.values()):
                for watch in list(watches):
                    watch.close()

    def send(self, watch: Watch, change: StoredChange) -> None:
        """Queue the event for `change` in `watch`, if `watch` selects the changed object."""
        if watch.must_wait(change):
            watch.defer(change)
            return
        event = watch.scope.event_of(change)
        if event is None:
            return
        encoder = watch.scope.encoder
        if encoder.is_shared:
            watch.add(self._line(encoder, change.version, event, is_first=watch.is_first))
        else:
            watch.send(*event)

    def _line(
        self, encoder: WatchEventEncoder, version: int, event: WatchEvent, *, is_first: bool
    ) -> bytes:
        """Return the line of `event`, which `encoder` encodes only once for all watches.

        `version` is the version of the change that caused the event.
        """
        if version != self._lines_version:
            self._lines.clear()
            self._lines_version = version
        name, obj = event
        key = (encoder, name, is_first)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encoder.event(name, obj, is_first=is_first)
        return line

    def _send_to_all(self, change: StoredChange) -> None:
        groups = self._by_resource.get(change.kind.resource)
        if not groups:
            return
        for group, watches in list(groups.items()):
            if group is None:
                for watch in list(watches):
                    self.send(watch, change)
            elif group[0] in ("", change.key[0]):
                self._send_to_group(group[1], list(watches), change)

    def _send_to_group(
        self, encoder: WatchEventEncoder, watches: Sequence[Watch], change: StoredChange
    ) -> None:
        """Queue the event for `change` in `watches`, which send the same events."""
        event = change.type, change.object
        lines: dict[bool, bytes] = {}
        for watch in watches:
            if change.version <= watch.scope.after:
                continue
            is_first = watch.is_first
            line = lines.get(is_first)
            if line is None:
                line = lines[is_first] = self._line(
                    encoder, change.version, event, is_first=is_first
                )
            watch.add(line)


def _objects(waiting: Waiting, predicate: SelectionPredicate) -> Iterator[StoredObject]:
    """Yield the objects in `waiting` that must be converted before their events can be sent."""
    match waiting:
        case Existing():
            yield from waiting.objects
        case StoredChange():
            yield waiting.object
            if waiting.previous is not None and not predicate.is_everything:
                yield waiting.previous


def _converted(
    change: StoredChange, objects: Iterator[Json], predicate: SelectionPredicate
) -> tuple[Json, Json | None]:
    """Return (new state, previous state) of the object in `change`, both converted.

    Takes the converted states from `objects`. If `change` has no previous state, or if the watch
    has no selector, the previous state is None, and `objects` does not contain it.
    """
    obj = next(objects)
    has_previous = change.previous is not None and not predicate.is_everything
    return obj, next(objects) if has_previous else None


def _at_version(obj: Json, version: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
