"""The Scale of a custom resource, read and written by the paths of its definition.

upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go:scaleFromCustomResource
"""

from __future__ import annotations

from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.custom_type import ScalePaths
from fairlead.apiserver.apiextensions.json_path import JsonPath
from fairlead.apiserver.error import ApiError, Cause


def scale_parts(paths: ScalePaths, obj: Json, *, is_partial: bool) -> tuple[Json, Json]:
    """Spec and status of the Scale of `obj`.

    Raises ApiError 500 if the replicas field is missing, unless `is_partial`.
    """
    replicas_found = paths.spec.find(obj) or ([0] if is_partial else [])
    if not replicas_found:
        raise _missing(f'the spec replicas field "{paths.spec_text}" does not exist')
    status: Json = {"replicas": _first(paths.status, obj) or 0}
    selector = _first(paths.selector, obj) if paths.selector else None
    if selector:
        status["selector"] = selector
    return ({"replicas": replicas_found[0]} if replicas_found[0] else {}), status


def with_replicas(paths: ScalePaths, obj: Json, replicas: int) -> Json:
    """`obj` with that number of replicas."""
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
