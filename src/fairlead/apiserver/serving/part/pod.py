"""Parts of a pod that may change while it runs: debugging containers and its resources.

upstream: pkg/registry/core/pod/storage/storage.go:EphemeralContainersREST, ResizeREST
"""

from __future__ import annotations

from fairlead.apiserver.error import Cause, invalid
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.part.view import written
from fairlead.apiserver.serving.reading import found
from fairlead.apiserver.storage import Json
from fairlead.apiserver.strategy import respecified
from fairlead.apiserver.validation.change_text import change_text, internal_of


def ephemeral_containers(call: Call) -> Response:
    """The pod; a write may add to spec.ephemeralContainers."""
    old = found(call)
    if call.verb == "get":
        return call.shown(old)
    change = written(call, call.kind, old)
    before = old["spec"].get("ephemeralContainers", [])
    after = change.view.get("spec", {}).get("ephemeralContainers", [])
    kept = {container.get("name"): container for container in after}
    for container in before:
        if kept.get(container["name"]) != container:
            why = _changed(container, kept.get(container["name"]))
            cause = Cause("FieldValueForbidden", f"Forbidden: {why}", "spec.ephemeralContainers")
            raise invalid(call.kind, call.target.namespace, call.target.name, (cause,))
    spec = {**old["spec"], "ephemeralContainers": after}
    store = call.parts.store
    new = store.completed(call.kind, respecified(old, spec))
    return call.shown(store.commit(call.kind, old, new, write=change.write))


def _changed(before: Json, after: Json | None) -> str:
    # upstream: pkg/apis/core/validation/validation.go:ValidatePodEphemeralContainersUpdate
    name = before["name"]
    if after is None:
        return f'existing ephemeral containers "{name}" may not be removed\n'
    shown = [internal_of("core.v1.EphemeralContainer", one) for one in (before, after)]
    return f'existing ephemeral containers "{name}" may not be changed\n{change_text(*shown)}'


def resize(call: Call) -> Response:
    """The pod; a write changes the resources of its containers."""
    old = found(call)
    if call.verb == "get":
        return call.shown(old)
    change = written(call, call.kind, old)
    wanted = change.view.get("spec", {})
    spec = {
        **old["spec"],
        **{
            field: _resized(old["spec"][field], wanted.get(field, []))
            for field in ("containers", "initContainers")
            if field in old["spec"]
        },
    }
    store = call.parts.store
    new = store.completed(call.kind, respecified(old, spec))
    return call.shown(store.commit(call.kind, old, new, write=change.write))


def _resized(before: list[Json], wanted: list[Json]) -> list[Json]:
    after = {container.get("name"): container for container in wanted}
    return [
        {**container, "resources": after[container["name"]].get("resources", {})}
        if container["name"] in after
        else container
        for container in before
    ]
