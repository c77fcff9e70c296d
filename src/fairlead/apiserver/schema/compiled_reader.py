"""Compiles fast decoders for well-formed values.

Each type is compiled into a function. The function returns the value in the form in which an API
server stores it, or raises UnusualError. `decoder` handles all unusual values and produces the
error messages. If a compiled function returns a value, `decoder` would return the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from fairlead.api.json import Json
from fairlead.api.quantity import QuantityError, canonical, parse_quantity
from fairlead.api.text.text_cache import text_cache
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.schema.gojson.base64_text import IllegalBase64Error, canonical_base64
from fairlead.apiserver.schema.gojson.time_text import read_micro_time, read_time
from fairlead.apiserver.schema.model import Schema, Type, Zero
from fairlead.apiserver.schema.union import is_union
from fairlead.apiserver.schema.zero_value import emitted, zero_value

Reader = Callable[[Any], Any]
Read = TypeVar("Read")

CACHE_SIZE: Final = 1 << 14


class UnusualError(Exception):
    """The value is malformed or unusual, so the full decoder must decode it."""


def reader_of(schema: Schema) -> Reader:
    """Return the compiled function that reads values of type `schema`.

    The function raises UnusualError for a value that `decoder` must read.
    """
    made = _READERS.get(schema)
    return _compiled(schema) if made is None else made


# The compiled functions by type. Types are shared, few, and may be recursive.
_READERS: Final[dict[Schema, Reader]] = {}


def _compiled(schema: Schema) -> Reader:
    match schema.type:
        case Type.OBJECT:
            return _object(schema)
        case Type.LIST if schema.items is not None:
            return _list(schema, schema.items)
        case Type.MAP if schema.items is not None:
            return _map(schema, schema.items)
        case Type.ANY if is_union(schema):
            return _unusual
        case _:
            return _SCALARS.get(schema.type, _unusual)


# How a field is read. A row is (function that reads the value, whether an empty field is dropped,
# whether an empty map is stored as null). The function is None if the value is a string.
_Row = tuple[Reader | None, bool, bool]


def _object(schema: Schema) -> Reader:
    rows: dict[str, _Row] = {}
    shown = emitted(schema)

    def read(value: Any) -> Json:
        if type(value) is not dict:
            raise UnusualError
        made = _members(rows, value)
        for key, zero in shown:
            if key not in made:
                made[key] = zero_value(zero) if zero else None
        return made

    _READERS[schema] = read
    for key, field in schema.fields.items():
        inner = None if field.schema.type is Type.STRING else reader_of(field.schema)
        is_nulled = field.zero is Zero.EMIT and field.schema.type not in (Type.OBJECT, Type.ANY)
        rows[key] = inner, field.zero is Zero.DROP, is_nulled
    return read


def _members(rows: dict[str, _Row], value: Json) -> Json:
    made: Json = {}
    for key, item in value.items():
        row = rows.get(key)
        if row is None:
            raise UnusualError
        if item is None:
            continue
        inner, is_dropped, is_nulled = row
        if inner is not None:
            item = inner(item)  # noqa: PLW2901 - as it is read
        elif type(item) is not str:
            raise UnusualError
        if item or not is_dropped:
            made[key] = None if is_nulled and item == {} else item
    return made


def _list(schema: Schema, items: Schema) -> Reader:
    def read(value: Any) -> list[Any]:
        if type(value) is not list or None in value:
            raise UnusualError
        return list(map(inner, value))

    _READERS[schema] = read
    inner = reader_of(items)
    return read


def _map(schema: Schema, items: Schema) -> Reader:
    def read(value: Any) -> Json:
        if type(value) is not dict:
            raise UnusualError
        return {key: inner(item) for key, item in value.items()}

    _READERS[schema] = read
    inner = reader_of(items)
    return read


def _unusual(_: Any) -> Any:
    raise UnusualError


def _anything(value: Any) -> Any:
    return value


def _of(kind: type[Read]) -> Callable[[Any], Read]:
    def read(value: Any) -> Read:
        if type(value) is not kind:
            raise UnusualError
        return value

    return read


def _integer(bits: int) -> Reader:
    smallest, largest = -(1 << bits), (1 << bits) - 1

    def read(value: Any) -> int:
        if type(value) is not int or not smallest <= value <= largest:
            raise UnusualError
        return value

    return read


_int32: Final = _integer(31)


def _int_or_string(value: Any) -> Any:
    return value if type(value) is str else _int32(value)


def _number(value: Any) -> Any:
    if type(value) is not int and type(value) is not float:
        raise UnusualError
    return value


def _quantity(value: Any) -> str:
    if type(value) is not str and type(value) is not int:
        raise UnusualError
    return _canonical(value)


@lru_cache(maxsize=CACHE_SIZE)
def _canonical(value: str | int) -> str:
    try:
        return canonical(parse_quantity(value))
    except QuantityError:
        raise UnusualError from None


def _bytes(value: Any) -> str:
    if type(value) is not str:
        raise UnusualError
    try:
        return canonical_base64(value)
    except IllegalBase64Error:
        raise UnusualError from None


def _time(value: Any) -> str:
    if type(value) is not str:
        raise UnusualError
    return _instant(value)


def _micro_time(value: Any) -> str:
    if type(value) is not str:
        raise UnusualError
    try:
        return format_micro_time(read_micro_time(value))
    except ValueError:
        raise UnusualError from None


@text_cache(maxsize=CACHE_SIZE)
def _instant(text: str) -> str:
    try:
        return format_timestamp(read_time(text))
    except ValueError:
        raise UnusualError from None


_SCALARS: Final[dict[Type, Reader]] = {
    Type.STRING: _of(str),
    Type.BYTES: _bytes,
    Type.BOOLEAN: _of(bool),
    Type.INT32: _int32,
    Type.INT64: _integer(63),
    Type.NUMBER: _number,
    Type.INT_OR_STRING: _int_or_string,
    Type.QUANTITY: _quantity,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
    Type.ANY: _anything,
}
