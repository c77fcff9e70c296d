"""The subresource `scale`: reads and writes the number of replicas of any scalable kind.

upstream: pkg/registry/{apps,core}/*/storage/storage.go:ScaleREST
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.custom_type import ScalePaths
from fairlead.apiserver.apiextensions.json_path import JsonPath
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.handlers.rest import existing_object, in_request_version
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import (
    SubresourceUpdate,
    requested_update,
)
from fairlead.apiserver.error import STALE, ApiError, Cause, bad_request, conflict, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.patch.managedfields.field_set import FieldSet, set_of_path
from fairlead.apiserver.patch.managedfields.managed_fields import entries_of, with_managed_fields
from fairlead.apiserver.patch.managedfields.scale_handler import (
    parent_managed_fields,
    scale_managed_fields,
)
from fairlead.apiserver.printers.field import selector_text
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

SCALE: Final = Kind("autoscaling", "v1", "Scale", "scales")
# The replicas in the Scale of a custom resource whose replicas field is absent. A patch of the
# Scale must set the field.
# upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go:invalidSpecReplicas
_UNSET: Final = -2147483648
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale(scope: RequestScope) -> WebhookCalls[Response]:
    """Return the Scale of an object; a PUT or PATCH first changes spec.replicas."""
    if scope.verb == "get":
        scope.negotiate()
        found = yield from in_request_version(scope, existing_object(scope))
        return scope.respond(scale_of(scope.kind, found), kind=SCALE)
    change = yield from requested_update(scope, SCALE, partial(_tracked_scale, scope.kind))
    old = change.old
    replicas = change.view.get("spec", {}).get("replicas", 0)
    paths = _scale_paths(scope.kind)
    if paths is not None and replicas == _UNSET:
        raise bad_request(f'the spec replicas field "{paths.spec_text}" cannot be empty')
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", text, "spec.replicas")
        raise invalid(SCALE, "", scope.info.name, (cause,))
    _require_same(scope, old["metadata"], change.view["metadata"])
    view = change.view if change.is_applied else _tracked(scope, change)
    new = _with_owners(scope.kind, _with_replicas(scope.kind, old, replicas), view)
    view_of = partial(scale_of, scope.kind, is_partial=True)
    write = replace(change.write, view=view_of, track=_unchanged)
    part = scope.info.subresource
    stored = yield from scope.deps.store.update.steps(
        scope.kind, old, new, scope.now, write=write, subresource=part
    )
    return scope.respond(scale_of(scope.kind, stored), kind=SCALE)


def _require_same(scope: RequestScope, before: Json, meta: Json) -> None:
    """Raise ApiError 409 if the uid or resourceVersion of a Scale differs from the object's.

    `before` is the metadata of the object, and `meta` is the metadata of the Scale. An empty value
    in `meta` is accepted, and so is resourceVersion "0".
    """
    kind, namespace, name = scope.kind, scope.info.namespace, scope.info.name
    if meta.get("uid", "") not in ("", before["uid"]):
        wrong = f"UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}"
        part = dataclasses.replace(kind, plural=f"{kind.plural}/scale")
        raise conflict(part, namespace, name, f"Precondition failed: {wrong}")
    if meta.get("resourceVersion", "0") not in ("", "0", before["resourceVersion"]):
        raise conflict(kind, namespace, name, STALE)


def _tracked_scale(kind: Kind, obj: Json) -> Json:
    """Return `obj` as a Scale, with the field managers that `obj` has for its replicas field."""
    owners = scale_managed_fields(entries_of(obj), _replicas_field(kind))
    return with_managed_fields(scale_of(kind, obj, is_partial=True), owners)


def _tracked(scope: RequestScope, change: SubresourceUpdate) -> Json:
    """Return the updated Scale with its managedFields."""
    manager = scope.manager(change.options)
    track_fields = track(SCALE, manager, "Update", "scale", scope.now)
    return track_fields(_tracked_scale(scope.kind, change.old), change.view)


def _unchanged(_: Json | None, new: Json) -> Json:
    return new


def _with_owners(kind: Kind, obj: Json, view: Json) -> Json:
    """Return `obj` with the field managers that the Scale `view` has for the replicas field."""
    owners = entries_of(obj), entries_of(view)
    return with_managed_fields(
        obj, parent_managed_fields(*owners, kind.api_version, _replicas_field(kind))
    )


def _replicas_field(kind: Kind) -> FieldSet:
    """Return the path of the number of desired replicas in objects of `kind`."""
    paths = _scale_paths(kind)
    return set_of_path(*(paths.spec.names or ())) if paths else set_of_path("spec", "replicas")


def _with_replicas(kind: Kind, obj: Json, replicas: int) -> Json:
    paths = _scale_paths(kind)
    if paths is not None:
        return with_replicas(paths, obj, replicas)
    return {**obj, "spec": {**obj.get("spec", {}), "replicas": replicas}}


def scale_of(kind: Kind, obj: Json, *, is_partial: bool = False) -> Json:
    """Return `obj` as a Scale.

    If a custom resource lacks the field with its desired replicas and `is_partial` is True, the
    Scale has `_UNSET` replicas. If the field is missing and `is_partial` is False, raises ApiError
    500.
    """
    paths = _scale_paths(kind)
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
    """Return (spec, status) of the Scale of a built-in object."""
    spec = obj.get("spec", {})
    replicas = spec.get("replicas", 0)
    status: Json = {"replicas": obj.get("status", {}).get("replicas", 0)}
    selector = _selector_text(spec.get("selector") or {})
    if selector:
        status["selector"] = selector
    return ({"replicas": replicas} if replicas else {}), status


def _selector_text(selector: Json) -> str:
    """Return the text of a LabelSelector, or of a ReplicationController's map of labels."""
    if {"matchLabels", "matchExpressions"} & selector.keys():
        return selector_text(selector)
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def _scale_paths(kind: Kind) -> ScalePaths | None:
    """Return the JSON paths of the Scale values in a custom resource; None for built-in kinds."""
    paths = kind.custom.scale if kind.custom else None
    return paths if isinstance(paths, ScalePaths) else None


