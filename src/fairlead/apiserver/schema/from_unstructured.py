"""Converts the result of a patch to upstream's types, as runtime.FromUnstructured does.

Upstream does not parse the result of a patch as JSON again, but assigns its values one by one.
Numbers are converted to the type of their field. In an integer field, a whole float becomes an
integer. In a 32-bit field, an integer of more than 32 bits loses its upper half.

upstream: apimachinery/pkg/runtime/converter.go:fromUnstructured
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.schema.model import Schema, Type

_LOW: Final = 1 << 31
_HALF: Final = 1 << 32
_INT64: Final = 1 << 63


def restored(schema: Schema, value: Any) -> Any:
    """Return `value` with its numbers converted to the types of their fields."""
    inner = schema.items
    match value:
        case dict() if schema.type is Type.OBJECT:
            fields = schema.fields
            return {
                key: restored(fields[key].schema, item) if key in fields else item
                for key, item in value.items()
            }
        case dict() if inner is not None:
            return {key: restored(inner, item) for key, item in value.items()}
        case list() if inner is not None:
            return [restored(inner, item) for item in value]
        case dict() | list():
            return value
        case _:
            return _number(schema, value)


def _number(schema: Schema, value: Any) -> Any:
    if schema.type not in (Type.INT32, Type.INT64) or isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        # On amd64, Go converts a float that exceeds an int64 to the smallest int64.
        value = int(value) if abs(value) < _INT64 else -_INT64
    if isinstance(value, int) and schema.type is Type.INT32 and abs(value) <= _INT64:
        return (value + _LOW) % _HALF - _LOW
    return value
