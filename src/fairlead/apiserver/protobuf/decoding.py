r"""Decoding: a protobuf message as the JSON value that upstream would make of it.

    k8s\0 | Unknown{typeMeta: {apiVersion, kind}, raw: the object}

Texts, numbers and objects lie in the message as protobuf has them; instants, quantities and the
like are small messages there and texts in JSON. What is left at its zero value is told apart from
what was set by the schema, as in JSON.

upstream: apimachinery/pkg/runtime/serializer/protobuf/protobuf.go:Decode
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from fairlead.api.nesting import TOO_DEEP, is_too_deep
from fairlead.api.timestamp import (
    NANOSECONDS_PER_SECOND,
    format_micro_time,
    format_timestamp,
)
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.protobuf.wire import WireError, fields
from fairlead.apiserver.schema.decoding import decoded as in_canonical_form
from fairlead.apiserver.schema.json_text import parse_json
from fairlead.apiserver.schema.model import Schema, Type, schema_of, schemas

Json = dict[str, Any]
# Field numbers -> names; an inner table is a message that JSON does not nest.
Numbers = Mapping[str, Any]

MAGIC: Final = b"k8s\x00"
_GZIP: Final = 16 + zlib.MAX_WBITS


def decode(body: bytes) -> Json:
    """The object in `body`, saying what it is.

    Raises ApiError: 400 for what is no message, 415 for kinds of which no numbers are known.
    """
    if not body.startswith(MAGIC):
        raise bad_request(
            "the object provided is unrecognized (must be of type Unknown): provided data does not "
            f"appear to be a protobuf message, expected prefix {list(MAGIC)}"
        )
    try:
        return _enveloped(body[len(MAGIC) :])
    except RecursionError:  # schemas alone stand in schemas
        raise bad_request(f"the object provided is unrecognized: {TOO_DEEP}") from None
    except (WireError, UnicodeDecodeError, ValueError, struct.error) as cause:
        shown = body[:30].hex() + (" ..." if len(body) > 30 else "")
        raise bad_request(f"the object provided is unrecognized: {cause} ({shown})") from None


@cache
def _numbers() -> Mapping[str, Numbers]:
    path = files("fairlead.apiserver.protobuf").joinpath("data", "numbers.json.gz")
    content = zlib.decompress(path.read_bytes(), _GZIP)
    return msgspec.json.decode(content, type=dict[str, dict[str, Any]])


def _enveloped(envelope: bytes) -> Json:
    parts = dict(fields(envelope))
    named = dict(fields(_bytes(parts.get(1, b""))))
    api_version, kind = (_bytes(named.get(part, b"")).decode() for part in (1, 2))
    schema = schema_of(api_version, kind)
    numbers = _numbers().get(schema.definition) if schema else None
    if schema is None or numbers is None:
        raise ApiError(
            "UnsupportedMediaType", 415, f"no protobuf is known of {api_version}, Kind={kind}"
        )
    obj = _message(schema, numbers, _bytes(parts.get(2, b"")))
    told: Json = {"apiVersion": api_version, "kind": kind, **obj}
    if is_too_deep(told):
        raise ValueError(TOO_DEEP)
    canonical: Json = in_canonical_form(schema, told)[0]
    return canonical


def _message(schema: Schema, numbers: Numbers, message: bytes) -> Json:
    """An object's fields; those of messages that JSON does not nest are its own."""
    made: Json = {}
    for number, value in fields(message):
        name = numbers.get(str(number))
        if isinstance(name, dict):
            made |= _message(schema, name, _bytes(value))
        elif name is not None:
            _put(made, name, schema.fields[name].schema, value)
    return made


