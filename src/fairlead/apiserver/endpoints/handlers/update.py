"""Handles PUT: updates an object.

upstream: apiserver/pkg/endpoints/handlers/update.go, registry/generic/registry/store.go:Update
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import (
    decoded_object,
    find_existing,
    in_request_namespace,
    paused_if_large,
    require_key,
    require_request_name,
    with_canonical_resource_version,
    without_duplicate_owners,
    without_resource_version,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import Cause, invalid, not_found
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls


def update(scope: RequestScope) -> WebhookCalls[Response]:
    """Replace the object that the path names.

    A missing object is created if its kind allows this.
    """
    # 1. negotiate the media type of the response
    scope.negotiate()
    # 2. read the options, then decode the body
    options = write_options(scope.request, "UpdateOptions")
    new = require_request_name(scope, in_request_namespace(scope, decoded_object(scope, options)))
    new = without_duplicate_owners(new, scope.warnings.append)
    yield from paused_if_large(scope)
    # 3. look up the object to replace
    store, kind, info = scope.deps.store, scope.kind, scope.info
    require_key(info.name)
    old = yield from find_existing(scope)
    write, uid = write_of(scope, options), new["metadata"].get("uid", "")
    if old is None and strategy_of(kind).allow_create_on_update:
        require_uid(kind, {"metadata": {"namespace": info.namespace, "name": info.name}}, uid)
        new = without_resource_version(new)
        created = yield from store.create.steps(new, scope.now, kind=kind, write=write)
        return scope.respond(created, 201)
    if old is None:
        raise not_found(kind, info.namespace, info.name)
    # 4. check the preconditions in the body
    new = with_canonical_resource_version(new)
    require_uid(kind, old, uid)
    _require_resource_version(kind, new)
    # 5. default, admit, validate and store; then encode what was stored
    stored = yield from store.update.steps(kind, old, new, scope.now, write=write)
    return scope.respond(stored)


def _require_resource_version(kind: Kind, obj: Json) -> None:
    """Reject an update without resourceVersion if the kind requires one. Raises ApiError 422."""
    if strategy_of(kind).allow_unconditional_update:
        return
    if obj["metadata"].get("resourceVersion", "0") == "0":
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
        # Upstream names the resource instead of the kind only in this error.
        resource = replace(kind, kind=kind.plural)
        raise invalid(resource, "", obj["metadata"]["name"], (cause,))
