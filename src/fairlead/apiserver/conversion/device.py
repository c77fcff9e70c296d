"""Converts the objects of dynamic resource allocation from older versions to resource.k8s.io/v1.

    version   difference from v1
    v1beta2   none
    v1beta1   the fields of a request's `exactly` are fields of the request; the attributes, the
              capacity and the other fields of a device are in its field `basic`

The version v1alpha3 (Kubernetes 1.31) is not converted.

upstream: pkg/apis/resource/v1beta1/conversion.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)

_V1: Final = RESOURCE_CLAIM.api_version
_V1BETA1: Final = "resource.k8s.io/v1beta1"
_V1BETA2: Final = "resource.k8s.io/v1beta2"
# upstream: pkg/apis/resource/v1beta1/conversion.go: hasAnyMainRequestFieldsSet
_OF_ONE_CLASS: Final = frozenset(
    {
        "deviceClassName",
        "selectors",
        "allocationMode",
        "count",
        "adminAccess",
        "tolerations",
        "capacity",
    }
)


def new_device_object(value: Json) -> Json:
    """Return `value`, an object of v1beta1 or v1beta2, in the form of v1.

    Returns `value` unchanged if it has another kind or version. Malformed parts are not changed.
    """
    version, convert = value["apiVersion"], _FORMS.get(value["kind"])
    if convert is None or version not in {_V1BETA1, _V1BETA2}:
        return value
    return {**(convert(value) if version == _V1BETA1 else value), "apiVersion": _V1}


def _class(value: Json) -> Json:
    return value


def _claim(value: Json) -> Json:
    return _with(value, ("spec", "devices", "requests"), _request)


def _template(value: Json) -> Json:
    return _with(value, ("spec", "spec", "devices", "requests"), _request)


def _slice(value: Json) -> Json:
    return _with(value, ("spec", "devices"), _device)


_FORMS: Final[dict[str, Callable[[Json], Json]]] = {
    DEVICE_CLASS.kind: _class,
    RESOURCE_CLAIM.kind: _claim,
    RESOURCE_CLAIM_TEMPLATE.kind: _template,
    RESOURCE_SLICE.kind: _slice,
}


def _with(value: Json, path: tuple[str, ...], convert: Callable[[Json], Json]) -> Json:
    """Return `value` with each element of the list at `path` converted."""
    name, rest = path[0], path[1:]
    part: Any = value.get(name)
    if rest:
        return {**value, name: _with(part, rest, convert)} if isinstance(part, dict) else value
    if not isinstance(part, list):
        return value
    return {**value, name: [convert(one) if isinstance(one, dict) else one for one in part]}


def _request(value: Json) -> Json:
    exactly = {name: one for name, one in value.items() if name in _OF_ONE_CLASS}
    rest = {name: one for name, one in value.items() if name not in _OF_ONE_CLASS}
    return {**rest, "exactly": exactly} if exactly else value


def _device(value: Json) -> Json:
    basic = value.get("basic")
    if not isinstance(basic, dict):
        return value
    return {**{name: one for name, one in value.items() if name != "basic"}, **basic}
