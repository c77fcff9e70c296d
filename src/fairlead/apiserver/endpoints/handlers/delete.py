"""DELETE of one object.

upstream: apiserver/pkg/endpoints/handlers/delete.go:DeleteResource
"""

from __future__ import annotations

from fairlead.apiserver.admission.suspension import WebhookCalls
from fairlead.apiserver.endpoints.handlers.delete_options import (
    delete_options,
    delete_write,
    warn_of_orphans,
)
from fairlead.apiserver.endpoints.handlers.rest import require_key
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.negotiation.status import success
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.request import Response


def delete(scope: RequestScope) -> WebhookCalls[Response]:
    """Deletes the object that the path names, at once or after its grace period."""
    # 1. negotiate the media type of the answer
    scope.negotiate()
    # 2. read the options from the body, else from the query
    options = delete_options(scope)
    warn_of_orphans(scope, options)
    require_key(scope.info.name)
    # 3. admit and delete
    store, kind, info = scope.deps.store, scope.kind, scope.info
    write = delete_write(scope, options)
    last = yield from store.delete.steps(
        kind, info.namespace, info.name, scope.now, options.deletion, write=write
    )
    # 4. encode the object, or a Status where it is gone and its kind does not return it
    remains = store.find(kind, info.namespace, info.name) is not None
    has_finalizers = bool(last["metadata"].get("finalizers"))
    if (
        strategy_of(kind).returns_deleted_object
        or has_finalizers
        or (remains and not options.dry_run)
    ):
        return scope.respond(last, 202 if remains and options.is_legacy_cascade else 200)
    return scope.respond_json(success(kind, last["metadata"]))
