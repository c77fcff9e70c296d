"""Completion: an object in canonical form becomes one with all its defaults.

Types are completed from the outside in, as upstream's generated functions do it, so that a rule
may count on what the rules of the types around it have filled in.

upstream: pkg/apis/*/*/zz_generated.defaults.go
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlead.apiserver.defaulting.rule import RULES
from fairlead.apiserver.schema.model import Schema, Type

Json = dict[str, Any]


def completed(schema: Schema, obj: Json) -> Json:
    """`obj`, a whole object of that type in canonical form, with its defaults."""
    made: Json = _completed(schema, obj)
    return made


def _completed(schema: Schema, value: Any) -> Any:
    if value is None or not _concerned(schema):
        return value
    match schema.type:
        case Type.OBJECT:
            return _object(schema, value)
        case Type.LIST if schema.items:
            return _same_or(value, [_completed(schema.items, item) for item in value])
        case Type.MAP if schema.items:
            items = schema.items
            return _same_or(value, {key: _completed(items, item) for key, item in value.items()})
        case _:
            return value


def _object(schema: Schema, value: Json) -> Json:
    rule = RULES.get(schema.short_name) or RULES.get(schema.long_name)
    if rule is not None:
        value = rule(value)
    changed = {}
    for key, inner in _concerned_fields(schema):
        if key in value:
            before = value[key]
            after = _completed(inner, before)
            if after is not before:
                changed[key] = after
    return {**value, **changed} if changed else value


def _same_or(before: Any, after: Any) -> Any:
    return before if after == before else after


@cache
def _concerned_fields(schema: Schema) -> tuple[tuple[str, Schema], ...]:
    fields = schema.fields.items()
    return tuple((key, field.schema) for key, field in fields if _concerned(field.schema))


@cache
def _concerned(schema: Schema) -> bool:
    """Whether a rule concerns this type or any inside."""
    seen: set[int] = set()
    rest = [schema]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.type is Type.OBJECT and {one.short_name, one.long_name} & RULES.keys():
            return True
        rest += [field.schema for field in one.fields.values()]
        if one.items:
            rest.append(one.items)
    return False
