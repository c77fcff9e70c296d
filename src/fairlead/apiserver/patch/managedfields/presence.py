"""Presence: the fields of a value that stands alone, itself and all that is in it.

Most of what is written is new, and all of it is somebody's: each type becomes a function, made
once, that gives the set of fields of one of its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.apiserver.patch.managedfields.field_set import (
    LEAF,
    NOTHING,
    SELF,
    FieldSet,
    field_step,
)
from fairlead.apiserver.patch.managedfields.path_element import is_composite, items_by_step
from fairlead.apiserver.schema.model import ANYTHING, Schema, Topology, Type

Presence = Callable[[Any], FieldSet]

# Types are shared and may contain themselves; those of custom resources come and go.
TYPES_MAX: Final = 20_000
_MADE: Final[dict[Schema, Presence]] = {}


def presence_of(schema: Schema) -> Presence:
    """The function that gives the fields of a value of this type."""
    made = _MADE.get(schema)
    if made is not None:
        return made
    if len(_MADE) > TYPES_MAX:
        _MADE.clear()
    return _presence(schema)


def _presence(schema: Schema) -> Presence:
    made = _MADE.get(schema)
    if made is not None:
        return made
    if schema.topology is Topology.ATOMIC or not is_composite(schema):
        _MADE[schema] = _leaf
        return _leaf
    if schema.type is Type.LIST:
        return _of_list(schema)
    return _of_map(schema) if schema.type is Type.MAP else _of_object(schema)


def _leaf(_: Any) -> FieldSet:
    return LEAF


def _inner(schema: Schema | None) -> Presence | None:
    """How to look into a value of this type, None where nothing is in it."""
    found = _leaf if schema is None else _presence(schema)
    return None if found is _leaf else found


def _of_object(schema: Schema) -> Presence:
    rows: dict[str, tuple[str, Presence | None]] = {}

    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, dict):
            return LEAF
        made: FieldSet = {SELF: NOTHING}
        for key, item in value.items():
            row = rows.get(key)
            step, inner = row or (field_step(key), rest)
            made[step] = inner(item) if inner and item else LEAF
        return made

    _MADE[schema] = presence
    for key, field in schema.fields.items():
        rows[key] = field_step(key), _inner(field.schema)
    rest = _inner(schema.items or ANYTHING)
    return presence


def _of_map(schema: Schema) -> Presence:
    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, dict):
            return LEAF
        made: FieldSet = {SELF: NOTHING}
        for key, item in value.items():
            made[field_step(key)] = inner(item) if inner and item else LEAF
        return made

    _MADE[schema] = presence
    inner = _inner(schema.items)
    return presence


def _of_list(schema: Schema) -> Presence:
    def presence(value: Any) -> FieldSet:
        if not value or not isinstance(value, list):
            return LEAF
        made: FieldSet = {SELF: NOTHING}
        for step, item in items_by_step(schema, value):
            # Of items that are there twice the set has nothing but that they are.
            made[step] = LEAF if step in made or not (inner and item) else inner(item)
        return made

    _MADE[schema] = presence
    inner = _inner(schema.items)
    return presence
