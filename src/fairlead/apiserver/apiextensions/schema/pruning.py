"""Prunes custom resources and sets their defaults.

    1. drop and report fields that the schema does not declare
    2. drop nulls where the field is not nullable and has no default
    3. set defaults where a field is absent, or null but not nullable

upstream: apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go and
defaulting/algorithm.go
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.schema.field_location import FieldLocation
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError

OnDropped = Callable[[FieldLocation], object]

# Ten times the largest object that etcd stores.
FILLED_CHARACTERS_MAX: Final = 16 << 20
_TOO_LARGE: Final = "the object would be too large with the defaults of its type"
IDENTITY: Final = ("apiVersion", "kind", "metadata")
_WHOLE_MAX: Final = 2**53
_INT64: Final = range(-(2**63), 2**63)
_WITHOUT_EXPONENT: Final = 1e21


def pruned_and_defaulted(schema: Structural, obj: Json, on_dropped: OnDropped) -> Json:
    """Return `obj` as it is stored: pruned, with defaults.

    `on_dropped` is called with the path of each dropped field. Raises ApiError 413 if the defaults
    are too large.
    """
    inner = {key: value for key, value in obj.items() if key not in IDENTITY}
    pruned = _pruned(schema, inner, FieldLocation(), on_dropped)
    identity = {key: obj[key] for key in IDENTITY if key in obj}
    result: Json = defaulted(schema, {**identity, **pruned})
    return result


def pruned_object(schema: Structural, obj: Json) -> Json:
    """Return the whole object `obj` without undeclared fields and disallowed nulls.

    apiVersion, kind and metadata are kept unchanged.
    """
    inner = {key: value for key, value in obj.items() if key not in IDENTITY}
    result: Json = _pruned(schema, inner, FieldLocation(), _ignore)
    return {**{key: obj[key] for key in IDENTITY if key in obj}, **result}


def _ignore(_: FieldLocation) -> None:
    """Ignore a dropped field."""


def pruned_value(schema: Structural, value: Any, on_dropped: OnDropped) -> Any:
    """Return `value` without undeclared fields and disallowed nulls.

    `on_dropped` is called with the path of each dropped field.
    """
    return _pruned(schema, value, FieldLocation(), on_dropped)


def _pruned(schema: Structural, value: Any, path: FieldLocation, on_dropped: OnDropped) -> Any:
    """Return `value` without undeclared fields and disallowed nulls."""
    if isinstance(value, dict):
        return _pruned_object(schema, value, path, on_dropped)
    if isinstance(value, list):
        if schema.items is None:
            return value
        return [
            _pruned(schema.items, item, FieldLocation(path, index), on_dropped)
            for index, item in enumerate(value)
        ]
    return _number(value)


def _pruned_object(
    schema: Structural, value: Json, path: FieldLocation, on_dropped: OnDropped
) -> Json:
    result: Json = {}
    for key, item in value.items():
        if schema.is_embedded and key in IDENTITY:
            result[key] = item
            continue
        inner = schema.properties.get(key) or schema.additional
        member_path_ = FieldLocation(path, key)
        if inner is not None:
            if item is not None or inner.is_nullable or inner.default is not ABSENT:
                result[key] = _pruned(inner, item, member_path_, on_dropped)
        elif schema.keeps_unknown:
            result[key] = item
        else:
            on_dropped(member_path_)
    return result


def _number(value: Any) -> Any:
    """Return a number as upstream's JSON encoder writes it: 2.0 becomes 2."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_MAX:
        return int(value)
    if isinstance(value, int) and value not in _INT64:
        return _of_double(value)
    return value


def _of_double(number: int) -> int | float:
    """Return `number`, which does not fit into int64, as Go writes it in JSON.

    Go decodes the number as a float64, and writes this float64.
    """
    # upstream: encoding/json encode.go:floatEncoder.encode
    nearest = float(number)
    return int(Decimal(repr(nearest))) if abs(nearest) < _WITHOUT_EXPONENT else nearest


def defaulted(schema: Structural, value: Any) -> Any:
    """Return `value` with the defaults of its schema. Raises ApiError 413 if they are too large."""
    return _with_defaults(schema, value, CostBudget(FILLED_CHARACTERS_MAX))


def _charge(budget: CostBudget, length: int) -> None:
    """Subtract the `length` of a default from `budget`.

    Raises ApiError 413 if the budget is exceeded.
    """
    try:
        budget.spend(length)
    except OutOfBudgetError:
        raise ApiError("RequestEntityTooLarge", 413, _TOO_LARGE) from None


def _with_defaults(schema: Structural, value: Any, budget: CostBudget) -> Any:
    if isinstance(value, dict):
        result = dict(value)
        for key, inner, length in schema.filled:
            if _needs_default(result, key, inner):
                _charge(budget, length)
                result[key] = inner.default
        for key, item in result.items():
            member_schema = schema.properties.get(key) or schema.additional
            if member_schema is not None:
                result[key] = _with_defaults(member_schema, item, budget)
        return result
    if isinstance(value, list) and schema.items is not None:
        return [_item_with_defaults(schema.items, item, budget) for item in value]
    return value


def _item_with_defaults(schema: Structural, item: Any, budget: CostBudget) -> Any:
    if item is None and schema.default is not ABSENT and not schema.is_nullable:
        _charge(budget, len(str(schema.default)))
        return schema.default
    return _with_defaults(schema, item, budget)


def _needs_default(obj: Json, key: str, schema: Structural) -> bool:
    return key not in obj or (obj[key] is None and not schema.is_nullable)
