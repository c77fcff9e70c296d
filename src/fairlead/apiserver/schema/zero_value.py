"""Zero values that the API server always encodes, even if the client omitted them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from fairlead.apiserver.schema.model import Schema, Type, Zero

CACHE_SIZE: Final = 1 << 14
_PLAIN: Final = {Type.STRING: "", Type.BOOLEAN: False}
_NUMBERS: Final = (Type.INT32, Type.INT64, Type.NUMBER)


@lru_cache(maxsize=CACHE_SIZE)
def emitted(schema: Schema) -> tuple[tuple[str, Schema | None], ...]:
    """Return (name, type) of each field that is always encoded, even if it is not set.

    The type is None if the field is encoded as null.
    """
    shown: list[tuple[str, Schema | None]] = []
    for key, field in schema.fields.items():
        if field.zero is Zero.EMIT:
            shown.append((key, field.schema))
        elif field.zero is Zero.NULL:
            shown.append((key, None))
    return tuple(shown)


def zero_value(schema: Schema) -> Any:
    """Return the zero value of a type as a JSON value; None means null."""
    if schema.type is Type.OBJECT:
        return {key: inner and zero_value(inner) for key, inner in emitted(schema)}
    if schema.type in _NUMBERS or schema.type is Type.INT_OR_STRING:
        return 0
    if schema.type is Type.QUANTITY:
        return "0"
    return _PLAIN.get(schema.type)
