"""Validates LimitRanges.

upstream: pkg/apis/core/validation/validation.go:ValidateLimitRange
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.quantity import NANOS_PER_UNIT, Quantity, canonical, parse_quantity
from fairlead.apiserver.validation.core.resource import (
    check_container_resource,
    check_resource_name,
    may_be_overcommitted,
)
from fairlead.apiserver.validation.meta.field import Causes, duplicate, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import check_qualified_name

TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_NO_STORAGE: Final = "either minimum or maximum storage value is required, but neither was provided"
_STORAGE: Final = "storage"


def check_limit_range(obj: Json) -> Causes:
    """Yield the errors of a new or changed LimitRange."""
    seen: dict[str, None] = {}
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        field = f"spec.limits[{index}]"
        type_ = item.get("type", "")
        yield from _check_type(f"{field}.type", type_)
        if type_ in seen:
            yield duplicate(f"{field}.type", type_)
        seen[type_] = None
        yield from _check_item(field, type_, item)


def _check_type(field: str, name: str) -> Causes:
    """Yield the errors of `name`, the type of a limit."""
    # upstream: validation.go:validateLimitRangeTypeName
    problems = list(check_qualified_name(field, name))
    yield from problems
    if name not in TYPES and "/" not in name and not problems:
        yield invalid(field, name, "must be a standard limit type or fully qualified")


def _check_item(field: str, type_: str, item: Json) -> Causes:
    rule = check_container_resource if type_ in ("Pod", "Container") else check_resource_name
    for key in _AMOUNTS:
        for name in item.get(key) or () if type_ != "Pod" or "default" not in key else ():
            yield from rule(f"{field}.{key}[{name}]", name)
    if type_ == "Pod":
        for key in ("default", "defaultRequest"):
            if item.get(key):
                yield forbidden(f"{field}.{key}", "may not be specified when `type` is 'Pod'")
    if type_ == "PersistentVolumeClaim" and not any(
        _STORAGE in (item.get(key) or {}) for key in ("min", "max")
    ):
        yield required(f"{field}.limits", _NO_STORAGE)
    amounts = {
        key: {name: parse_quantity(text) for name, text in (item.get(key) or {}).items()}
        for key in _AMOUNTS
    }
    names = dict.fromkeys(name for part in amounts.values() for name in part)
    for name in names:
        bounds = {key: amounts[key].get(name) for key in _AMOUNTS}
        yield from _check_bounds(field, name, bounds)
        yield from _check_ratio(field, name, bounds)
        yield from _check_whole(field, name, bounds)


def _check_bounds(field: str, name: str, bounds: dict[str, Quantity | None]) -> Causes:
    least, most = bounds["min"], bounds["max"]
    request, limit = bounds["defaultRequest"], bounds["default"]
    if least and most and least > most:
        yield _beyond(
            field, "min", name, least, f"min value {{}} is greater than max value {canonical(most)}"
        )
    if request and least and least > request:
        shown = canonical(request)
        yield invalid(
            f"{field}.defaultRequest[{name}]",
            shown,
            f"min value {canonical(least)} is greater than default request value {shown}",
        )
    if request and most and request > most:
        yield _beyond(
            field, "defaultRequest", name, request,
            f"default request value {{}} is greater than max value {canonical(most)}",
        )  # fmt: skip
    if request and limit and request > limit:
        yield _beyond(
            field, "defaultRequest", name, request,
            f"default request value {{}} is greater than default limit value {canonical(limit)}",
        )  # fmt: skip
    if limit and least and least > limit:
        # Here and below, upstream quotes the bound as the invalid value, not the default.
        yield invalid(
            f"{field}.default[{name}]",
            canonical(least),
            f"min value {canonical(least)} is greater than default value {canonical(limit)}",
        )
    if limit and most and limit > most:
        yield invalid(
            f"{field}.default[{name}]",
            canonical(most),
            f"default value {canonical(limit)} is greater than max value {canonical(most)}",
        )


def _beyond(field: str, key: str, name: str, amount: Quantity, why: str) -> Any:
    shown = canonical(amount)
    return invalid(f"{field}.{key}[{name}]", shown, why.format(shown))


def _check_ratio(field: str, name: str, bounds: dict[str, Quantity | None]) -> Causes:
    ratio, least, most = bounds["maxLimitRequestRatio"], bounds["min"], bounds["max"]
    if ratio is None:
        return
    path = f"{field}.maxLimitRequestRatio[{name}]"
    if ratio.nano < NANOS_PER_UNIT:
        yield invalid(path, canonical(ratio), f"ratio {canonical(ratio)} is less than 1")
    if least and most and least.nano > 0:
        bound = most.nano / least.nano
        if ratio.nano / NANOS_PER_UNIT > bound:
            why = f"ratio {canonical(ratio)} is greater than max/min = {bound:f}"
            yield invalid(path, canonical(ratio), why)


def _check_whole(field: str, name: str, bounds: dict[str, Quantity | None]) -> Causes:
    """Yield an error if a resource that cannot be over-committed has two different defaults.

    `name` is the resource. If `bounds` contains both its `default` and its `defaultRequest`, these
    amounts must be equal. Resources that can be over-committed, such as cpu, are not checked.
    """
    limit, request = bounds["default"], bounds["defaultRequest"]
    if may_be_overcommitted(name) or limit is None or request is None or limit == request:
        return
    shown = canonical(request)
    why = f"default value {canonical(limit)} must equal to defaultRequest value {shown} in {name}"
    yield invalid(f"{field}.defaultRequest[{name}]", shown, why)
