"""The subresources `status` and `finalize`, and `approval` of a CertificateSigningRequest."""

from __future__ import annotations

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.rest import (
    existing_object,
    in_request_version,
    require_same_uid,
)
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import requested_update, whole_object
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls


def status(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the object; a PUT or PATCH first changes its status and some of its metadata."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond((yield from in_request_version(scope, existing_object(scope))))
    change = yield from requested_update(scope, scope.kind, whole_object)
    old, view, part = change.old, change.view, scope.info.subresource
    if scope.verb == "patch":
        require_same_uid(scope.kind, old, view)
    stored = yield from scope.deps.store.update_status.steps(
        scope.kind, old, view, scope.now, write=change.write, subresource=part
    )
    return scope.respond(stored)


# --- finalize ------------------------------------------------------------------------------------

# upstream: pkg/registry/core/namespace/storage/storage.go:FinalizeREST


def finalize(scope: RequestScope) -> WebhookCalls[Response]:
    """Replace spec.finalizers of a namespace.

    A terminating namespace is removed when it has no finalizers left.
    """
    change = yield from requested_update(scope, scope.kind, whole_object)
    old = change.old
    spec = {key: value for key, value in old.get("spec", {}).items() if key != "finalizers"}
    finalizers = change.view.get("spec", {}).get("finalizers")
    if finalizers:
        spec["finalizers"] = finalizers
    store, part, write = scope.deps.store, scope.info.subresource, change.write
    new = {**old, "spec": spec}
    new = yield from store.admission.admit.steps(
        Operation.UPDATE, scope.kind, new, old=old, subresource=part, write=write
    )
    return scope.respond((yield from store.commit.steps(scope.kind, old, new, write=write)))
