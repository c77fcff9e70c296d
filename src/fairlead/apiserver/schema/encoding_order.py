"""Sorts members in the order in which upstream encodes them.

Go encodes the fields of structs in declaration order and the keys of maps by name. The members of
objects without a Go type (custom resources) are sorted by name at every depth. Values are never
mutated. A value that is already in order is returned unchanged. Members that an object shares with
its previous version (`before`) are already in order, so they are not examined.

upstream: encoding/json/encode.go:{structEncoder,mapEncoder}
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import is_not
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.schema.model import Schema, Type

# Given (value, the value that it replaces), returns `value` with its members in order. The members
# of the replaced value are already in order.
_Order = Callable[[Any, Any], Any]
_Rows = dict[str, tuple[int, _Order | None]]
# A plan for objects with the same keys in the same order. It contains the members whose values may
# need sorting, and the sorted keys. The sorted keys are None if the keys are already in order.
_Plan = tuple[tuple[tuple[str, _Order], ...], tuple[str, ...] | None]
_Plans = dict[tuple[str, ...], _Plan]

_NOTHING: Final[Json] = {}
# The number of plans for one type. Most objects of a type have one of a few sets of keys.
PLANS_MAX: Final = 32


def ordered(schema: Schema, value: Any, before: Any = None) -> Any:
    """Return `value`, of type `schema`, with its members in the order of upstream's encoding.

    Unknown members come last. `before` is the previous version of `value`, whose members are
    already in this order; None if there is no previous version.
    """
    order = _order_of(schema)
    return value if order is None else order(value, before)


def ordered_by_name(value: Any) -> Any:
    """Return `value` with its members sorted by name, at every depth."""
    if isinstance(value, dict):
        items = {key: ordered_by_name(item) for key, item in value.items()}
        return _by_name(items, value if not _is_changed(value, items) else items)
    if isinstance(value, list):
        made = list(map(ordered_by_name, value))
        return made if any(map(is_not, made, value)) else value
    return value


# The order of each type; None if values of the type have no members to sort. Types are shared and
# few, and may contain themselves.
_ORDERS: Final[dict[Schema, _Order | None]] = {}


def _order_of(schema: Schema) -> _Order | None:
    if schema not in _ORDERS:
        _ORDERS[schema] = None
        _ORDERS[schema] = _made(schema)
    return _ORDERS[schema]


def _made(schema: Schema) -> _Order | None:
    match schema.type:
        case Type.OBJECT if schema.fields:
            rows: _Rows = {}
            order = partial(_object, rows, {})
            _ORDERS[schema] = order  # `_order_of` returns this if the type contains itself.
            for number, (key, field) in enumerate(schema.fields.items()):
                rows[key] = number, _order_of(field.schema)
            return order
        case Type.LIST if schema.items is not None:
            inner = _order_of(schema.items)
            return None if inner is None else partial(_list, inner)
        case Type.MAP if schema.items is not None:
            return partial(_map, _order_of(schema.items))
        case _:
            return None


def _object(rows: _Rows, plans: _Plans, value: Any, before: Any) -> Any:
    if type(value) is not dict:
        return value
    keys = tuple(value)
    plan = plans.get(keys)
    if plan is None:
        if len(plans) >= PLANS_MAX:
            plans.clear()
        plan = plans[keys] = _planned(rows, keys)
    made = value
    known = before if type(before) is dict else _NOTHING
    for key, inner in plan[0]:
        item = value[key]
        earlier = known.get(key)
        if item is earlier:
            continue
        new = inner(item, earlier)
        if new is not item:
            made = dict(value) if made is value else made
            made[key] = new
    return made if plan[1] is None else {key: made[key] for key in plan[1]}


def _planned(rows: _Rows, keys: tuple[str, ...]) -> _Plan:
    known = [(key, rows[key][1]) for key in keys if key in rows]
    inner = tuple((key, order) for key, order in known if order is not None)
    last = len(rows)
    wanted = tuple(sorted(keys, key=lambda key: rows[key][0] if key in rows else last))
    return inner, None if wanted == keys else wanted


def _list(inner: _Order, value: Any, _before: Any) -> Any:
    if type(value) is not list:
        return value
    made = [inner(item, None) for item in value]
    return made if any(map(is_not, made, value)) else value


def _map(inner: _Order | None, value: Any, _before: Any) -> Any:
    if type(value) is not dict:
        return value
    if inner is None:
        return _by_name(value, value)
    made = {key: inner(item, None) for key, item in value.items()}
    return _by_name(made, made if _is_changed(value, made) else value)


def _by_name(made: Json, equal: Json) -> Json:
    """Return `made` with its members sorted by name, or `equal` if they are already sorted.

    `equal` is `made` itself or an object with the same members in the same order.
    """
    keys, names = list(made), sorted(made)
    return equal if keys == names else {key: made[key] for key in names}


def _is_changed(before: Json, after: Json) -> bool:
    return any(after[key] is not item for key, item in before.items())
