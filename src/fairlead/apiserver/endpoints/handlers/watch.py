"""Watch of a collection, or of one object.

upstream: apiserver/pkg/endpoints/handlers/get.go:ListResource, handlers/watch.go
"""

from __future__ import annotations

from functools import partial
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.apiserver.apiextensions.conversion.converter import calls_webhook, from_storage
from fairlead.apiserver.endpoints.collection.list_page import may_match, objects_now
from fairlead.apiserver.endpoints.collection.watch import (
    Convert,
    Watch,
    WatchEventEncoder,
    WatchScope,
    error_event,
)
from fairlead.apiserver.endpoints.request.options import (
    ListOptions,
    list_options,
    resource_version_problem,
)
from fairlead.apiserver.endpoints.request.selector import pinned_name, selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.response.watch_event import (
    MetadataEventEncoder,
    ObjectEventEncoder,
    TableEventEncoder,
)
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.negotiation.media_type import (
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    MediaTypeOptions,
)
from fairlead.apiserver.negotiation.request_error import too_large_resource_version, unreadable
from fairlead.apiserver.negotiation.status import failure

# The duration of a watch without timeoutSeconds. Upstream picks a random duration between
# MinRequestTimeout (1,800 s, apiserver/pkg/server/config.go) and twice that.
WATCH_TIMEOUT_S: Final = 3_600
BOOKMARK_LEAD_S: Final = 2.0
BOOKMARK_EARLIEST_S: Final = 0.6
_HALF: Final = 1 << 63


def watch(scope: RequestScope) -> Watch:
    """Open a watch, which sends the existing objects or recent changes, then every new change."""
    # 1. negotiate the media type of the events
    media_type = scope.negotiate(streams=True, is_list=True)
    # 2. read the options and selectors
    options = list_options(scope.request, is_watch=True)
    problem = resource_version_problem(options.version) if options.version else ""
    if problem:
        raise unreadable(problem)
    name, fields = scope.info.name, options.field_selector
    if name and fields and pinned_name(fields) not in ("", name):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    predicate = selection_predicate(scope.kind, options.label_selector, fields, name)
    # 3. open the watch
    watched = WatchScope(
        scope.kind,
        scope.info.namespace,
        predicate,
        _event_encoder(scope, media_type),
        int(options.version or "0"),
        _conversion(scope),
    )
    timeout_s = _timeout_s(options.timeout_s or 0)
    opened = Watch(
        watched,
        timeout_s=timeout_s,
        bookmark_s=_last_bookmark_s(options, timeout_s),
        content_type=media_type.media_type,
        close=scope.deps.watches.remove,
    )
    if timeout_s < 0:
        opened.close()
        return opened
    # 4. send the initial events and subscribe; an error after 200 OK is an event
    try:
        _start(scope, opened, options)
    except ApiError as refusal:
        opened.add(error_event(failure(refusal)))
        opened.close()
    return opened


def _start(scope: RequestScope, opened: Watch, options: ListOptions) -> None:
    """Send the initial events to the watch `opened`, then subscribe the watch to changes.

    Raises ApiError 410 if the log no longer contains all changes after the requested version. Also
    raises ApiError 410 if the schema of the objects has changed since that version. Raises ApiError
    504 if initial events are requested at a version that does not exist yet.
    """
    watches, storage = scope.deps.watches, scope.deps.store.storage
    watched, version = opened.scope, int(options.version or "0")
    if options.send_initial and version > scope.deps.store.version:
        raise too_large_resource_version(version, scope.deps.store.version)
    if options.send_initial or (version == 0 and options.send_initial is None):
        found = objects_now(storage, watched.kind, watched.namespace)
        if watched.convert is not None and any(
            calls_webhook(watched.kind, kept) for _, kept in found
        ):
            opened.begin_waiting([kept for key, kept in found if may_match(watched.predicate, key)])
        else:
            existing = [kept for _, kept in found]
            if not watched.predicate.is_everything:
                existing = list(filter(watched.predicate.selects, existing))
            opened.begin(existing)
        if options.bookmarks:
            opened.bookmark(storage.version, is_initial=True)
    elif version > 0:
        for change in storage.changes_since(version, watched.kind):
            if change.kind.resource == watched.kind.resource:
                watches.send(opened, change)
    watches.add(opened)


def _timeout_s(requested_s: int) -> float:
    """Return the duration of the watch in seconds; negative if the watch must end immediately."""
    # upstream: handlers/get.go:ListResource, whose duration in ns overflows 64 bits
    wrapped = (requested_s * NANOSECONDS_PER_SECOND + _HALF) % (2 * _HALF) - _HALF
    return wrapped / NANOSECONDS_PER_SECOND or WATCH_TIMEOUT_S


def _last_bookmark_s(options: ListOptions, timeout_s: float) -> float | None:
    """Return the time of the last bookmark, in seconds after the start of the watch.

    Return None if there are no bookmarks.
    """
    if not options.bookmarks or timeout_s < BOOKMARK_LEAD_S:
        return None
    return max(timeout_s - BOOKMARK_LEAD_S, BOOKMARK_EARLIEST_S)


def _conversion(scope: RequestScope) -> Convert | None:
    """Return a function that calls the conversion webhook of the requested kind.

    The function converts objects to the version of the request. Return None if the kind has no
    conversion webhook.
    """
    if scope.kind.conversion_webhook is None:
        return None
    return partial(from_storage, scope.kind, storage=scope.deps.store.storage)


def _event_encoder(scope: RequestScope, media_type: MediaTypeOptions) -> WatchEventEncoder:
    renderer = scope.deps.renderer
    if media_type.view == TABLE:
        include = scope.request.parameter("includeObject")
        return TableEventEncoder(scope.kind, media_type, include, renderer, scope.deps.clock)
    if media_type.view in (PARTIAL, PARTIAL_LIST):
        return MetadataEventEncoder(media_type)
    return ObjectEventEncoder(scope.kind, renderer)
