"""Steps: what leads on from a value of a type, and what is there.

The items of a list are told apart by their keys, or by what they are; an atomic value leads
nowhere.

upstream: sigs.k8s.io/structured-merge-diff/typed/helpers.go
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

from fairlead.api.field_problem import quoted
from fairlead.apiserver.patch.managedfields.field_set import key_step, value_step
from fairlead.apiserver.schema.model import ANYTHING, Schema, Topology, Type, Zero
from fairlead.apiserver.schema.zero import zero_value

CACHE_SIZE: Final = 1 << 12


class NamelessItemError(ValueError):
    """Nothing tells an item from its neighbours; the text says why."""


_ABSENT: Final = object()
_COMPOSITE: Final = (Type.OBJECT, Type.MAP, Type.LIST, Type.ANY)


def is_leaf(schema: Schema, value: Any) -> bool:
    """Whether `value` is a single field, whatever is in it."""
    if schema.topology is Topology.ATOMIC or not is_composite(schema):
        return True
    return value is not None and not isinstance(value, list if schema.type is Type.LIST else dict)


def is_composite(schema: Schema) -> bool:
    """Whether there is something in values of this type."""
    return schema.type in _COMPOSITE


def inner_schema(schema: Schema, step: str) -> Schema:
    """The type of what `step` leads to."""
    if schema.type is Type.LIST:
        return schema.items or ANYTHING
    return member_schema(schema, step[2:])


def member_schema(schema: Schema, key: str) -> Schema:
    """The type of a field, or of a map's entry."""
    known = schema.fields.get(key)
    return known.schema if known else schema.items or ANYTHING


def items_by_step(schema: Schema, value: list[Any] | None) -> Iterator[tuple[str, Any]]:
    """The items of a list that is a set or has keys."""
    for item in value or ():
        yield item_step(schema, item), item


def steps_so_far(schema: Schema, value: list[Any]) -> Iterator[tuple[str, Any]]:
    """Likewise where items may have lost what told them apart: those have ""."""
    for item in value:
        try:
            yield item_step(schema, item), item
        except NamelessItemError:
            yield "", item


def item_step(schema: Schema, item: Any) -> str:
    """What tells `item` from its neighbours; keys that it lacks have their defaults.

    Raises NamelessItemError.
    """
    if not schema.keys:
        if item is None or isinstance(item, dict | list):
            raise NamelessItemError(_nameless_value(item))
        return value_step(item)
    if not isinstance(item, dict):
        sort = "a null element" if item is None else "non-map elements"
        raise NamelessItemError(f"associative list with keys may not have {sort}")
    given = tuple(map(item.get, schema.keys, repeat(_ABSENT)))
    try:
        return _key_step(schema, *given)
    except TypeError:  # a key that is no single value
        return _key_step.__wrapped__(schema, *given)


# Lists have few keys, and their items are called alike in all objects of a kind.
@lru_cache(maxsize=CACHE_SIZE, typed=True)
def _key_step(schema: Schema, *given: Any) -> str:
    defaults = schema.items.key_defaults if schema.items else {}
    keys: dict[str, Any] = {}
    for key, value in zip(schema.keys, given, strict=True):
        if value is not _ABSENT:
            keys[key] = value  # null tells an item apart, too
            continue
        default = defaults.get(key, _zero_key(schema, key))
        if default is not None:
            keys[key] = default
    if not keys:
        listed = " ".join(map(quoted, schema.keys))
        raise NamelessItemError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_step(keys)


def _nameless_value(item: Any) -> str:
    # upstream: typed/helpers.go:setItemToPathElement
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    shown = "an explicit null" if item is None else "a map type"
    return f"associative list without keys has an element that's {shown}"


def _zero_key(schema: Schema, key: str) -> Any:
    """What a key that is required, but not there, counts as."""
    known = schema.items.fields.get(key) if schema.items else None
    return zero_value(known.schema) if known and known.zero is Zero.EMIT else None
