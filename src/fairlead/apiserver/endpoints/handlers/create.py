"""Handles POST: creates an object.

upstream: apiserver/pkg/endpoints/handlers/create.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import (
    decoded_object,
    in_request_namespace,
    paused_if_large,
    without_duplicate_owners,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

_DELETION_FIELDS: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


def create(scope: RequestScope) -> WebhookCalls[Response]:
    """Store the object that the request's body contains, and return it with status 201."""
    # 1. negotiate the media type of the response
    scope.negotiate()
    # 2. read the options, then decode the body
    options = write_options(scope.request, "CreateOptions")
    obj = in_request_namespace(scope, decoded_object(scope, options))
    obj = without_duplicate_owners(_without_deletion_fields(obj), scope.warnings.append)
    yield from paused_if_large(scope)
    # 3. default, admit, validate and store
    write = write_of(scope, options)
    stored = yield from scope.deps.store.create.steps(obj, scope.now, kind=scope.kind, write=write)
    # 4. encode what was stored
    return scope.respond(stored, 201)


def _without_deletion_fields(obj: Json) -> Json:
    """Return `obj` without deletion fields, because a new object is never being deleted."""
    # upstream: apiserver/pkg/registry/rest/meta.go:WipeObjectMetaSystemFields
    meta = obj["metadata"]
    if meta.keys().isdisjoint(_DELETION_FIELDS):
        return obj
    return {**obj, "metadata": {key: meta[key] for key in meta if key not in _DELETION_FIELDS}}
