r"""Decoding: a protobuf message as the JSON value that upstream would make of it.

    k8s\0 | Unknown{typeMeta: {apiVersion, kind}, raw: the object}

Texts, numbers and objects lie in the message as protobuf has them; instants, quantities and the
like are small messages there and texts in JSON. What is left at its zero value is told apart from
what was set by the schema, as in JSON.

upstream: apimachinery/pkg/runtime/serializer/protobuf/protobuf.go:Decode
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.nesting import TOO_DEEP, is_too_deep
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.protobuf.message import Shape, numbers, shape_of
from fairlead.apiserver.protobuf.value import OF_BYTES, OF_VARINT, text
from fairlead.apiserver.protobuf.wire import BYTES, Layout, WireError, fields, varints
from fairlead.apiserver.schema.decoding import decoded as in_canonical_form
from fairlead.apiserver.schema.model import Schema, Type, schema_of, schemas

MAGIC: Final = b"k8s\x00"

# Messages that are the same for all kinds.
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
    """The object in `body`, which is of this version and kind unless it says otherwise itself.

    Of what upstream has no message for, only what it says it is. Raises ApiError 400 for what is
    no message.
    """
    try:
        said_version, said_kind, raw = _envelope(body)
    except WireError as cause:
        shown = body[:30].hex() + (" ..." if len(body) > 30 else "")
        raise bad_request(f"the object provided is unrecognized: {cause} ({shown})") from None
    api_version, kind = _version_said(said_version) or api_version, said_kind or kind
    schema = schema_of(api_version, kind)
    if schema is None or schema.definition not in numbers():
        return {"apiVersion": api_version, "kind": kind}
    why = TOO_DEEP
    try:
        told: Json = {"apiVersion": api_version, "kind": kind, **_message(shape_of(schema), raw)}
        if not is_too_deep(told):
            canonical: Json = in_canonical_form(schema, told)[0]
            return canonical
    except RecursionError:  # schemas alone stand in schemas
        pass
    except ValueError as cause:
        why = str(cause)
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:transformDecodeError
    version = api_version.rpartition("/")[2]
    raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _version_said(api_version: str) -> str:
    """An object's version, "" where it is none."""
    # upstream: apimachinery/pkg/runtime/schema/group_version.go:FromAPIVersionAndKind
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        return ""
    return api_version if group else version


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    """What the object in `body` says it is, and its message. Raises WireError."""
    if not body:
        raise WireError("empty data")
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise WireError(
            f"provided data does not appear to be a protobuf message, expected prefix [{expected}]"
        )
    if body == MAGIC:
        raise WireError("empty body")
    named = {1: b"", 2: b""}
    raw = b""
    for number, value in fields(body[len(MAGIC) :], "Unknown", _ENVELOPE):
        if number == _TYPE:
            named |= dict(fields(value, "TypeMeta", _TYPE_META))
        elif number == _RAW:
            raw = value
    return text(named[1]), text(named[2]), raw


def _message(shape: Shape, message: bytes, begun: Json | None = None) -> Json:
    """An object's fields as its type declares them, with what a message before it has `begun`."""
    made: Json = {} if begun is None else begun
    for number, value in fields(message, shape.name, shape.layouts):
        slot = shape.slots[number]
        if slot.inner is not None:
            made = _message(slot.inner, value, made)
        else:
            _put(made, slot.name, slot.schema, value)
    return {name: made[name] for name in shape.declared if name in made}


def _put(made: Json, name: str, schema: Schema, value: Any) -> None:
    """Set or extend a field: lists and maps come item by item, objects perhaps part by part."""
    match schema.type:
        case Type.LIST if schema.items is not None:
            made.setdefault(name, []).extend(_items(schema.items, value))
        case Type.MAP if schema.items is not None:
            entry = dict(fields(_bytes(value)))
            key = text(_bytes(entry.get(1, b"")))
            made.setdefault(name, {})[key] = _entry(schema.items, entry.get(2))
        case Type.OBJECT if schema.definition not in _UNIONS:
            made[name] = _message(shape_of(schema), value, made.get(name))
        case _:
            made[name] = _value(schema, value)


def _items(schema: Schema, value: Any) -> list[Any]:
    """An item of a list, or several numbers in one."""
    if schema.type not in OF_VARINT or not isinstance(value, bytes):
        return [_value(schema, value)]
    return [_value(schema, one) for one in varints(value)]


def _entry(schema: Schema, value: Any) -> Any:
    """A map's value; a list is wrapped into a message of its own, empty values are left out."""
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
        return _message(shape_of(schema), _bytes(value))
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


# --- what is one of several things in a definition's schema ---------------------------------


def _schema(message: bytes) -> Json:
    schema = schemas().of_definition(f"{_EXTENSIONS}.JSONSchemaProps")
    return _message(shape_of(schema), message)


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
