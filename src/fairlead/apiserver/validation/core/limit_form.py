"""Checks those fields of LimitRanges and ResourceQuotas that admission reads.

These kinds have no typed view, so this module checks amounts, operators and the types of fields
when a snapshot is loaded. An API server checks more (see `limit_range` and `resource_quota`).

Unknown scopes of quotas and unknown types of limits are accepted, because a newer Kubernetes
release may define them. As in Kubernetes, an unknown scope or type matches no object.

upstream: pkg/quota/v1/evaluator/core/pods.go:podMatchesScopeFunc,
plugin/pkg/admission/limitranger/admission.go:PodValidateLimitFunc
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ResourceList
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.core.resource import NOT_A_QUANTITY, quantity_or_none
from fairlead.apiserver.validation.core.resource_quota import (
    check_amount,
    check_opposite_scopes,
    check_scope_operator,
)
from fairlead.apiserver.validation.meta.field import Causes, invalid

_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    """The base class of the types in this module; their field names are camelCase in JSON."""


class _Limit(_Form, frozen=True):
    """An item of spec.limits of a LimitRange."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class _RangeSpec(_Form, frozen=True):
    limits: tuple[_Limit, ...] = ()


class _Range(_Form, frozen=True):
    spec: _RangeSpec = _RangeSpec()


class _Requirement(_Form, frozen=True):
    """An item of spec.scopeSelector.matchExpressions of a ResourceQuota."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Selector(_Form, frozen=True):
    match_expressions: tuple[_Requirement, ...] = ()


class _QuotaSpec(_Form, frozen=True):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: _Selector = _Selector()


class _QuotaStatus(_Form, frozen=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class _Quota(_Form, frozen=True):
    spec: _QuotaSpec = _QuotaSpec()
    status: _QuotaStatus = _QuotaStatus()


def check_limit_range_form(obj: Json) -> Causes:
    """Yield errors for wrong types and malformed amounts in a LimitRange."""
    problem = _wrong_type(obj, _Range)
    if problem is not None:
        yield problem
        return
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        for key in _AMOUNTS:
            yield from _check_amounts(f"spec.limits[{index}].{key}", item.get(key) or {})


def check_quota_form(obj: Json) -> Causes:
    """Yield the errors of the ResourceQuota `obj`.

    Types, amounts and operators are checked. Two scopes that no pod can have together, such as
    Terminating and NotTerminating, are also an error.
    """
    problem = _wrong_type(obj, _Quota)
    if problem is not None:
        yield problem
        return
    spec = obj.get("spec") or {}
    hard: ResourceList = spec.get("hard") or {}
    yield from _check_amounts("spec.hard", hard)
    for name, text in hard.items():
        if quantity_or_none(text) is not None:
            yield from check_amount(f"spec.hard[{name}]", name, text)
    # A newer server may have more scopes; a note names the scopes that are unknown here.
    yield from check_opposite_scopes(spec)
    yield from _check_operators(spec)
    status = obj.get("status") or {}
    for key in ("hard", "used"):
        yield from _check_amounts(f"status.{key}", status.get(key) or {})


def _check_operators(spec: Json) -> Causes:
    """Yield an error for each unknown operator in the scope selector."""
    selector = spec.get("scopeSelector") or {}
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        field = f"spec.scopeSelector.matchExpressions[{index}].operator"
        yield from check_scope_operator(field, one.get("operator", ""))


def _wrong_type(obj: Json, form: type[_Form]) -> Cause | None:
    """Return the error of the first field that has a wrong type; None if no field has one."""
    try:
        decode_as(form, without_nulls(obj))
    except DecodeError as cause:
        return Cause("FieldValueInvalid", cause.problem, cause.field)
    return None


def _check_amounts(field: str, amounts: ResourceList) -> Causes:
    for name, text in amounts.items():
        if quantity_or_none(text) is None:
            yield invalid(f"{field}[{name}]", str(text), NOT_A_QUANTITY)
