"""Reflector: a copy of all objects of one resource, kept up to date by list and watch.

    LIST ──pages──▶ WATCH ──events──▶ WATCH again, from the last version      (it timed out)
      ▲               └──▶ Pause ──▶ WATCH again, from the last version       (it broke)
      └──────────────────────────────────────────────────────────────────────(410: too old)

The reflector does no I/O. `next_action` returns the next request. The caller passes the result of
the request to `listed`, `watched`, `ended` or `failed`. `listed` and `watched` return how the known
objects change.

Events and lists that are older than the known objects are ignored. Otherwise a lagging server would
revert changes. But a server that was restored from a backup also returns an older list, which is
correct. Therefore, after STALE_LISTS_MAX older lists have been ignored, the next list is accepted.
A bookmark may also be older than the version of the watch. After OLD_BOOKMARKS_MAX such bookmarks
in a row, the resource is listed again.

If the server supports `sendInitialEvents`, a list is streamed as events. If a new version of an
object cannot be decoded, the last known version is kept. The known version is replaced when the
object can be decoded again, and removed when the object is deleted.

upstream: client-go/tools/cache/reflector.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from fairlead.api.objects import ApiObject
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.object_decoder import (
    BOOKMARK,
    DELETED,
    ObjectDecoder,
    UndecodableObject,
    WatchFailure,
)
from fairlead.client.error import UNDECODABLE, may_be_temporary
from fairlead.client.page_sequence import PageSequence
from fairlead.client.retry_backoff import Jitter, RetryBackoff

PAGE_OBJECTS: Final = 500  # upstream: client-go/tools/pager/pager.go:defaultPageSize
WATCH_SECONDS: Final = 30
NOT_SERVED_NS: Final = 120_000_000_000
FORBIDDEN_NS: Final = 60_000_000_000
# Lists that are older than the known objects are ignored this many times. Then such a list is
# accepted, because the server may have been restored from a backup.
STALE_LISTS_MAX: Final = 5
# The resource is listed again after this many bookmarks in a row are older than the version of the
# watch.
OLD_BOOKMARKS_MAX: Final = 2
# The resource is listed again if a watch, or a page after the first one, fails with one of
# _NO_VERSION after at least this many failures in a row. Such a status may mean that the server
# does not know the version of the watch or of the continue token: "Too large resource version" has
# status 504. The resource is also listed again after that many failures if the watch or page fails
# because of its content: another request for the same version would have the same content.
REFUSALS_MAX: Final = 3
# If the server demands a pause of at least this length, even the first failure is a problem.
LONG_PAUSE_S: Final = 5.0
VERSION_DIGITS_MAX: Final = 100
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410
_NO_STREAM: Final = (400, 422)
_NO_VERSION: Final = (400, 422, 500, 504)
_TEXT_MAX: Final = 200
_NOT_A_LIST: Final = "the answer is not a list of Kubernetes objects"
_EXPIRED_WATCHES: Final = "no watch can start at the resource version of the list"
_OLD_LIST: Final = "the list is older than the known objects"


class ReadPage(Struct, frozen=True):
    """An action: GET the collection with `query` and pass the response to `listed`."""

    query: Mapping[str, str]


class OpenWatch(Struct, frozen=True):
    """An action: open a watch of the collection with `query`, and pass each line to `watched`.

    The server ends the watch after `seconds`.
    """

    query: Mapping[str, str]
    seconds: int


class PauseUntil(Struct, frozen=True):
    """An action: do nothing until `instant` (ns)."""

    instant: int


class ObjectUpdate(NamedTuple):
    """A change of an object: its new version, or its last version if `is_deleted` is set."""

    object: ApiObject
    is_deleted: bool


class Reflector:
    """The objects of `resource` by key, and the next action that keeps them up to date."""

    def __init__(
        self,
        resource: ApiResource,
        jitter: Jitter,
        *,
        page_objects: int = PAGE_OBJECTS,
        watch_seconds: int = WATCH_SECONDS,
        is_always_served: bool = False,
    ) -> None:
        """Create a reflector without objects; `jitter` returns numbers in [0, 1).

        If `is_always_served` is set, status 404 is a temporary failure: the answer may come from a
        load balancer in front of the API server.
        """
        self.resource = resource
        self.objects: dict[str, ApiObject] = {}
        self.has_synced = False  # whether a list was complete, or the resource absent
        self.is_forbidden = False
        self.is_served = True
        self.has_listed = False  # whether a list was complete
        # 403 or 404 if the server refuses the resource, which it served before; otherwise 0
        self.refusal = 0
        # why the last requests failed, if at least two failed one after the other or the server
        # demanded a long pause; why a list takes long; or `_lasting_problem`; otherwise ""
        self.problem = ""
        self.undecodable: dict[str, str] = {}  # why an object cannot be decoded, by key
        self.relists = 0
        self.decoder = ObjectDecoder(resource)
        self._jitter = jitter
        self._backoff = RetryBackoff(jitter)
        self._is_always_served = is_always_served
        self._page_objects, self._watch_seconds = page_objects, watch_seconds
        self._can_stream = True
        self._version = ""  # "" requests a list
        self._token = ""
        self._listed: set[str] | None = None  # the keys of the list in progress
        self._lists_whole = False  # whether to list without pages: a continue token has expired
        self._stale_lists = 0
        self._pages = PageSequence()  # of the list in progress
        self._endless_lists = 0  # since a list was complete
        self._endless = ""  # why the last of these lists had no end
        self._expired_watches = 0  # watches with status 410 since a watch succeeded
        self._old_bookmarks = 0  # in a row
        self._not_before = 0
        self._failures = 0  # since the last success
        self._has_unusable = False  # whether one of these was an event or page that is unusable

    # --- the next action -------------------------------------------------------------------

    def next_action(self, now: int) -> ReadPage | OpenWatch | PauseUntil:
        """Return the action to perform at `now` (ns)."""
        if now < self._not_before:
            return PauseUntil(self._not_before)
        if self._version:
            return self._watch({"resourceVersion": self._version})
        if self._can_stream:
            self._listed = set()
            initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            return self._watch(initial)
        if self._listed is None:
            self._listed, self._token, self._pages = set(), "", PageSequence()
        if self._lists_whole and not self._token:
            return ReadPage({})
        query = {"limit": str(self._page_objects)}
        return ReadPage(query | ({"continue": self._token} if self._token else {}))

    def _watch(self, query: dict[str, str]) -> OpenWatch:
        seconds = int(self._watch_seconds * (1 + self._jitter()))
        common = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        return OpenWatch(common | query, seconds)

    @property
    def is_failing(self) -> bool:
        """Whether the last request failed, and nothing usable has arrived since."""
        return self._failures > 0

    def end_pause(self, now: int) -> None:
        """Let the next action be a request, even if a pause after a failure has not ended."""
        self._not_before = min(self._not_before, now)

    # --- results of actions ----------------------------------------------------------------

    def listed(self, body: bytes, now: int) -> list[ObjectUpdate]:
        """Process `body`, a page of a list; return the differences to the known objects."""
        assert self._listed is not None
        try:
            page = self.decoder.page(body)
        except UNDECODABLE:
            self.failed(0, now, problem=_NOT_A_LIST)
            return []
        version, token = page.metadata.resource_version, page.metadata.continue_
        if not version:  # other JSON, such as `{}`; it must not count as an empty list
            self.failed(0, now, problem=_NOT_A_LIST)
            return []
        if not self._token and self._is_stale(version):
            self._stale_lists += 1
            if self._stale_lists == 1:  # the server answers again: the pauses start short
                self._backoff.reset()
            if self._stale_lists <= STALE_LISTS_MAX:
                self.failed(0, now, problem=_OLD_LIST)
                return []
        # Only now, because a page of an older list is requested again and has the same token.
        is_empty = not (page.objects or page.undecodable)
        endless = self._pages.add(token, is_empty=is_empty)
        if endless:
            self._endless_lists, self._endless = self._endless_lists + 1, endless
            self.failed(_GONE, now)
            return []
        self._succeeded()
        if self._token:  # the list makes progress
            self._reset_backoff()
        updates = [update for item in page.objects for update in self._put(item)]
        self._listed.update(item.key for item in page.objects)
        for one in page.undecodable:
            self._keep_known(one)
        self._token = token
        if not token:
            updates += self._end_list(version)
        return updates

    def watched(self, line: bytes, now: int) -> list[ObjectUpdate] | None:
        """Process a line of a watch; return how the known objects change.

        Returns None if the caller must end the watch.
        """
        try:
            kind, found = self.decoder.event(line)
        except UNDECODABLE:
            self.failed(0, now, problem="the answer is not a watch event", repeats=True)
            return None
        if isinstance(found, WatchFailure):
            problem = f"the watch ended with an error: {found.message[:_TEXT_MAX]}"
            self.failed(found.code, now, problem=problem, repeats=True)
            return None
        if self._failures or self.refusal:
            self._succeeded()
        if isinstance(found, UndecodableObject):
            if kind == BOOKMARK:
                return []
            return self._remove_key(found.key) if kind == DELETED else self._keep_known(found)
        if kind == BOOKMARK:
            return self._marked(found, now)
        version = found.metadata.resource_version
        if self._listed is not None:
            self._listed.add(found.key)
        elif is_newer(version, self._version):
            self._advance(version)
        else:
            return []  # repeated
        return self._remove(found) if kind == DELETED else self._put(found)

    def _marked(self, bookmark: ApiObject, now: int) -> list[ObjectUpdate] | None:
        """Process a bookmark; return how the known objects change.

        Only the bookmark at the end of a streamed list changes the known objects: objects that the
        list did not contain are deleted. Returns None if the caller must end the watch.
        """
        version = bookmark.metadata.resource_version
        if self._listed is not None:
            if bookmark.metadata.annotations.get(INITIAL_EVENTS_END) != "true":
                return []
            if self._is_stale(version):
                self.failed(0, now, problem=_OLD_LIST)  # the next list is read in pages
                return None
            return self._end_list(version)
        if is_newer(version, self._version):
            self._advance(version)
        elif version != self._version:
            self._old_bookmarks += 1
            if self._old_bookmarks >= OLD_BOOKMARKS_MAX:
                self.failed(_GONE, now)
                return None
        return []

    def _advance(self, version: str) -> None:
        """Continue the watch at `version`; the next pause is short, since the watch succeeded."""
        self._version, self._old_bookmarks = version, 0
        self._watch_succeeded()

    def stayed_open(self) -> None:
        """Record that a watch has been open for a while, so that the resource counts as readable.

        The first event would show this too. But if the resource does not change, the first event is
        a bookmark, which may arrive only after a minute. If the watch breaks after this call, the
        next pause is short, and the failure counts as the first one. Exception: if an event was
        unusable, the count of failures stays, because the next watch may send the same event.
        """
        if self._listed is None:
            self._watch_succeeded()
            self.problem, self.refusal = "", 0
            if not self._has_unusable:
                self._failures = 0

    def list_is_slow(self, problem: str) -> None:
        """Record `problem` if a list is in progress.

        The caller calls this method if the server has not answered for a while. A watch that
        streams no list may have no events for a long time, which is no problem.
        """
        if self._listed is not None:
            self.problem = problem

    def ended(self, now: int) -> None:
        """Record that a watch ended without an error.

        The end counts as a failure if the watch had to stream a list and the list is not complete.
        """
        if self._listed is not None:
            self._reset_backoff()
            self.failed(0, now, problem="the watch ended before the list was complete")
        else:
            self._watch_succeeded()
            self._succeeded()

    def failed(
        self,
        code: int,
        now: int,
        retry_after_s: float = 0.0,
        problem: str = "",
        *,
        repeats: bool = False,
    ) -> None:
        """Record that a request failed with HTTP status `code`, and delay the next request.

        `code` is 0 if there was no usable response; `problem` says why. Set `repeats` if the server
        answered with an event or a page that cannot be used: the same request may then fail every
        time. If `repeats` is set for a page of a list, later pages have half as many objects. If
        the server refused to stream a list, the next request is not delayed.

        If the failure may be temporary, a page of a list is requested again. After any other
        failure, such as an expired continue token, the list starts again. The list also starts
        again after more than REFUSALS_MAX failures in a row, in two cases: `repeats` is set, or the
        status may mean that the server does not know the resource version in the continue token.
        After an expired token, the list is requested without pages, until it is complete, is too
        long, or has failed REFUSALS_MAX times in a row.
        """
        was_streaming = self._listed is not None and self._can_stream
        if repeats and self._listed is not None and not self._can_stream:
            self._page_objects = max(1, self._page_objects // 2)
        if repeats or self._failures >= REFUSALS_MAX:  # the complete list may be too long
            self._lists_whole = False
        is_unknown = (repeats or code in _NO_VERSION) and self._failures >= REFUSALS_MAX
        # If each failure started the list again, a long list would never end on a bad connection.
        if was_streaming or is_unknown or not may_be_temporary(code):
            # upstream: client-go/tools/pager/pager.go: FullListIfExpired
            self._lists_whole = code == _GONE and bool(self._token)
            self._token, self._listed = "", None
        if code in (_NOT_FOUND, _FORBIDDEN):
            is_temporary = code == _NOT_FOUND and self._is_always_served
            if not (self.has_listed or is_temporary):
                self._absent(code, now)
                return
            # While an API server starts, it refuses requests until it has read the roles and the
            # custom resources. The known objects are kept.
            self.refusal = code
        if code == _GONE and self._version:
            self._expired_watches += 1
        if code == _GONE or (is_unknown and self._version):
            self._version = ""
            self.relists += 1
        elif was_streaming:  # lists make progress even if streams keep breaking
            self._can_stream = False
            if code in _NO_STREAM:
                return
        self._failures += 1
        self._has_unusable |= repeats
        self._name_failure(f"status {code}" if code else problem, retry_after_s)
        pause = max(self._backoff.pause(now), int(retry_after_s * NANOSECONDS_PER_SECOND))
        self._not_before = now + pause

    def _name_failure(self, problem: str, retry_after_s: float) -> None:
        """Set `self.problem` after a failure that the argument `problem` describes.

        If the server demands a long pause, or if the previous request also failed, `self.problem`
        describes this failure. Otherwise, `self.problem` becomes the result of `_lasting_problem`.
        If this result is "", `self.problem` keeps its value.
        """
        if retry_after_s >= LONG_PAUSE_S:
            self.problem = f"{problem} with Retry-After: {retry_after_s:.0f}"
        elif self._failures > 1:
            self.problem = problem
        else:
            self.problem = self._lasting_problem() or self.problem

    def _lasting_problem(self) -> str:
        """Return why the reflector starts no watch, although single requests succeed.

        Returns "" if no such reason is known.
        """
        if self._endless_lists > 1:
            return self._endless
        return _EXPIRED_WATCHES if self._expired_watches > 1 else ""

    def _succeeded(self) -> None:
        self._failures, self.problem, self.refusal = 0, self._lasting_problem(), 0
        self._has_unusable = False

    def _watch_succeeded(self) -> None:
        self._expired_watches = 0
        self._reset_backoff()

    def _reset_backoff(self) -> None:
        """Make the next pause short, unless the server answered the last watch with 410.

        The exception is for a server that answers every watch with 410. If each pause were short,
        the resource would be listed again and again almost without a pause.
        """
        if not self._expired_watches:
            self._backoff.reset()

    def _absent(self, code: int, now: int) -> None:
        """Record that the resource is not served (404) or may not be read (403)."""
        self.is_forbidden, self.is_served = code == _FORBIDDEN, code != _NOT_FOUND
        self.has_synced, self._version = True, ""
        self._succeeded()
        pause = FORBIDDEN_NS if self.is_forbidden else NOT_SERVED_NS
        self._not_before = now + pause

    # --- objects ---------------------------------------------------------------------------

    def _end_list(self, version: str) -> list[ObjectUpdate]:
        """Complete a list; return deletions of the known objects that the list did not contain."""
        assert self._listed is not None
        gone = [key for key in self.objects if key not in self._listed]
        updates = [ObjectUpdate(self.objects.pop(key), is_deleted=True) for key in gone]
        for key in self.undecodable.keys() - self._listed:
            del self.undecodable[key]
        self._listed, self._version, self._stale_lists = None, version, 0
        self._lists_whole, self._old_bookmarks, self._endless_lists = False, 0, 0
        self.has_synced = self.is_served = self.has_listed = True
        self.is_forbidden = False
        self._succeeded()
        self._reset_backoff()
        return updates

    def _keep_known(self, found: UndecodableObject) -> list[ObjectUpdate]:
        """Record an object that cannot be decoded; keep its last known version, and return []."""
        self.undecodable[found.key] = found.problem
        if self._listed is not None:
            self._listed.add(found.key)
        return []

    def _remove_key(self, key: str) -> list[ObjectUpdate]:
        """Remove the object `key` from the cache, because it was deleted.

        Returns an ObjectUpdate of the deletion; [] if the object was not in the cache.
        """
        self.undecodable.pop(key, None)
        known = self.objects.pop(key, None)
        return [] if known is None else [ObjectUpdate(known, is_deleted=True)]

    def _put(self, found: ApiObject) -> list[ObjectUpdate]:
        key = found.key
        if self.undecodable:
            self.undecodable.pop(key, None)
        known = self.objects.get(key)
        if known is None:
            self.objects[key] = found
            return [ObjectUpdate(found, is_deleted=False)]
        if known.metadata.uid != found.metadata.uid:
            self.objects[key] = found
            return [ObjectUpdate(known, is_deleted=True), ObjectUpdate(found, is_deleted=False)]
        version, before = found.metadata.resource_version, known.metadata.resource_version
        went_back = self._stale_lists > STALE_LISTS_MAX and version != before
        if not went_back and not is_newer(version, before):
            return []
        self.objects[key] = found
        return [ObjectUpdate(found, is_deleted=False)]

    def _remove(self, found: ApiObject) -> list[ObjectUpdate]:
        if self.undecodable:
            self.undecodable.pop(found.key, None)
        known = self.objects.get(found.key)
        if known is None or known.metadata.uid != found.metadata.uid:
            return []
        del self.objects[found.key]
        return [ObjectUpdate(found, is_deleted=True)]

    def _is_stale(self, version: str) -> bool:
        """Return whether a list with resource version `version` is older than a known object."""
        number = version_number(version)
        if number is None:
            return False
        known = (version_number(one.metadata.resource_version) for one in self.objects.values())
        return max((one for one in known if one is not None), default=0) > number


def is_newer(version: str, than: str) -> bool:
    """Return whether the resource version `version` is newer than the resource version `than`.

    If one of the two versions is not a number, `version` counts as newer if it differs from `than`.
    upstream: apimachinery/pkg/util/resourceversion: CompareResourceVersion
    """
    number, other = version_number(version), version_number(than)
    if number is None or other is None:
        return version != than
    return number > other


def version_number(version: str) -> int | None:
    """Return the resource version `version` as a number; None if it is not a number.

    Also returns None for a number with more than VERSION_DIGITS_MAX digits, because Python converts
    long numbers slowly, and refuses those with thousands of digits.
    """
    is_number = len(version) <= VERSION_DIGITS_MAX and version.isdecimal()
    return int(version) if is_number else None
