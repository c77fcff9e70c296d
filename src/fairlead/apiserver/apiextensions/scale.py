"""The scale of a custom resource: how many replicas, found by the paths of its definition.

upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go:scaleFromCustomResource
"""

from __future__ import annotations

from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.custom_type import ScalePaths
from fairlead.apiserver.apiextensions.json_path import JsonPath
from fairlead.apiserver.error import ApiError, Cause


def scale_parts(paths: ScalePaths, obj: Json, *, is_partial: bool) -> tuple[Json, Json]:
    """spec and status of the Scale of `obj`.

    Raises ApiError 500 where it says no number, unless that is expected (`is_partial`).
    """
    wanted = paths.spec.find(obj) or ([0] if is_partial else [])
    if not wanted:
        raise _missing(f'the spec replicas field "{paths.spec_text}" does not exist')
    status: Json = {"replicas": _first(paths.status, obj) or 0}
    selector = _first(paths.selector, obj) if paths.selector else None
    if selector:
        status["selector"] = selector
    return ({"replicas": wanted[0]} if wanted[0] else {}), status


def with_replicas(paths: ScalePaths, obj: Json, replicas: int) -> Json:
    """`obj` asking for so many replicas."""
    made = _set(obj, paths.spec.names or (), replicas)
    return made if isinstance(made, dict) else obj


def _set(value: Any, names: tuple[str, ...], leaf: int) -> Any:
    if not names:
        return leaf
    inner = value if isinstance(value, dict) else {}
    return {**inner, names[0]: _set(inner.get(names[0]), names[1:], leaf)}


def _first(path: JsonPath, obj: Json) -> Any:
    return next(iter(path.find(obj)), None)


def _missing(why: str) -> ApiError:
    message = f"Internal error occurred: {why}"
    return ApiError("InternalError", 500, message, causes=(Cause("", why),), has_details=True)
