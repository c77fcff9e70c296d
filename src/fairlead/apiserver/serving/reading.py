"""get, list and watch.

upstream: apiserver/pkg/endpoints/handlers/get.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.error import ApiError, not_found
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.event_form import (
    ObjectEvents,
    PartialEvents,
    TableEvents,
    error_line,
    is_partial,
    is_table,
)
from fairlead.apiserver.serving.listing import listed
from fairlead.apiserver.serving.negotiation import Form
from fairlead.apiserver.serving.options import ListOptions, list_options, unsigned
from fairlead.apiserver.serving.page import objects_now
from fairlead.apiserver.serving.refusal import from_the_future, unreadable
from fairlead.apiserver.serving.selection import Selection, selection
from fairlead.apiserver.serving.status import failure
from fairlead.apiserver.serving.watch import EventForm, Scope, Watch
from fairlead.apiserver.storage import Json

# upstream: apiserver/pkg/server/config.go:MinRequestTimeout; a watch lasts that long at least.
WATCH_TIMEOUT_S: Final = 3_600
BOOKMARK_LEAD_S: Final = 2.0
BOOKMARK_EARLIEST_S: Final = 0.6
_NS_PER_S: Final = 1_000_000_000
_HALF: Final = 1 << 63


def get(call: Call) -> Response:
    """One object, or its text at least as new as asked for."""
    require_version(call, call.request.parameter("resourceVersion"))
    call.form()
    target = call.target
    kept = call.parts.store.storage.find_kept(call.kind, target.namespace, target.name)
    if kept is None:
        raise not_found(call.kind, target.namespace, target.name)
    return call.shown(kept)


def found(call: Call) -> Json:
    """The object that the path names. Raises ApiError 404."""
    call.form()
    return call.parts.store.get(call.kind, call.target.namespace, call.target.name)


def require_version(call: Call, text: str) -> None:
    """Refuse a version that is none (500), or is still to come (504)."""
    if not text:
        return
    problem = unsigned(text)
    if problem:
        raise unreadable(problem)
    version = call.parts.store.version
    if int(text) > version:
        raise from_the_future(int(text), version)


def list_objects(call: Call) -> Response:
    """All objects that are asked for, or a page of them."""
    form = call.form(is_list=True)
    options = list_options(call.request, is_watch=False)
    wanted = _wanted(call, options)
    namespace = call.target.namespace
    page = listed(call.parts.store.storage, call.kind, namespace, wanted, options)
    include = call.request.parameter("includeObject")
    body = call.parts.renderer.list(form, call.kind, page, call.now, include)
    return Response(200, body, form.media_type, warnings=tuple(call.warnings))


def watch(call: Call) -> Watch:
    """What there is, or what has happened since, and what happens from now on."""
    form = call.form(streams=True, is_list=True)
    options = list_options(call.request, is_watch=True)
    problem = unsigned(options.version) if options.version else ""
    if problem:
        raise unreadable(problem)
    wanted, after = _wanted(call, options), int(options.version or "0")
    scope = Scope(call.kind, call.target.namespace, wanted, _event_form(call, form), after)
    timeout_s = _lasts_s(options.timeout_s or 0)
    opened = Watch(
        scope,
        timeout_s=timeout_s,
        bookmark_s=_bookmark_s(options, timeout_s),
        content_type=form.media_type,
        close=call.parts.watches.remove,
    )
    if timeout_s < 0:
        opened.end()
        return opened
    try:
        _begin(call, opened, options)
    except ApiError as refusal:  # the answer has begun, so this is an event
        opened.add(error_line(failure(refusal)))
        opened.end()
    return opened


def _begin(call: Call, opened: Watch, options: ListOptions) -> None:
    """Tell what was before now, and listen. Raises ApiError 410."""
    watches, storage = call.parts.watches, call.parts.store.storage
    scope, version = opened.scope, int(options.version or "0")
    if options.send_initial or (version == 0 and options.send_initial is None):
        there = [kept for _, kept in objects_now(storage, scope.kind, scope.namespace)]
        if not scope.wanted.is_everything:
            there = list(filter(scope.wanted.selects, there))
        opened.begin(there)
        if options.bookmarks:
            opened.bookmark(storage.version, is_initial=True)
    elif version > 0:
        for change in storage.changes_since(version):
            if change.kind.resource == scope.kind.resource:
                watches.tell(opened, change)
    watches.add(opened)


def _wanted(call: Call, options: ListOptions) -> Selection:
    """What the selectors want; the old way to watch one object names it in the path."""
    return selection(call.kind, options.label_selector, options.field_selector, call.target.name)


def _lasts_s(asked_s: int) -> float:
    """How long a watch is to last; less than nothing where its time is over before it begins."""
    # upstream: handlers/get.go:ListResource, whose duration in ns is a number of 64 bits
    wrapped = (asked_s * _NS_PER_S + _HALF) % (2 * _HALF) - _HALF
    return wrapped / _NS_PER_S or WATCH_TIMEOUT_S


def _bookmark_s(options: ListOptions, timeout_s: float) -> float | None:
    """When to send the last bookmark before the end; a short watch is not worth one."""
    if not options.bookmarks or timeout_s < BOOKMARK_LEAD_S:
        return None
    return max(timeout_s - BOOKMARK_LEAD_S, BOOKMARK_EARLIEST_S)


def _event_form(call: Call, form: Form) -> EventForm:
    renderer = call.parts.renderer
    if is_table(form):
        include = call.request.parameter("includeObject")
        return TableEvents(call.kind, form, include, renderer, call.parts.clock)
    if is_partial(form):
        return PartialEvents(form)
    return ObjectEvents(call.kind, renderer)
