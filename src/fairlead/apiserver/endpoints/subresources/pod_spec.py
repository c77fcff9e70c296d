"""The subresources ephemeralcontainers and resize, which change parts of a running pod's spec.

upstream: pkg/registry/core/pod/storage/storage.go:EphemeralContainersREST, ResizeREST,
pkg/registry/core/pod/strategy.go:dropNonEphemeralContainerUpdates, dropNonResizeUpdates
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.rest import existing_object
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import (
    SubresourceUpdate,
    requested_update,
    whole_object,
)
from fairlead.apiserver.registry.preparation import with_spec
from fairlead.apiserver.registry.strategies.core.pod import RULES as POD_RULES
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls
from fairlead.apiserver.validation.core.pod.update import check_debugging, check_resize
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.validator import ApiValidator


def ephemeral_containers(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the pod; a PUT or PATCH first changes its ephemeral containers."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond(existing_object(scope))
    change = yield from requested_update(scope, scope.kind, whole_object)
    after = change.view.get("spec", {}).get("ephemeralContainers", [])
    spec = {"ephemeralContainers": after}
    return (yield from _stored(scope, change, spec, check_debugging))


def resize(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the pod; a PUT or PATCH first changes the resources of its containers."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond(existing_object(scope))
    change = yield from requested_update(scope, scope.kind, whole_object)
    old, wanted = change.old, change.view.get("spec", {})
    resized = {
        field: _resized(old["spec"][field], wanted.get(field, []))
        for field in ("containers", "initContainers")
        if field in old["spec"]
    }
    return (yield from _stored(scope, change, resized, check_resize))


def _stored(
    scope: RequestScope,
    change: SubresourceUpdate,
    spec: Json,
    check: Callable[[Json, Json], Causes],
) -> WebhookCalls[Response]:
    """Store the pod with new values of some spec fields, and return the response.

    `spec` contains these fields with their new values. `check` takes the old and the new pod, and
    returns the errors of the change. As in upstream, the managedFields are computed from all
    fields of `change.view`, even those that are not stored.
    """
    store, old = scope.deps.store, change.old
    new = store.completed(scope.kind, with_spec(old, {**old["spec"], **spec}))
    ApiValidator().validate_part(scope.kind, POD_RULES, old, new, check(old, new))
    tracked = change.write.tracked(old, change.view)["metadata"]
    if "managedFields" in tracked:
        meta = {**new["metadata"], "managedFields": tracked["managedFields"]}
        new = {**new, "metadata": meta}
    part, write = scope.info.subresource, change.write
    admitted = yield from store.admission.admit.steps(
        Operation.UPDATE, scope.kind, new, old=old, subresource=part, write=write
    )
    if admitted is not new:  # mutating admission may have made the pod invalid
        ApiValidator().validate_part(scope.kind, POD_RULES, old, admitted, check(old, admitted))
        new = admitted
    stored = yield from store.commit.steps(scope.kind, old, new, write=change.write)
    return scope.respond(stored)


def _resized(before: list[Json], wanted: list[Json]) -> list[Json]:
    after = {container.get("name"): container for container in wanted}
    return [
        {**container, "resources": after[container["name"]].get("resources", {})}
        if container["name"] in after
        else container
        for container in before
    ]
