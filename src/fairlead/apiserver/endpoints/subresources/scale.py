"""scale: how many replicas a workload shall have, whatever kind it is of.

upstream: pkg/registry/{apps,core}/*/storage/storage.go:ScaleREST
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.scale import scale_parts, with_replicas
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.update import Written, written
from fairlead.apiserver.error import STALE, Cause, conflict, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.patch.managedfields.field_set import FieldSet, set_of_path
from fairlead.apiserver.patch.managedfields.managed_fields import entries_of, with_managed_fields
from fairlead.apiserver.patch.managedfields.scale_handler import (
    parent_managed_fields,
    scale_managed_fields,
)
from fairlead.apiserver.printers.field import selector_text
from fairlead.apiserver.request import Response

SCALE: Final = Kind("autoscaling", "v1", "Scale", "scales")
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale(call: Call) -> Response:
    """The scale of an object; a write changes spec.replicas."""
    if call.verb == "get":
        return call.shown(scale_of(call.kind, found(call)), kind=SCALE)
    change = written(call, SCALE, _partial_scale)
    old = found(call)
    replicas = change.view.get("spec", {}).get("replicas", 0)
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", text, "spec.replicas")
        raise invalid(SCALE, "", call.target.name, (cause,))
    _require_same(call, old["metadata"], change.view["metadata"])
    view = change.view if change.is_applied else _tracked(call, change)
    new = _with_owners(call.kind, _with_replicas(call.kind, old, replicas), view)
    shown = partial(scale_of, call.kind, is_partial=True)
    write = replace(change.write, view=shown, track=_as_noted)
    part = call.target.subresource
    stored = call.parts.store.replace(call.kind, old, new, write=write, subresource=part)
    return call.shown(scale_of(call.kind, stored), kind=SCALE)


def _require_same(call: Call, before: Json, meta: Json) -> None:
    """Refuse a scale that was read of another object, or of an older one. Raises ApiError 409."""
    kind, namespace, name = call.kind, call.target.namespace, call.target.name
    if meta.get("uid", "") not in ("", before["uid"]):
        wrong = f"UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}"
        part = replace(kind, plural=f"{kind.plural}/scale")
        raise conflict(part, namespace, name, f"Precondition failed: {wrong}")
    if meta.get("resourceVersion", "0") not in ("", "0", before["resourceVersion"]):
        raise conflict(kind, namespace, name, STALE)


def _partial_scale(call: Call) -> Json:
    """The scale of the object that is there, with its owners: what a patch is for."""
    obj = found(call)
    owners = scale_managed_fields(entries_of(obj), _field(call.kind))
    return with_managed_fields(scale_of(call.kind, obj, is_partial=True), owners)


def _tracked(call: Call, change: Written) -> Json:
    """The scale as it was written, with its owners; one without a number is nobody's."""
    note = track(SCALE, change.options.manager, "Update", "scale", call.now)
    return note(_partial_scale(call), change.view)


def _as_noted(_: Json | None, new: Json) -> Json:
    return new


def _with_owners(kind: Kind, obj: Json, view: Json) -> Json:
    """`obj`, whose owners are those of the scale `view` now."""
    owners = entries_of(obj), entries_of(view)
    return with_managed_fields(obj, parent_managed_fields(*owners, kind.api_version, _field(kind)))


def _field(kind: Kind) -> FieldSet:
    """The number of replicas in objects of a kind."""
    paths = kind.custom.scale if kind.custom else None
    return set_of_path(*(paths.spec.names or ())) if paths else set_of_path("spec", "replicas")


def _with_replicas(kind: Kind, obj: Json, replicas: int) -> Json:
    paths = kind.custom.scale if kind.custom else None
    if paths is not None:
        return with_replicas(paths, obj, replicas)
    return {**obj, "spec": {**obj.get("spec", {}), "replicas": replicas}}


def scale_of(kind: Kind, obj: Json, *, is_partial: bool = False) -> Json:
    """`obj` as a Scale; one that `is_partial` may say no number.

    Raises ApiError 500 where a custom resource says none.
    """
    paths = kind.custom.scale if kind.custom else None
    if paths is None:
        spec, status = _built_in(obj)
    else:
        spec, status = scale_parts(paths, obj, is_partial=is_partial)
    meta = obj["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: meta[key] for key in _IDENTITY if key in meta},
        "spec": spec,
        "status": status,
    }


def _built_in(obj: Json) -> tuple[Json, Json]:
    """spec and status of the Scale of a built-in workload."""
    spec = obj.get("spec", {})
    replicas = spec.get("replicas", 0)
    status: Json = {"replicas": obj.get("status", {}).get("replicas", 0)}
    selector = _selector_text(spec.get("selector") or {})
    if selector:
        status["selector"] = selector
    return ({"replicas": replicas} if replicas else {}), status


def _selector_text(selector: Json) -> str:
    """A label selector, or the map of a ReplicationController, in kubectl's notation."""
    if {"matchLabels", "matchExpressions"} & selector.keys():
        return selector_text(selector)
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
