"""Watch: a list that goes on.

A watch begins with what there is (as ADDED events) or with what happened since a version, and
then tells each change as it is stored. To a watch with a selector an object comes into being when
it begins to match, and is gone when it no longer does. The text of an event is made once per
change and form, for all watches that show it alike.

Whoever sends the events takes them from `take` when `on_data` says that there are some; the
watch is over when `is_over`, and must be closed by whoever holds it.

    opened --take--> events ... --take--> events ... --(error, overrun or close)--> over

upstream: apiserver/pkg/storage/cacher/cache_watcher.go, endpoints/handlers/watch.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.collection.selector import Selection
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import ChangeType, Kept, Storage, StorageChange

BACKLOG_BYTES_MAX: Final = 64 << 20
PIECE_BYTES: Final = 4 << 20
BOOKMARK_EVERY_S: Final = 60.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

Told = tuple[ChangeType, Json]


class EventForm(Protocol):
    """How a watch's events look."""

    def event(self, name: str, obj: Kept, *, is_first: bool) -> bytes:
        """One line; `obj` is an object of the kind that is watched, or a bookmark of it."""
        ...

    def is_shared(self, *, is_first: bool) -> bool:
        """Whether other watches of the same form have the same line for the same change."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What is watched; `namespace` is "" for all, `after` the version it waits for."""

    kind: Kind
    namespace: str
    wanted: Selection
    form: EventForm
    after: int = 0

    def told(self, change: StorageChange) -> Told | None:
        """What `change` looks like from here, None when it is none of our business."""
        obj, before = change.object, change.previous
        if change.version <= self.after:
            return None
        if self.namespace and obj["metadata"].get("namespace", "") != self.namespace:
            return None
        if self.wanted.is_everything:
            return change.type, obj
        matches = change.type is not ChangeType.DELETED and self.wanted.matches(obj)
        matched = before is not None and self.wanted.matches(before)
        if matches:
            return (ChangeType.MODIFIED if matched else ChangeType.ADDED), obj
        if matched and before is not None:
            return ChangeType.DELETED, _at_version(before, change.version)
        return None


class Watch:
    """One client's watch; `timeout_s` is how long it may last, `bookmark_s` when it is marked last.

    `bookmark_s` is None for a client that does not want bookmarks.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        timeout_s: float,
        bookmark_s: float | None,
        content_type: str,
        close: Callable[[Watch], None],
    ) -> None:
        """`close` is told when the watch ends."""
        self.scope = scope
        self.timeout_s = timeout_s
        self.bookmark_s = bookmark_s
        self.content_type = content_type
        self.is_over = False
        self.on_data: Callable[[], None] | None = None
        self._close = close
        self._first: Iterator[bytes] = iter(())
        self._lines: list[bytes] = []
        self._bytes = 0
        self._is_first = True

    @property
    def is_first(self) -> bool:
        """Whether nothing was told yet."""
        return self._is_first

    def bookmark_in_s(self, elapsed_s: float) -> float | None:
        """How long until the next bookmark, `elapsed_s` after the beginning; None: there is none.

        One comes each minute, so that who has not heard anything for long knows from where to
        go on, and one just before the end.
        """
        # upstream: apiserver/pkg/storage/cacher/cache_watcher.go:nextBookmarkTime
        if self.bookmark_s is None or elapsed_s >= self.bookmark_s:
            return None
        return min(BOOKMARK_EVERY_S, self.bookmark_s - elapsed_s)

    def begin(self, there: Sequence[Kept]) -> None:
        """Tell of the objects that are there, before anything else."""
        self._first = self._added(there)
        self._is_first = self._is_first and not there

    def _added(self, there: Sequence[Kept]) -> Iterator[bytes]:
        """Their lines, made when they are taken: there may be more than anybody could hold."""
        for number, kept in enumerate(there):
            yield self.scope.form.event("ADDED", kept, is_first=number == 0)

    def take(self) -> list[bytes]:
        """The lines that were not taken yet, or, of those it began with, as many as go at once."""
        first, size = [], 0
        for line in self._first:
            first.append(line)
            size += len(line)
            if size >= PIECE_BYTES and self.on_data is not None:
                self.on_data()
                return first
        lines, self._lines, self._bytes = self._lines, [], 0
        return first + lines if first else lines

    def tell(self, name: str, obj: Json) -> None:
        """Add an event."""
        self.add(self.scope.form.event(name, obj, is_first=self._is_first))

    def add(self, line: bytes) -> None:
        """Add the text of an event; a client that does not keep up is cut off."""
        self._is_first = False
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > BACKLOG_BYTES_MAX:
            self.close()
        if self.on_data is not None:
            self.on_data()

    def bookmark(self, version: int, *, is_initial: bool = False) -> None:
        """Tell up to which version everything was told."""
        meta: Json = {"resourceVersion": str(version)}
        if is_initial:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        self.tell("BOOKMARK", {"metadata": meta})

    def end(self) -> None:
        """Be over once what was told is taken."""
        self.is_over = True
        self.close()

    def close(self) -> None:
        """Tell nothing any more."""
        self.is_over = True
        self._close(self)
        if self.on_data is not None:
            self.on_data()


class Watches:
    """All open watches of one storage."""

    def __init__(self, storage: Storage) -> None:
        """Listen to `storage`."""
        self._storage = storage
        self._by_resource: dict[str, dict[Watch, None]] = {}
        self._lines: dict[Any, bytes] = {}
        self._told_version = 0
        storage.subscribe(self._tell)

    @property
    def version(self) -> int:
        """Up to where all watches have been told."""
        return self._storage.version

    def add(self, watch: Watch) -> None:
        """Let `watch` hear what happens from now on."""
        self._by_resource.setdefault(watch.scope.kind.resource, {})[watch] = None

    def remove(self, watch: Watch) -> None:
        """Let `watch` go."""
        self._by_resource.get(watch.scope.kind.resource, {}).pop(watch, None)

    def count(self, kind: Kind | None = None) -> int:
        """How many there are, or how many of `kind`."""
        if kind is not None:
            return len(self._by_resource.get(kind.resource, ()))
        return sum(map(len, self._by_resource.values()))

    def close_all(self) -> None:
        """End every watch: the server is about to stop."""
        for watches in self._by_resource.values():
            for watch in list(watches):
                watch.end()

    def tell(self, watch: Watch, change: StorageChange) -> None:
        """Show `watch` one change."""
        told = watch.scope.told(change)
        if told is None:
            return
        name, obj = told
        form, is_first = watch.scope.form, watch.is_first
        if not form.is_shared(is_first=is_first):
            watch.add(form.event(name, obj, is_first=is_first))
            return
        if change.version != self._told_version:
            self._lines.clear()
            self._told_version = change.version
        key = (form, name, is_first)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = form.event(name, obj, is_first=is_first)
        watch.add(line)

    def _tell(self, change: StorageChange) -> None:
        watches = self._by_resource.get(change.kind.resource)
        if watches:
            for watch in list(watches):
                self.tell(watch, change)


def _at_version(obj: Json, version: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
