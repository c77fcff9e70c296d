"""Presence: the set of all fields of a value, at every level.

If a write adds or removes a value, all fields in the presence of this value count as added or
removed. Unlike `typed.field_set`, presence contains every struct itself, in addition to the fields
inside the struct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.apiserver.patch.managedfields.field_set import EMPTY, LEAF, FieldSet
from fairlead.apiserver.patch.managedfields.path_element import (
    SELF,
    field_element,
    is_composite,
    items_by_element,
)
from fairlead.apiserver.schema.model import ANYTHING, ElementRelationship, Schema, Type

Presence = Callable[[Any], FieldSet]

# Schemas may be recursive. Those of custom resources come and go, so the cache is bounded.
TYPES_MAX: Final = 20_000
_CACHE: Final[dict[Schema, Presence]] = {}


def presence_of(schema: Schema) -> Presence:
    """Return a function that returns the set of all fields of a value of type `schema`.

    The returned function can raise ItemKeyError.
    """
    made = _CACHE.get(schema)
    if made is not None:
        return made
    if len(_CACHE) > TYPES_MAX:
        _CACHE.clear()
    return _presence(schema)


def _presence(schema: Schema) -> Presence:
    made = _CACHE.get(schema)
    if made is not None:
        return made
    if schema.topology is ElementRelationship.ATOMIC or not is_composite(schema):
        _CACHE[schema] = _leaf
        return _leaf
    if schema.type is Type.LIST:
        return _of_list(schema)
    return _of_map(schema) if schema.type is Type.MAP else _of_object(schema)


def _leaf(_: Any) -> FieldSet:
    return LEAF


def _inner_presence(schema: Schema | None) -> Presence | None:
    """Return the presence function of `schema`; None if values of `schema` contain no fields."""
    found = _leaf if schema is None else _presence(schema)
    return None if found is _leaf else found


def _of_object(schema: Schema) -> Presence:
    rows: dict[str, tuple[str, Presence | None]] = {}

    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, dict):
            return LEAF
        made: FieldSet = {SELF: EMPTY}
        for key, item in value.items():
            row = rows.get(key)
            element, inner = row or (field_element(key), rest)
            made[element] = inner(item) if inner and item else LEAF
        return made

    _CACHE[schema] = presence
    for key, field in schema.fields.items():
        rows[key] = field_element(key), _inner_presence(field.schema)
    rest = _inner_presence(schema.items or ANYTHING)
    return presence


def _of_map(schema: Schema) -> Presence:
    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, dict):
            return LEAF
        made: FieldSet = {SELF: EMPTY}
        for key, item in value.items():
            made[field_element(key)] = inner(item) if inner and item else LEAF
        return made

    _CACHE[schema] = presence
    inner = _inner_presence(schema.items)
    return presence


def _of_list(schema: Schema) -> Presence:
    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, list):
            return LEAF
        made: FieldSet = {SELF: EMPTY}
        for element, item in items_by_element(schema, value):
            # duplicates are owned as one field, without their content
            made[element] = LEAF if element in made or not (inner and item) else inner(item)
        return made

    _CACHE[schema] = presence
    inner = _inner_presence(schema.items)
    return presence
