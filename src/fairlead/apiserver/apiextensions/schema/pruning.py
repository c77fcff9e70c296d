"""What is kept of a custom resource, and what is filled in.

    1. fields that the type does not know are dropped, and told
    2. nulls are dropped where null is no value and there is no default
    3. defaults stand where nothing, or such a null, is

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
from fairlead.apiserver.schema.place import Place

Tell = Callable[[Place], object]

# Etcd takes a tenth of it in one object.
FILLED_CHARACTERS_MAX: Final = 16 << 20
_TOO_LARGE: Final = "the object would be too large with the defaults of its type"
IDENTITY: Final = ("apiVersion", "kind", "metadata")
_WHOLE_MAX: Final = 2**53
_INT64: Final = range(-(2**63), 2**63)
_WITHOUT_EXPONENT: Final = 1e21


def shaped(schema: Structural, obj: Json, tell: Tell) -> Json:
    """`obj` as it is stored; `tell` gets the place of each field that is dropped.

    Raises ApiError 413 where too much is filled in.
    """
    inner = {key: value for key, value in obj.items() if key not in IDENTITY}
    pruned = _pruned(schema, inner, Place(), tell)
    named = {key: obj[key] for key in IDENTITY if key in obj}
    made: Json = defaulted(schema, {**named, **pruned})
    return made


def pruned_object(schema: Structural, obj: Json) -> Json:
    """A whole object without what its type does not know, and nothing filled in."""
    inner = {key: value for key, value in obj.items() if key not in IDENTITY}
    made: Json = _pruned(schema, inner, Place(), _forget)
    return {**{key: obj[key] for key in IDENTITY if key in obj}, **made}


def _forget(_: Place) -> None:
    """Nobody is told."""


def shaped_value(schema: Structural, value: Any, tell: Tell) -> Any:
    """`value` of a type without what the type does not know, which is told."""
    return _pruned(schema, value, Place(), tell)


def _pruned(schema: Structural, value: Any, place: Place, tell: Tell) -> Any:
    """`value` without what the type does not know, and without nulls that say nothing."""
    if isinstance(value, dict):
        return _pruned_object(schema, value, place, tell)
    if isinstance(value, list):
        if schema.items is None:
            return value
        return [
            _pruned(schema.items, item, Place(place, at), tell) for at, item in enumerate(value)
        ]
    return _number(value)


def _pruned_object(schema: Structural, value: Json, place: Place, tell: Tell) -> Json:
    made: Json = {}
    for key, item in value.items():
        if schema.is_embedded and key in IDENTITY:
            made[key] = item
            continue
        inner = schema.properties.get(key) or schema.additional
        here = Place(place, key)
        if inner is not None:
            if item is not None or _is_null_kept(inner):
                made[key] = _pruned(inner, item, here, tell)
        elif schema.keeps_unknown:
            made[key] = item
        else:
            tell(here)
    return made


def _is_null_kept(schema: Structural) -> bool:
    return schema.is_nullable or schema.default is not ABSENT


def _number(value: Any) -> Any:
    """Upstream writes a whole number without a point, however it was sent."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_MAX:
        return int(value)
    if isinstance(value, int) and value not in _INT64:
        return _of_double(value)
    return value


def _of_double(number: int) -> int | float:
    """What is left of an integer in 64 bits, written with as many zeros as upstream writes."""
    # upstream: encoding/json encode.go:floatEncoder.encode
    nearest = float(number)
    return int(Decimal(repr(nearest))) if abs(nearest) < _WITHOUT_EXPONENT else nearest


def defaulted(schema: Structural, value: Any) -> Any:
    """`value` with the defaults of its type. Raises ApiError 413 for more than anybody stores."""
    return _filled(schema, value, _Room())


class _Room:
    """How long what is filled in may still be."""

    def __init__(self) -> None:
        self._left = FILLED_CHARACTERS_MAX

    def take(self, length: int) -> None:
        self._left -= length
        if self._left < 0:
            raise ApiError("RequestEntityTooLarge", 413, _TOO_LARGE)


def _filled(schema: Structural, value: Any, room: _Room) -> Any:
    if isinstance(value, dict):
        made = dict(value)
        for key, inner, length in schema.filled:
            if _lacks(made, key, inner):
                room.take(length)
                made[key] = inner.default
        for key, item in made.items():
            known = schema.properties.get(key) or schema.additional
            if known is not None:
                made[key] = _filled(known, item, room)
        return made
    if isinstance(value, list) and schema.items is not None:
        return [_item(schema.items, item, room) for item in value]
    return value


def _item(schema: Structural, item: Any, room: _Room) -> Any:
    if item is None and schema.default is not ABSENT and not schema.is_nullable:
        room.take(len(str(schema.default)))
        return schema.default
    return _filled(schema, item, room)


def _lacks(obj: Json, key: str, schema: Structural) -> bool:
    return key not in obj or (obj[key] is None and not schema.is_nullable)
