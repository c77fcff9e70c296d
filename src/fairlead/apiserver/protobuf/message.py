"""Shapes: which field of an object a message has under which number.

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

# Field numbers -> names; an inner table is a message that JSON does not nest.
Numbers = Mapping[str, Any]

_GZIP: Final = 16 + zlib.MAX_WBITS
_INITIALS: Final = re.compile(
    "(?:api|aws|ca|cidr|csi|dns|fc|fs|gce|http|id|ip|iscsi|nfs|pid|qos|rbd|tcp|tls|tty|uid|url)"
    "(?=[A-Z]|$)"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A field of a message: an object's field, or (`inner`) fields that JSON does not nest."""

    name: str
    schema: Schema
    inner: Shape | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A message by the numbers of its fields; `declared` is the order of the object's."""

    name: str
    slots: Mapping[int, Slot]
    layouts: Mapping[int, Layout]
    declared: tuple[str, ...]


@cache
def shape_of(schema: Schema) -> Shape:
    """The shape of messages of an object's type."""
    name = schema.definition.rpartition(".")[2]
    return _shape(name, schema, numbers().get(schema.definition, {}))


def _shape(called: str, schema: Schema, by_number: Numbers) -> Shape:
    slots: dict[int, Slot] = {}
    layouts: dict[int, Layout] = {}
    for number, name in by_number.items():
        if isinstance(name, dict):
            slots[int(number)] = Slot("", schema, _shape(called, schema, name))
            layouts[int(number)] = ((BYTES,), called)
        else:
            field = schema.fields[name].schema
            slots[int(number)] = Slot(name, field)
            layouts[int(number)] = (_layouts(field), _go_field(name, field))
    return Shape(called, slots, layouts, tuple(schema.fields))


def _layouts(schema: Schema) -> tuple[int, ...]:
    """How values are laid out; several numbers may come as one text of bytes."""
    if schema.type is Type.LIST and schema.items is not None:
        of_items = _layouts(schema.items)
        return of_items if BYTES in of_items else (*of_items, BYTES)
    if schema.type is Type.NUMBER:
        return (EIGHT_BYTES,)
    return (VARINT,) if schema.type in OF_VARINT else (BYTES,)


def _go_field(name: str, schema: Schema) -> str:
    """What upstream's types call a field, roughly: refusals of damaged messages say so."""
    if name == "metadata" and schema.type is Type.OBJECT:
        return schema.definition.rpartition(".")[2]
    initials = _INITIALS.match(name)
    end = initials.end() if initials else 1
    return name[:end].upper() + name[end:]


@cache
def numbers() -> Mapping[str, Numbers]:
    """The fields of every type that has messages, by its definition's name."""
    path = files("fairlead.apiserver.protobuf").joinpath("data", "numbers.json.gz")
    content = zlib.decompress(path.read_bytes(), _GZIP)
    return msgspec.json.decode(content, type=dict[str, dict[str, Any]])
