"""The endpoints of the subresources ephemeralcontainers and resize of pods."""

from __future__ import annotations

from fairlead.apiserver.endpoints.handlers.rest import existing_object
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import requested_update, whole_object
from fairlead.apiserver.registry.subresource.pod_spec import change_ephemeral_containers
from fairlead.apiserver.registry.subresource.pod_spec import resize as resize_pod
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls


def ephemeral_containers(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the pod; a PUT or PATCH first changes its ephemeral containers."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond(existing_object(scope))
    change = yield from requested_update(scope, scope.kind, whole_object)
    stored = yield from change_ephemeral_containers.steps(
        scope.deps.store, change.old, change.view, write=change.write
    )
    return scope.respond(stored)


def resize(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the pod; a PUT or PATCH first changes the resources of its containers."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond(existing_object(scope))
    change = yield from requested_update(scope, scope.kind, whole_object)
    stored = yield from resize_pod.steps(
        scope.deps.store, change.old, change.view, write=change.write
    )
    return scope.respond(stored)
