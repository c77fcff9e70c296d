r"""Decodes a protobuf message into the JSON value that upstream would decode from it.

A request body is a prefix and a message that contains the encoded object:

    k8s\0 | Unknown{typeMeta: {apiVersion, kind}, raw: the object}

Timestamps, quantities and some other types are messages in protobuf and strings in JSON.

upstream: apimachinery/pkg/runtime/serializer/protobuf/protobuf.go:Decode
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.nesting import TOO_DEEP, is_too_deep
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_micro_time, format_timestamp
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.protobuf.wire import (
    BYTES,
    EIGHT_BYTES,
    VARINT,
    Layout,
    WireError,
    fields,
    signed,
    varints,
)
from fairlead.apiserver.schema.decoder import decoded as in_canonical_form
from fairlead.apiserver.schema.gojson.json_text import parse_json
from fairlead.apiserver.schema.model import Schema, Type, schema_of, schemas
from fairlead.apiserver.schema.openapi_types import documented_types

# --- values --------------------------------------------------------------------------------------

# upstream: apimachinery/pkg/apis/meta/v1/time_proto.go, pkg/api/resource, pkg/util/intstr

_INVALID_BYTES: Final = re.compile("[\udc80-\udcff]")
_TIMESTAMP: Final[Mapping[int, Layout]] = {1: ((VARINT,), "Seconds"), 2: ((VARINT,), "Nanos")}
_ONE_TEXT: Final[Mapping[int, Layout]] = {1: ((BYTES,), "String")}
_ONE_RAW: Final[Mapping[int, Layout]] = {1: ((BYTES,), "Raw")}
_INT_OR_STRING: Final[Mapping[int, Layout]] = {
    1: ((VARINT,), "Type"),
    2: ((VARINT,), "IntVal"),
    3: ((BYTES,), "StrVal"),
}


def text(value: bytes) -> str:
    """Decode UTF-8 text; invalid bytes are replaced by U+FFFD."""
    # upstream: encoding/json of strings that were read from protobuf
    return _INVALID_BYTES.sub("\ufffd", value.decode(errors="surrogateescape"))


def _int64(value: int) -> int:
    return signed(value, 64)


def _int32(value: int) -> int:
    return signed(value, 32)


def _timestamp(message: bytes) -> tuple[int, int]:
    """Return (seconds since 1970, nanoseconds) of a Timestamp message."""
    parts = dict(fields(message, "Timestamp", _TIMESTAMP))
    return _int64(parts.get(1, 0)), _int32(parts.get(2, 0))


def _time(message: bytes) -> str | None:
    """Return a Timestamp message as text in whole seconds; None if `message` is empty."""
    # upstream: apimachinery/pkg/apis/meta/v1/time_proto.go:Unmarshal
    return format_timestamp(_timestamp(message)[0] * NANOSECONDS_PER_SECOND) if message else None


def _micro_time(message: bytes) -> str | None:
    if not message:
        return None
    seconds, nanoseconds = _timestamp(message)
    return format_micro_time(seconds * NANOSECONDS_PER_SECOND + nanoseconds)


def _quantity(message: bytes) -> str:
    return text(dict(fields(message, "Quantity", _ONE_TEXT)).get(1, b"0"))


def _int_or_string(message: bytes) -> int | str:
    parts = dict(fields(message, "IntOrString", _INT_OR_STRING))
    return text(parts.get(3, b"")) if parts.get(1) else _int32(parts.get(2, 0))


def _any(message: bytes) -> Any:
    """Return the JSON value in a RawExtension message; None if the message has no content."""
    raw = dict(fields(message, "RawExtension", _ONE_RAW)).get(1, b"")
    return parse_json(raw) if raw else None


OF_VARINT: Final[Mapping[Type, Callable[[int], Any]]] = {
    Type.INT32: _int32,
    Type.INT64: _int64,
    Type.BOOLEAN: bool,
}
OF_BYTES: Final[Mapping[Type, Callable[[bytes], Any]]] = {
    Type.STRING: text,
    Type.BYTES: lambda value: base64.b64encode(value).decode(),
    Type.NUMBER: lambda value: struct.unpack("<d", value)[0],
    Type.QUANTITY: _quantity,
    Type.INT_OR_STRING: _int_or_string,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
    Type.ANY: _any,
}


# --- messages ------------------------------------------------------------------------------------

# upstream: staging/src/k8s.io/api/*/*/generated.proto

# Field numbers -> names. A nested table in place of a name describes a message whose fields belong
# to the outer object in JSON.
FieldNumbers = Mapping[str, Any]

_GZIP: Final = 16 + zlib.MAX_WBITS
_INITIALS: Final = re.compile(
    "(?:api|aws|ca|cidr|csi|dns|fc|fs|gce|http|id|ip|iscsi|nfs|pid|qos|rbd|tcp|tls|tty|uid|url)"
    "(?=[A-Z]|$)"
)


class FieldType(Struct, frozen=True):
    """A field of a message.

    If `inner` is not None, the field contains a message of the type `inner`. JSON has no nested
    object for this message: the fields of the message are fields of the outer object.
    """

    name: str
    schema: Schema
    inner: MessageType | None = None


class MessageType(Struct, frozen=True):
    """The fields of a message by number; `field_order` is the order of the fields in JSON."""

    name: str
    field_types: Mapping[int, FieldType]
    layouts: Mapping[int, Layout]
    field_order: tuple[str, ...]


@cache
def message_type(schema: Schema) -> MessageType:
    """Return the message type of an object's schema."""
    name = schema.definition.rpartition(".")[2]
    return _message_type(name, schema, numbers().get(schema.definition, {}))