def _put(made: Json, name: str, schema: Schema, value: Any) -> None:
    """Set or extend a field: lists and maps come item by item."""
    match schema.type:
        case Type.LIST if schema.items is not None:
            made.setdefault(name, []).append(_value(schema.items, value))
        case Type.MAP if schema.items is not None:
            entry = dict(fields(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            made.setdefault(name, {})[key] = _entry(schema.items, entry.get(2))
        case _:
            made[name] = _value(schema, value)


def _entry(schema: Schema, value: Any) -> Any:
    """A map's value; a list is wrapped into a message of its own, empty values are left out."""
    if schema.type is Type.LIST and schema.items is not None:
        items = fields(_bytes(value or b""))
        return [_value(schema.items, item) for _, item in items]
    if value is None:
        value = 0 if schema.type in _VARINTS else b""
    return _value(schema, value)


def _value(schema: Schema, value: Any) -> Any:
    union = _UNIONS.get(schema.definition)
    if union is not None:
        return union(_bytes(value))
    if schema.type is Type.OBJECT:
        numbers = _numbers().get(schema.definition, {})
        return _message(schema, numbers, _bytes(value))
    if schema.type in _VARINTS:
        return _VARINTS[schema.type](_varint(value))
    return _READ[schema.type](_bytes(value))


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("proto: wrong wireType")
    return value


def _varint(value: Any) -> int:
    if not isinstance(value, int):
        raise WireError("proto: wrong wireType")
    return value


def _signed(value: int) -> int:
    """Negative numbers are sent as their two's complement of 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _instant(message: bytes) -> int | None:
    """ns since 1970, None for an instant that was never set."""
    parts = dict(fields(message))
    seconds, nanoseconds = (_signed(_varint(parts.get(number, 0))) for number in (1, 2))
    if not seconds and not nanoseconds:
        return None
    return seconds * NANOSECONDS_PER_SECOND + nanoseconds


def _time(message: bytes) -> str | None:
    instant = _instant(message)
    return None if instant is None else format_timestamp(instant)


def _micro_time(message: bytes) -> str | None:
    instant = _instant(message)
    return None if instant is None else format_micro_time(instant)


def _quantity(message: bytes) -> str:
    return _bytes(dict(fields(message)).get(1, b"0")).decode()


def _int_or_string(message: bytes) -> int | str:
    parts = dict(fields(message))
    if parts.get(1):
        return _bytes(parts.get(3, b"")).decode()
    return _signed(_varint(parts.get(2, 0)))


def _any(message: bytes) -> Any:
    """JSON in a message with one field."""
    raw = _bytes(dict(fields(message)).get(1, b""))
    return parse_json(raw) if raw else None


# --- what is one of several things in a definition's schema ---------------------------------


def _schema(message: bytes) -> Json:
    schema = schemas().of_definition(f"{_EXTENSIONS}.JSONSchemaProps")
    return _message(schema, _numbers()[schema.definition], message)


def _schema_or_schemas(message: bytes) -> Any:
    parts = list(fields(message))
    several = [_schema(_bytes(value)) for number, value in parts if number == 2]
    return several or next((_schema(_bytes(value)) for _, value in parts), None)


def _schema_or_truth(message: bytes) -> Any:
    parts = dict(fields(message))
    return _schema(_bytes(parts[2])) if 2 in parts else bool(parts.get(1))


def _schema_or_texts(message: bytes) -> Any:
    parts = list(fields(message))
    texts = [_bytes(value).decode() for number, value in parts if number == 2]
    return texts or next((_schema(_bytes(value)) for _, value in parts), None)


_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_UNIONS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_schemas,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_truth,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_texts,
    f"{_EXTENSIONS}.CustomResourceSubresourceStatus": lambda _: {},
}
_VARINTS: Final[Mapping[Type, Callable[[int], Any]]] = {
    Type.INT32: _signed,
    Type.INT64: _signed,
    Type.BOOLEAN: bool,
}
_READ: Final[Mapping[Type, Callable[[bytes], Any]]] = {
    Type.STRING: bytes.decode,
    Type.BYTES: lambda value: base64.b64encode(value).decode(),
    Type.NUMBER: lambda value: struct.unpack("<d", value)[0],
    Type.QUANTITY: _quantity,
    Type.INT_OR_STRING: _int_or_string,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
    Type.ANY: _any,
}
