"""Decodes scalars: strings, numbers, booleans, quantities, timestamps.

The types in `ENDING` have their own UnmarshalJSON upstream. A malformed value of such a type ends
the decoding. A malformed value of a type in `PLAIN` is skipped and reported at the end.

upstream: encoding/json with the UnmarshalJSON of resource.Quantity, metav1.Time, intstr.IntOrString
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NoReturn

from fairlead.api.quantity import NO_QUANTITY, QuantityError, canonical, parse_quantity
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.schema.field_location import FieldLocation
from fairlead.apiserver.schema.gojson.base64_text import IllegalBase64Error, canonical_base64
from fairlead.apiserver.schema.gojson.json_text import json_kind
from fairlead.apiserver.schema.gojson.time_text import InstantError, read_micro_time, read_time
from fairlead.apiserver.schema.gojson.type_name import go_kind, go_type
from fairlead.apiserver.schema.model import Schema, Type

_LIMITS: Final = {
    Type.INT32: (-(1 << 31), (1 << 31) - 1),
    Type.INT64: (-(1 << 63), (1 << 63) - 1),
    Type.BYTES: (0, (1 << 8) - 1),
}
_LARGE: Final = 1e16
_WITHOUT_EXPONENT: Final = 1e21
_WHOLE: Final = Schema(Type.INT32)  # an IntOrString that is not a string
BYTE: Final = Schema(Type.BYTES)  # a byte in a list of bytes


class TypeMismatchError(ValueError):
    """Raised for a value that does not fit the type of its field; the message is upstream's.

    `restoring` is the message that upstream uses instead if the value is in the result of a patch.
    `location` is the location of the value, if it is known.
    """

    def __init__(
        self, text: str, restoring: str = "", location: FieldLocation | None = None
    ) -> None:
        super().__init__(text)
        self.restoring = restoring or text
        self.location = location


def _text(schema: Schema, value: Any, location: FieldLocation) -> str:
    if not isinstance(value, str):
        raise mismatch(schema, value, location)
    return value


def _bytes(schema: Schema, value: Any, location: FieldLocation) -> str:
    text = _text(schema, value, location)
    try:
        return canonical_base64(text)
    except IllegalBase64Error as cause:
        why = str(cause)
        raise TypeMismatchError(why, f"error decoding from json: {why}", location) from None


def _boolean(schema: Schema, value: Any, location: FieldLocation) -> bool:
    if not isinstance(value, bool):
        raise mismatch(schema, value, location)
    return value


def whole_number(schema: Schema, value: Any, location: FieldLocation) -> int:
    """Return `value` if it is an integer within the bounds of `schema.type`.

    Raises TypeMismatchError for any other value.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mismatch(schema, value, location)
    smallest, largest = _LIMITS[schema.type]
    if isinstance(value, float) or not smallest <= value <= largest:
        raise mismatch(schema, value, location, shown=f"number {_number_text(value)}")
    return value


def _number_text(value: float) -> str:
    if isinstance(value, float) and _LARGE <= abs(value) < _WITHOUT_EXPONENT:
        return f"{Decimal(repr(value)):f}"  # the form that upstream's conversion of YAML writes
    return repr(value)  # Upstream quotes the client's text, which usually has this form.


def _number(schema: Schema, value: Any, location: FieldLocation) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mismatch(schema, value, location)
    return value


def _int_or_string(_: Schema, value: Any, location: FieldLocation) -> int | str:
    return value if isinstance(value, str) else whole_number(_WHOLE, value, location)


def _quantity(_: Schema, value: Any, __: FieldLocation) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeMismatchError(NO_QUANTITY)
    try:
        return canonical(parse_quantity(value))
    except QuantityError as cause:
        raise TypeMismatchError(cause.rule) from None


def _time(schema: Schema, value: Any, location: FieldLocation) -> str:
    try:
        return format_timestamp(read_time(_text(schema, value, location)))
    except InstantError as cause:
        raise TypeMismatchError(str(cause)) from None


def _micro_time(schema: Schema, value: Any, location: FieldLocation) -> str:
    try:
        return format_micro_time(read_micro_time(_text(schema, value, location)))
    except InstantError as cause:
        raise TypeMismatchError(str(cause)) from None


def refused(schema: Schema, value: Any, location: FieldLocation) -> NoReturn:
    """Raise TypeMismatchError, because the JSON type of `value` does not fit the type `schema`."""
    raise mismatch(schema, value, location)


ReadSingle = Callable[[Schema, Any, FieldLocation], Any]
PLAIN: Final[dict[Type, ReadSingle]] = {
    Type.STRING: _text,
    Type.BYTES: _bytes,
    Type.BOOLEAN: _boolean,
    Type.INT32: whole_number,
    Type.INT64: whole_number,
    Type.NUMBER: _number,
}
# Types with their own UnmarshalJSON, whose failure ends the decoding.
ENDING: Final[dict[Type, ReadSingle]] = {
    Type.INT_OR_STRING: _int_or_string,
    Type.QUANTITY: _quantity,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
}


def mismatch(
    schema: Schema, value: Any, location: FieldLocation, *, shown: str = ""
) -> TypeMismatchError:
    """Return the error for `value` at `location`; `shown` replaces the description of the value."""
    # upstream: encoding/json UnmarshalTypeError
    what = shown or json_kind(value)
    where = f"struct field {location.struct}.{location.names}" if location.names else "value"
    named = go_type(schema) if schema.type in ENDING else location.type_name(schema)
    if schema is BYTE:
        named = "uint8"
    return TypeMismatchError(
        f"json: cannot unmarshal {what} into Go {where} of type {named}",
        _restoring(schema, value, what, named),
        location,
    )


def _restoring(schema: Schema, value: Any, what: str, named: str) -> str:
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
            return f"json: cannot unmarshal {what} into Go value of type {named}"
        case Type.STRING if kind == "int64":
            return f"cannot convert int64 to {named}"
        case Type.INT32 | Type.INT64 if kind == "float64":
            return f"cannot convert float64 to {named}"
        case _:
            return f"unrecognized type: {go_type(schema)}"
