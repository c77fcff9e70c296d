"""Decoding: a JSON value in the form in which an API server keeps objects of its type.

What goes in is what somebody sent; what comes out is what they would read back (before defaults).
Unknown fields and nulls are gone, quantities and instants have their canonical texts, and empty
values have become what upstream's types make of them: dropped, kept or written (`Zero`).

The first value of a wrong type refuses the whole, in the words of the language that upstream is
written in; unknown and repeated fields are only noted, in the order in which they stand.

upstream: sigs.k8s.io/json, encoding/json with the types of staging/src/k8s.io/api
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from fairlead.api.quantity import UPSTREAM_FORM, QuantityError, canonical, parse_quantity
from fairlead.api.timestamp import format_micro_time, format_timestamp, parse_timestamp
from fairlead.apiserver.schema.go_name import go_kind, go_type
from fairlead.apiserver.schema.instant import micro_time_problem, time_problem
from fairlead.apiserver.schema.json_text import Repeating, json_kind
from fairlead.apiserver.schema.model import Field, Schema, Type, Zero
from fairlead.apiserver.schema.place import Notes, Place
from fairlead.apiserver.schema.reader import UnusualError, reader_of
from fairlead.apiserver.schema.union import NeitherError, is_union, read_union
from fairlead.apiserver.schema.zero import emitted, zero_value

Json = dict[str, Any]

# Somewhat more than there are kinds; types of custom resources come and go.
CACHE_SIZE: Final = 1 << 7
_LIMITS: Final = {Type.INT32: 31, Type.INT64: 63}
_WHOLE: Final = Schema(Type.INT32)  # what an IntOrString reads that is no text


class TypeMismatchError(ValueError):
    """A value that its field cannot hold; the text is upstream's.

    `restoring` is what upstream says instead where the value comes from a patch.
    """

    def __init__(self, text: str, restoring: str = "") -> None:
        super().__init__(text)
        self.restoring = restoring or text


def decoded(schema: Schema, value: Any) -> tuple[Any, list[str]]:
    """`value` in the form of its type, and what is to be said about its fields.

    Raises TypeMismatchError for the first value of a wrong type.
    """
    notes = Notes()
    return read(schema, value, Place(), notes), notes.texts


def read(schema: Schema, value: Any, place: Place, notes: Notes) -> Any:
    """`value`, which stands at `place`, in the form of its type. Raises TypeMismatchError."""
    try:
        return reader_of(schema)(value)
    except UnusualError:
        return _Walk(notes).value(schema, value, place)


def walked(schema: Schema, value: Any) -> tuple[Any, list[str]]:
    """The same, whatever there is to say; see `reader`, which gives up then and is faster."""
    notes = Notes()
    return _Walk(notes).value(schema, value, Place()), notes.texts


@lru_cache(maxsize=CACHE_SIZE)
def empty(schema: Schema) -> Any:
    """What an object of this type is before anybody has said anything. Shared: do not mutate."""
    return _Walk(Notes()).value(schema, {}, Place())


class _Walk:
    """One walk through a value, gathering notes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def value(self, schema: Schema, value: Any, place: Place) -> Any:
        match schema.type:
            case Type.OBJECT:
                return self._object(schema, value, place)
            case Type.LIST:
                return self._list(schema, value, place)
            case Type.MAP:
                return self._map(schema, value, place)
            case Type.ANY:
                return self._union(schema, value, place) if is_union(schema) else value
            case Type.QUANTITY:
                return _quantity(value)
            case Type.INT_OR_STRING if not isinstance(value, str):
                return _integer(_WHOLE, value, place)
            case _:
                return _SCALARS[schema.type](schema, value, place)

    def _union(self, schema: Schema, value: Any, place: Place) -> Any:
        quietly = _Walk(Notes())
        try:
            return read_union(schema, value, lambda member, one: quietly.value(member, one, place))
        except NeitherError as cause:
            raise TypeMismatchError(str(cause)) from None

    def _object(self, schema: Schema, value: Any, place: Place) -> Json:
        if not isinstance(value, dict):
            raise _mismatch(schema, value, place)
        fields = schema.fields
        made: Json = {}
        for key, item in self._members(value, place):
            field = fields.get(key)
            if field is None:
                self._notes.unknown(Place(place, key, schema))
            elif item is None:
                made.pop(key, None)
            else:
                self._set(
                    made, key, field, self.value(field.schema, item, Place(place, key, schema))
                )
        for key, inner in emitted(schema):
            if key not in made:
                made[key] = zero_value(inner) if inner else None
        return made

    def _set(self, made: Json, key: str, field: Field, value: Any) -> None:
        if value is None or (field.zero is Zero.DROP and not value):
            made.pop(key, None)
        elif field.zero is Zero.EMIT and value == {} and field.schema.type is not Type.OBJECT:
            made[key] = None
        else:
            made[key] = value

    def _members(self, value: Json, place: Place) -> list[tuple[str, Any]]:
        """The members in their order; one that is there again is noted, and the last one counts."""
        if not isinstance(value, Repeating):
            return list(value.items())
        seen: dict[str, None] = {}
        noted: dict[str, None] = {}
        for key, _ in value.pairs:
            if key in seen:
                noted[key] = None
            seen[key] = None
        for key in noted:
            self._notes.repeated(Place(place, key))
        return value.pairs

    def _list(self, schema: Schema, value: Any, place: Place) -> list[Any]:
        if not isinstance(value, list) or schema.items is None:
            raise _mismatch(schema, value, place)
        return [self._item(schema.items, item, Place(place, at)) for at, item in enumerate(value)]

    def _item(self, schema: Schema, item: Any, place: Place) -> Any:
        if item is not None:
            return self.value(schema, item, place)
        return "" if schema.type is Type.BYTES else zero_value(schema)

    def _map(self, schema: Schema, value: Any, place: Place) -> Json:
        if not isinstance(value, dict) or schema.items is None:
            raise _mismatch(schema, value, place)
        made = {}
        for key, item in self._members(value, place):
            made[key] = self._item(schema.items, item, Place(place, key))
        return made


