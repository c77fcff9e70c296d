"""Parts of a pod that may change while it runs: debugging containers and its resources.

upstream: pkg/registry/core/pod/storage/storage.go:EphemeralContainersREST, ResizeREST,
pkg/registry/core/pod/strategy.go:dropNonEphemeralContainerUpdates, dropNonResizeUpdates
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.update import Written, written
from fairlead.apiserver.registry.strategy import respecified
from fairlead.apiserver.request import Response
from fairlead.apiserver.validation.core.pod.update import check_debugging, check_resize
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.validator import ApiValidator


def ephemeral_containers(call: Call) -> Response:
    """The pod; a write may add to spec.ephemeralContainers."""
    if call.verb == "get":
        return call.shown(found(call))
    change = written(call, call.kind, found)
    old = found(call)
    after = change.view.get("spec", {}).get("ephemeralContainers", [])
    return _stored(call, old, change, {"ephemeralContainers": after}, check_debugging)


def resize(call: Call) -> Response:
    """The pod; a write changes the resources of its containers."""
    if call.verb == "get":
        return call.shown(found(call))
    change = written(call, call.kind, found)
    old = found(call)
    wanted = change.view.get("spec", {})
    resized = {
        field: _resized(old["spec"][field], wanted.get(field, []))
        for field in ("containers", "initContainers")
        if field in old["spec"]
    }
    return _stored(call, old, change, resized, check_resize)


def _stored(
    call: Call, old: Json, change: Written, spec: Json, check: Callable[[Json, Json], Causes]
) -> Response:
    """`old` with what may change of its spec; that somebody wanted more of it is noted."""
    store = call.parts.store
    new = store.stations.completed(call.kind, respecified(old, {**old["spec"], **spec}))
    ApiValidator().validate_part(call.kind, old, new, check(old, new))
    tracked = change.write.tracked(old, change.view)["metadata"]
    if "managedFields" in tracked:
        meta = {**new["metadata"], "managedFields": tracked["managedFields"]}
        new = {**new, "metadata": meta}
    part, write = call.target.subresource, change.write
    admitted = store.stations.admitted(
        Operation.UPDATE, call.kind, new, old=old, subresource=part, write=write
    )
    if admitted is not new:  # whoever has changed it may have made it invalid
        ApiValidator().validate_part(call.kind, old, admitted, check(old, admitted))
        new = admitted
    return call.shown(store.commit(call.kind, old, new, write=change.write))


def _resized(before: list[Json], wanted: list[Json]) -> list[Json]:
    after = {container.get("name"): container for container in wanted}
    return [
        {**container, "resources": after[container["name"]].get("resources", {})}
        if container["name"] in after
        else container
        for container in before
    ]