def _message_type(name_: str, schema: Schema, by_number: FieldNumbers) -> MessageType:
    field_types: dict[int, FieldType] = {}
    layouts: dict[int, Layout] = {}
    for number, name in by_number.items():
        if isinstance(name, dict):
            field_types[int(number)] = FieldType("", schema, _message_type(name_, schema, name))
            layouts[int(number)] = ((BYTES,), name_)
        else:
            field = schema.fields[name].schema
            field_types[int(number)] = FieldType(name, field)
            layouts[int(number)] = (_layouts(field), _go_name(name, field))
    return MessageType(name_, field_types, layouts, tuple(schema.fields))


def _layouts(schema: Schema) -> tuple[int, ...]:
    """Return the allowed wire types of a field; a list of numbers may also be packed into bytes."""
    if schema.type is Type.LIST and schema.items is not None:
        item_layouts = _layouts(schema.items)
        return item_layouts if BYTES in item_layouts else (*item_layouts, BYTES)
    if schema.type is Type.NUMBER:
        return (EIGHT_BYTES,)
    return (VARINT,) if schema.type in OF_VARINT else (BYTES,)


def _go_name(name: str, schema: Schema) -> str:
    """Return the approximate Go name of a field; errors about malformed messages quote it."""
    if name == "metadata" and schema.type is Type.OBJECT:
        return schema.definition.rpartition(".")[2]
    initials = _INITIALS.match(name)
    end = initials.end() if initials else 1
    return name[:end].upper() + name[end:]


@cache
def numbers() -> Mapping[str, FieldNumbers]:
    """Return the field numbers of all types, keyed by type name (`io.k8s.api.core.v1.Pod`)."""
    path = files("fairlead.apiserver.protobuf").joinpath("data", "numbers.json.gz")
    content = zlib.decompress(path.read_bytes(), _GZIP)
    found = msgspec.json.decode(content, type=dict[str, dict[str, Any]])
    return {**documented_types().numbers, **found}


MAGIC: Final = b"k8s\x00"

# The envelope, which is the same for all kinds.
_TYPE: Final = 1
_RAW: Final = 2
_ENVELOPE: Final[Mapping[int, Layout]] = {
    _TYPE: ((BYTES,), "TypeMeta"),
    _RAW: ((BYTES,), "Raw"),
    3: ((BYTES,), "ContentEncoding"),
    4: ((BYTES,), "ContentType"),
}
_TYPE_META: Final[Mapping[int, Layout]] = {1: ((BYTES,), "APIVersion"), 2: ((BYTES,), "Kind")}


def decode(body: bytes, api_version: str = "", kind: str = "") -> Json:
    """Return the object in `body`.

    `api_version` and `kind` are used if the envelope does not contain them. For a kind without a
    message type, only apiVersion and kind are returned. Raises ApiError 400 for a malformed
    message.
    """
    try:
        envelope_version, envelope_kind, raw = _envelope(body)
    except WireError as cause:
        shown = body[:30].hex() + (" ..." if len(body) > 30 else "")
        raise bad_request(f"the object provided is unrecognized: {cause} ({shown})") from None
    api_version, kind = _valid_version(envelope_version) or api_version, envelope_kind or kind
    schema = schema_of(api_version, kind)
    if schema is None or schema.definition not in numbers():
        return {"apiVersion": api_version, "kind": kind}
    problem = TOO_DEEP
    try:
        decoded: Json = {
            "apiVersion": api_version,
            "kind": kind,
            **_message(message_type(schema), raw),
        }
        if not is_too_deep(decoded):
            canonical: Json = in_canonical_form(schema, decoded)[0]
            return canonical
    except RecursionError:  # possible only for JSONSchemaProps, the only recursive type
        pass
    except ValueError as cause:
        problem = str(cause)
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:transformDecodeError
    version = api_version.rpartition("/")[2]
    raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')


