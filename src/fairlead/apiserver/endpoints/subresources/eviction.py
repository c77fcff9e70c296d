"""eviction: a deletion that a budget may refuse.

upstream: pkg/registry/core/pod/storage/eviction.go:EvictionREST.Create
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.rest import write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.posted_body import member, posted
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.status import done
from fairlead.apiserver.registry.eviction import evict
from fairlead.apiserver.request import Response

EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions")


def eviction(call: Call) -> Response:
    """Ask a pod to go if its budget allows it."""
    body = posted(call, EVICTION)
    options = write_options(call.request, "CreateOptions")
    meta, wishes = member(body, "metadata"), member(body, "deleteOptions")
    if meta.get("name", "") != call.target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    wanted = member(wishes, "preconditions")
    write = write_of(call, options, subresource=call.target.subresource)
    part, store = call.target.subresource, call.parts.store
    body["metadata"] = {**meta, "namespace": call.target.namespace}
    store.stations.admitted(Operation.CREATE, call.kind, body, subresource=part, write=write)
    evict(
        call.parts.store,
        call.target.namespace,
        call.target.name,
        call.now,
        grace_period_s=wishes.get("gracePeriodSeconds"),
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
        dry_run=options.dry_run or bool(wishes.get("dryRun")),
    )
    return call.told(done(201), 201)
