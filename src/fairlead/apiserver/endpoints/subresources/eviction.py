"""The subresource `eviction`, which deletes a pod if its PodDisruptionBudgets allow this.

upstream: pkg/registry/core/pod/storage/eviction.go:EvictionREST.Create
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.rest import write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import object_member, posted_body
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.status import done
from fairlead.apiserver.registry.subresource.eviction import evict
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions")


def eviction(scope: RequestScope) -> WebhookCalls[Response]:
    """Evict the pod that the path names, if its PodDisruptionBudgets allow this."""
    body = posted_body(scope, EVICTION)
    options = write_options(scope.request, "CreateOptions")
    meta, delete_options = object_member(body, "metadata"), object_member(body, "deleteOptions")
    if meta.get("name", "") != scope.info.name:
        raise bad_request("name in URL does not match name in Eviction object")
    preconditions = object_member(delete_options, "preconditions")
    write = write_of(scope, options, subresource=scope.info.subresource)
    part, store = scope.info.subresource, scope.deps.store
    body["metadata"] = {**meta, "namespace": scope.info.namespace}
    yield from store.admission.admit.steps(
        Operation.CREATE, scope.kind, body, subresource=part, write=write
    )
    evict(
        scope.deps.store,
        scope.info.namespace,
        scope.info.name,
        scope.now,
        grace_period_s=delete_options.get("gracePeriodSeconds"),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=options.dry_run or bool(delete_options.get("dryRun")),
    )
    return scope.respond_json(done(201), 201)