def _text(schema: Schema, value: Any, place: Place) -> Any:
    if not isinstance(value, str):
        raise _mismatch(schema, value, place)
    return value


def _bytes(schema: Schema, value: Any, place: Place) -> Any:
    text = _text(schema, value, place)
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except (binascii.Error, ValueError):
        why = f"illegal base64 data at input byte {_illegal(text)}"
        raise TypeMismatchError(why, f"error decoding from json: {why}") from None


def _illegal(text: str) -> int:
    """Where base64 stops making sense."""
    legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for at, one in enumerate(text):
        if one not in legal:
            return at
    return len(text) // 4 * 4


def _boolean(schema: Schema, value: Any, place: Place) -> Any:
    if not isinstance(value, bool):
        raise _mismatch(schema, value, place)
    return value


def _integer(schema: Schema, value: Any, place: Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(schema, value, place)
    bits = _LIMITS[schema.type]
    if isinstance(value, float) or not -(1 << bits) <= value < 1 << bits:
        raise _mismatch(schema, value, place, shown=f"number {_number_text(value)}")
    return value


def _number_text(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(schema: Schema, value: Any, place: Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(schema, value, place)
    return value


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeMismatchError(_NO_QUANTITY)
    try:
        return canonical(parse_quantity(value))
    except QuantityError:
        raise TypeMismatchError(_NO_QUANTITY) from None


_NO_QUANTITY: Final = f"quantities must match the regular expression '{UPSTREAM_FORM}'"


def _time(schema: Schema, value: Any, place: Place) -> Any:
    problem = time_problem(_text(schema, value, place))
    if problem:
        raise TypeMismatchError(problem)
    return format_timestamp(parse_timestamp(value))


def _micro_time(schema: Schema, value: Any, place: Place) -> Any:
    problem = micro_time_problem(_text(schema, value, place))
    if problem:
        raise TypeMismatchError(problem)
    return format_micro_time(parse_timestamp(value))


_SCALARS: Final[dict[Type, Callable[[Schema, Any, Place], Any]]] = {
    Type.STRING: _text,
    Type.BYTES: _bytes,
    Type.BOOLEAN: _boolean,
    Type.INT32: _integer,
    Type.INT64: _integer,
    Type.NUMBER: _number,
    Type.INT_OR_STRING: _text,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
}


def _mismatch(schema: Schema, value: Any, place: Place, *, shown: str = "") -> TypeMismatchError:
    # upstream: encoding/json UnmarshalTypeError
    what = shown or json_kind(value)
    where = f"struct field {place.struct}.{place.names}" if place.names else "value"
    return TypeMismatchError(
        f"json: cannot unmarshal {what} into Go {where} of type {go_type(schema)}",
        _restoring(schema, value, what),
    )


def _restoring(schema: Schema, value: Any, what: str) -> str:
    # upstream: apimachinery/pkg/runtime/converter.go:fromUnstructured
    kind = go_kind(value)
    match schema.type:
        case Type.OBJECT:
            return f"cannot restore struct from: {kind}"
        case Type.LIST | Type.BYTES:
            return f"cannot restore slice from {kind}"
        case Type.MAP:
            return f"cannot restore map from {kind}"
        case _ if schema is _WHOLE or schema.type in (Type.TIME, Type.MICRO_TIME):
            return f"json: cannot unmarshal {what} into Go value of type {go_type(schema)}"
        case Type.STRING if kind == "int64":
            return "cannot convert int64 to string"
        case Type.INT32 | Type.INT64 if kind == "float64":
            return f"cannot convert float64 to {go_type(schema)}"
        case _:
            return f"unrecognized type: {go_type(schema)}"