# --- custom resources ----------------------------------------------------------------------------

# upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go:scaleFromCustomResource


def scale_parts(paths: ScalePaths, obj: Json, *, is_partial: bool) -> tuple[Json, Json]:
    """Return (spec, status) of the Scale of a custom resource.

    If the replicas field is missing and `is_partial` is True, the Scale has `_UNSET` replicas. If
    the field is missing and `is_partial` is False, raises ApiError 500.
    """
    replicas_found = paths.spec.find(obj) or ([_UNSET] if is_partial else [])
    if not replicas_found:
        raise _missing(f'the spec replicas field "{paths.spec_text}" does not exist')
    status: Json = {"replicas": _first(paths.status, obj) or 0}
    selector = _first(paths.selector, obj) if paths.selector else None
    if selector:
        status["selector"] = selector
    return ({"replicas": replicas_found[0]} if replicas_found[0] else {}), status


def with_replicas(paths: ScalePaths, obj: Json, replicas: int) -> Json:
    """Return `obj` with `replicas` as its number of desired replicas."""
    updated = _set(obj, paths.spec.names or (), replicas)
    return updated if isinstance(updated, dict) else obj


def _set(value: Any, names: tuple[str, ...], leaf: int) -> Any:
    if not names:
        return leaf
    inner = value if isinstance(value, dict) else {}
    return {**inner, names[0]: _set(inner.get(names[0]), names[1:], leaf)}


def _first(path: JsonPath, obj: Json) -> Any:
    return next(iter(path.find(obj)), None)


def _missing(problem: str) -> ApiError:
    message = f"Internal error occurred: {problem}"
    return ApiError("InternalError", 500, message, causes=(Cause("", problem),), has_details=True)