def _valid_version(api_version: str) -> str:
    """Return an apiVersion in canonical form; "" if it is malformed."""
    # upstream: apimachinery/pkg/runtime/schema/group_version.go:FromAPIVersionAndKind
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        return ""
    return api_version if group else version


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    """Return (apiVersion, kind, encoded object) from the envelope in `body`.

    Raises WireError if the envelope is malformed.
    """
    if not body:
        raise WireError("empty data")
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise WireError(
            f"provided data does not appear to be a protobuf message, expected prefix [{expected}]"
        )
    if body == MAGIC:
        raise WireError("empty body")
    type_meta = {1: b"", 2: b""}
    raw = b""
    for number, value in fields(body[len(MAGIC) :], "Unknown", _ENVELOPE):
        if number == _TYPE:
            type_meta |= dict(fields(value, "TypeMeta", _TYPE_META))
        elif number == _RAW:
            raw = value
    return text(type_meta[1]), text(type_meta[2]), raw


def _message(message_type_: MessageType, message: bytes, partial: Json | None = None) -> Json:
    """Decode a message into an object with the fields in the schema's order.

    `partial` contains the fields of the same object that were decoded earlier. The result contains
    these fields too.
    """
    obj: Json = {} if partial is None else partial
    for number, value in fields(message, message_type_.name, message_type_.layouts):
        slot = message_type_.field_types[number]
        if slot.inner is not None:
            obj = _message(slot.inner, value, obj)
        else:
            _set_field(obj, slot.name, slot.schema, value)
    return {name: obj[name] for name in message_type_.field_order if name in obj}


def _set_field(obj: Json, name: str, schema: Schema, value: Any) -> None:
    """Decode `value` into the field `name` of `obj`.

    If a message contains a list, map or object in several parts, each decoded part is added to what
    the field already contains.
    """
    match schema.type:
        case Type.LIST if schema.items is not None:
            obj.setdefault(name, []).extend(_items(schema.items, value))
        case Type.MAP if schema.items is not None:
            entry = dict(fields(_bytes(value)))
            key = text(_bytes(entry.get(1, b"")))
            obj.setdefault(name, {})[key] = _entry(schema.items, entry.get(2))
        case Type.OBJECT if schema.definition not in _UNIONS:
            obj[name] = _message(message_type(schema), value, obj.get(name))
        case _:
            obj[name] = _value(schema, value)


def _items(schema: Schema, value: Any) -> list[Any]:
    """Return the list items in one encoded value: one item, or all numbers of a packed list."""
    if schema.type not in OF_VARINT or not isinstance(value, bytes):
        return [_value(schema, value)]
    return [_value(schema, item) for item in varints(value)]


def _entry(schema: Schema, value: Any) -> Any:
    """Return the decoded value of a map entry; if `value` is None, return the zero value.

    `schema` is the schema of the decoded value. If the schema is a list, `value` is a message that
    contains the items of the list.
    """
    if schema.type is Type.LIST and schema.items is not None:
        items = fields(_bytes(value or b""))
        return [_value(schema.items, item) for _, item in items]
    if value is None:
        value = 0 if schema.type in OF_VARINT else b""
    return _value(schema, value)


def _value(schema: Schema, value: Any) -> Any:
    union = _UNIONS.get(schema.definition)
    if union is not None:
        return union(_bytes(value))
    if schema.type is Type.OBJECT:
        return _message(message_type(schema), _bytes(value))
    if schema.type in OF_VARINT:
        return OF_VARINT[schema.type](_varint(value))
    return OF_BYTES[schema.type](_bytes(value))


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("proto: wrong wireType")
    return value


def _varint(value: Any) -> int:
    if not isinstance(value, int):
        raise WireError("proto: wrong wireType")
    return value


# --- unions in JSONSchemaProps --------------------------------------------------------------


def _schema(message: bytes) -> Json:
    schema = schemas().of_definition(f"{_EXTENSIONS}.JSONSchemaProps")
    return _message(message_type(schema), message)


def _schema_or_schemas(message: bytes) -> Any:
    parts = list(fields(message))
    several = [_schema(_bytes(value)) for number, value in parts if number == 2]
    return several or next((_schema(_bytes(value)) for _, value in parts), None)


def _schema_or_truth(message: bytes) -> Any:
    parts = dict(fields(message))
    return _schema(_bytes(parts[2])) if 2 in parts else bool(parts.get(1))


def _schema_or_texts(message: bytes) -> Any:
    parts = list(fields(message))
    texts = [text(_bytes(value)) for number, value in parts if number == 2]
    return texts or next((_schema(_bytes(value)) for _, value in parts), None)


_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_UNIONS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_schemas,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_truth,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_texts,
    f"{_EXTENSIONS}.CustomResourceSubresourceStatus": lambda _: {},
}
