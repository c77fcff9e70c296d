"""Subresources, and kinds that are only ever posted, each by the name that stands in its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.binding import bind
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.eviction import evict
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.body import decoded
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.options import write_options
from fairlead.apiserver.serving.patching import patched
from fairlead.apiserver.serving.reading import found
from fairlead.apiserver.serving.refusal import unreadable
from fairlead.apiserver.serving.status import done
from fairlead.apiserver.serving.writing import in_namespace, named, sent, write_of
from fairlead.apiserver.storage import Json

Act = Callable[[Call], Response]


def status(call: Call) -> Response:
    """The object, of which a write changes status alone."""
    if call.verb == "get":
        return call.shown(found(call))
    call.form()
    is_patch = call.verb == "patch"
    options = write_options(call.request, "PatchOptions" if is_patch else "UpdateOptions")
    if is_patch:
        new, operation = patched(call, options, found(call))
    else:
        new, operation = named(call, in_namespace(call, sent(call, options))), "Update"
    write = write_of(call, options, operation, "status")
    stored = call.parts.store.replace_status(call.kind, found(call), new, write=write)
    return call.shown(stored)


def binding(call: Call) -> Response:
    """Put a pod on a node."""
    body = _posted(call, "Binding")
    meta, target = _object(body, "metadata"), _object(body, "target")
    name = call.target.name or meta.get("name", "")
    if meta.get("name", "") != name or not name:
        raise bad_request("name in URL does not match name in Binding object")
    if target.get("kind", "") not in ("", "Node"):
        supported = '"Node", "<empty>"'
        kind = target["kind"]
        raise unreadable(f'target.kind: Unsupported value: "{kind}": supported values: {supported}')
    if not target.get("name"):
        raise unreadable("target.name: Required value")
    options = write_options(call.request, "CreateOptions")
    bind(
        call.parts.store,
        call.target.namespace,
        name,
        target["name"],
        call.now,
        uid=meta.get("uid", ""),
    )
    del options
    return call.told(done(201), 201)


def eviction(call: Call) -> Response:
    """Ask a pod to go if its budget allows it."""
    body = _posted(call, "Eviction")
    meta, wishes = _object(body, "metadata"), _object(body, "deleteOptions")
    if meta.get("name", "") != call.target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    preconditions = wishes.get("preconditions") or {}
    evict(
        call.parts.store,
        call.target.namespace,
        call.target.name,
        call.now,
        grace_period_s=wishes.get("gracePeriodSeconds"),
        uid=preconditions.get("uid", ""),
    )
    return call.told(done(201), 201)


def _posted(call: Call, kind: str) -> Json:
    content_type = call.request.headers.get("content-type", "")
    return decoded(call.request.body, content_type, kind, call.parts.protobuf)


def _object(body: Json, field: str) -> Json:
    value = body.get(field) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{field} must be an object")
    return value


SUBRESOURCES: Final[Mapping[str, Act]] = {
    "status": status,
    "binding": binding,
    "bindings": binding,
    "eviction": eviction,
}
