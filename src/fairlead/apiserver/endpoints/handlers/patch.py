"""PATCH of an object, in all four formats.

upstream: apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.handlers.patcher import Patcher, patcher_of
from fairlead.apiserver.endpoints.handlers.rest import (
    find_existing,
    in_request_namespace,
    paused_if_large,
    require_key,
    require_request_name,
    require_same_uid,
    with_canonical_resource_version,
    without_resource_version,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import conflict, not_found
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls


def patch(scope: RequestScope) -> WebhookCalls[Response]:
    """Patch the object that the path names. Server-side apply creates a missing object."""
    # 1. negotiate the media type of the response
    scope.negotiate()
    # 2. read the options and the patch's media type
    options = write_options(scope.request, "PatchOptions")
    patcher = patcher_of(scope, options)
    write = write_of(scope, options, patcher.operation)
    # 3. look up the object
    store, kind, info = scope.deps.store, scope.kind, scope.info
    old = yield from find_existing(scope)
    if old is None and patcher.is_apply:
        return (yield from _create_by_apply(scope, patcher, write))
    require_key(info.name)
    if old is None:
        raise not_found(kind, info.namespace, info.name)
    # 4. apply the patch, and check that the result has the same identity
    patched = yield from patcher.patched(old)
    new = require_request_name(scope, in_request_namespace(scope, patched))
    new = with_canonical_resource_version(new)
    require_same_uid(kind, old, new)
    yield from paused_if_large(scope)
    # 5. default, admit, validate and store; then encode what was stored
    stored = yield from store.update.steps(kind, old, new, scope.now, write=write)
    return scope.respond(stored)


def _create_by_apply(scope: RequestScope, patcher: Patcher, write: Write) -> WebhookCalls[Response]:
    """Create the object that an apply patch describes, and return it with status 201."""
    created = yield from patcher.created()
    new = require_request_name(scope, in_request_namespace(scope, created))
    _require_no_uid(scope.kind, new)
    new = without_resource_version(new)
    yield from paused_if_large(scope)
    stored = yield from scope.deps.store.create.steps(new, scope.now, kind=scope.kind, write=write)
    return scope.respond(stored, 201)


def _require_no_uid(kind: Kind, new: Json) -> None:
    """Reject an apply patch that would create an object but states a uid. Raises ApiError 409."""
    meta = new["metadata"]
    if meta.get("uid"):
        why = (
            f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing "
            "object was found"
        )
        raise conflict(kind, meta.get("namespace", ""), meta["name"], why)
