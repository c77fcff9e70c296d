"""What upstream's language calls a type, because its decoding errors say so."""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.schema.model import Schema, Type

_NAMES: Final = {
    Type.STRING: "string",
    Type.BYTES: "[]uint8",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.NUMBER: "float64",
    Type.BOOLEAN: "bool",
    Type.QUANTITY: "resource.Quantity",
    Type.INT_OR_STRING: "intstr.IntOrString",
    Type.TIME: "string",
    Type.MICRO_TIME: "string",
    Type.ANY: "map[string]interface {}",
}


def go_type(schema: Schema) -> str:
    """`int32`, `[]v1.Container`, `map[string]string`."""
    if schema.type is Type.OBJECT:
        return schema.short_name
    if schema.items is None:
        return _NAMES[schema.type]
    inner = go_type(schema.items)
    return f"[]{inner}" if schema.type is Type.LIST else f"map[string]{inner}"


def go_kind(value: Any) -> str:
    """What kind of value a decoded JSON value is: `map`, `slice`, `string`, `int64`."""
    match value:
        case dict():
            return "map"
        case list():
            return "slice"
        case str():
            return "string"
        case bool():
            return "bool"
        case float():
            return "float64"
        case _:
            return "int64"
