"""finalize: updates spec.finalizers of a Namespace.

upstream: pkg/registry/core/namespace/storage/storage.go:FinalizeREST
"""

from __future__ import annotations

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.suspension import WebhookCalls
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import requested_update, whole_object
from fairlead.apiserver.request import Response


def finalize(scope: RequestScope) -> WebhookCalls[Response]:
    """Replaces spec.finalizers; the namespace is removed with the last of them."""
    change = requested_update(scope, scope.kind, whole_object)
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
    return scope.respond(store.commit(scope.kind, old, new, write=write))
