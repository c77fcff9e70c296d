"""Message types: which field of an object has which number.

upstream: staging/src/k8s.io/api/*/*/generated.proto
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from fairlead.apiserver.protobuf.value import OF_VARINT
from fairlead.apiserver.protobuf.wire import BYTES, EIGHT_BYTES, VARINT, Layout
from fairlead.apiserver.schema.model import Schema, Type

# Field numbers -> names; an inner table is a message whose fields JSON does not nest.
FieldNumbers = Mapping[str, Any]

_GZIP: Final = 16 + zlib.MAX_WBITS
_INITIALS: Final = re.compile(
    "(?:api|aws|ca|cidr|csi|dns|fc|fs|gce|http|id|ip|iscsi|nfs|pid|qos|rbd|tcp|tls|tty|uid|url)"
    "(?=[A-Z]|$)"
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a message; with `inner`, its fields are part of the outer object in JSON."""

    name: str
    schema: Schema
    inner: MessageType | None = None


@dataclass(frozen=True, slots=True)
class MessageType:
    """The fields of a message by number; `field_order` is their order in JSON."""

    name: str
    field_types: Mapping[int, FieldType]
    layouts: Mapping[int, Layout]
    field_order: tuple[str, ...]


@cache
def message_type(schema: Schema) -> MessageType:
    """The message type of an object's schema."""
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
    """The wire types of a field's values; lists of numbers may be packed into bytes."""
    if schema.type is Type.LIST and schema.items is not None:
        item_layouts = _layouts(schema.items)
        return item_layouts if BYTES in item_layouts else (*item_layouts, BYTES)
    if schema.type is Type.NUMBER:
        return (EIGHT_BYTES,)
    return (VARINT,) if schema.type in OF_VARINT else (BYTES,)


def _go_name(name: str, schema: Schema) -> str:
    """The field's name in Go, approximately; errors about malformed messages quote it."""
    if name == "metadata" and schema.type is Type.OBJECT:
        return schema.definition.rpartition(".")[2]
    initials = _INITIALS.match(name)
    end = initials.end() if initials else 1
    return name[:end].upper() + name[end:]


@cache
def numbers() -> Mapping[str, FieldNumbers]:
    """The field numbers of all types with messages, by definition name."""
    path = files("fairlead.apiserver.protobuf").joinpath("data", "numbers.json.gz")
    content = zlib.decompress(path.read_bytes(), _GZIP)
    return msgspec.json.decode(content, type=dict[str, dict[str, Any]])
