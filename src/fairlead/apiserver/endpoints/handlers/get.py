"""get, list and watch.

upstream: apiserver/pkg/endpoints/handlers/get.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.field_problem import quoted
from fairlead.api.json import Json
from fairlead.apiserver.endpoints.collection.list_page import listed
from fairlead.apiserver.endpoints.collection.page import objects_now
from fairlead.apiserver.endpoints.collection.selector import Selection, pinned_name, selection
from fairlead.apiserver.endpoints.collection.watch import EventForm, Scope, Watch
from fairlead.apiserver.endpoints.request.options import (
    ListOptions,
    is_true,
    list_options,
    unsigned,
)
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.response.watch_event import (
    ObjectEvents,
    PartialEvents,
    TableEvents,
    error_line,
    is_partial,
    is_table,
)
from fairlead.apiserver.error import ApiError, bad_request, not_found
from fairlead.apiserver.negotiation.media_type import Form
from fairlead.apiserver.negotiation.request_error import from_the_future, unreadable
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.request import Response
from fairlead.apiserver.validation.meta.format import path_segment_problems

# upstream: apiserver/pkg/server/config.go:MinRequestTimeout; a watch lasts that long at least.
WATCH_TIMEOUT_S: Final = 3_600
BOOKMARK_LEAD_S: Final = 2.0
BOOKMARK_EARLIEST_S: Final = 0.6
_NS_PER_S: Final = 1_000_000_000
_HALF: Final = 1 << 63


def get(call: Call) -> Response:
    """One object, or its text at least as new as asked for."""
    _require_no_export(call)
    call.form()
    require_key(call.target.name)
    require_version(call, call.request.parameter("resourceVersion"))
    target = call.target
    kept = call.parts.store.storage.find_kept(call.kind, target.namespace, target.name)
    if kept is None:
        raise not_found(call.kind, target.namespace, target.name)
    return call.shown(kept)


def found(call: Call) -> Json:
    """The object that the path names. Raises ApiError 400, 404."""
    call.form()
    require_key(call.target.name)
    return call.parts.store.get(call.kind, call.target.namespace, call.target.name)


def require_key(name: str) -> None:
    """Refuse a name under which nothing can be kept. Raises ApiError 400."""
    # upstream: apiserver/pkg/registry/generic/registry/store.go:NamespaceKeyFunc
    problems = path_segment_problems(name)
    if problems:
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")


def _require_no_export(call: Call) -> None:
    """Refuse what an object was once asked for. Raises ApiError 400."""
    # upstream: apiserver/pkg/endpoints/handlers/get.go:GetResource
    if call.request.query and is_true(call.request, "export"):
        why = "the export parameter, deprecated since v1.14, is no longer supported"
        raise bad_request(why)


def require_version(call: Call, text: str) -> None:
    """Refuse a version that is none (500), or is still to come (504)."""
    if not text:
        return
    problem = unsigned(text)
    if problem:
        raise unreadable(problem)
    _require_past(call, int(text))


def _require_past(call: Call, version: int) -> None:
    """Refuse a version that is still to come. Raises ApiError 504."""
    newest = call.parts.store.version
    if version > newest:
        raise from_the_future(version, newest)


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
    name, fields = call.target.name, options.field_selector
    if name and fields and pinned_name(fields) not in ("", name):
        # upstream: apiserver/pkg/endpoints/handlers/get.go:ListResource
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
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
    """Tell what was before now, and listen. Raises ApiError 410, 504."""
    watches, storage = call.parts.watches, call.parts.store.storage
    scope, version = opened.scope, int(options.version or "0")
    if options.send_initial:
        _require_past(call, version)
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
