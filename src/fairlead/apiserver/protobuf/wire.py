"""The protobuf wire format: a message is a sequence of numbered fields.

A field is a key (field number and wire type) and a value. The wire type states the form of the
value: a varint, four bytes, eight bytes, or a length that is followed by that many bytes.

upstream: protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

VARINT: Final = 0
EIGHT_BYTES: Final = 1
BYTES: Final = 2
FOUR_BYTES: Final = 5
_END_OF_GROUP: Final = 4

_VARINT_BYTES_MAX: Final = 10
_FIXED: Final = {EIGHT_BYTES: 8, FOUR_BYTES: 4}
_LENGTH_MAX: Final = (1 << 63) - 1

# Of one field: its allowed wire types, and its name in errors.
Layout = tuple[tuple[int, ...], str]


class WireError(ValueError):
    """Raised for a malformed message; the error text is upstream's."""


def fields(
    message: bytes, name: str = "", known: Mapping[int, Layout] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of each field in order; a varint is an int, any other value is bytes.

    `name` is the message's name in errors. If `known` is given, only the fields in `known` are
    yielded. Raises WireError if `message` is malformed.
    """
    # upstream: a generated.pb.go: Unmarshal
    position = 0
    while position < len(message):
        start = position
        key, position = _varint(message, position)
        number, layout = signed(key >> 3, 32), key & 7
        if layout == _END_OF_GROUP:
            raise WireError(f"proto: {name}: wiretype end group for non-group")
        if number <= 0:
            raise WireError(f"proto: {name}: illegal tag {number} (wire type {key})")
        if known is not None and number not in known:
            position = _end_of_unknown(message, start)
            continue
        if known is not None and layout not in known[number][0]:
            raise WireError(f"proto: wrong wireType = {layout} for field {known[number][1]}")
        value, position = _read(message, position, layout)
        yield number, value


def _read(message: bytes, position: int, layout: int) -> tuple[Any, int]:
    if layout == VARINT:
        return _varint(message, position)
    size, position = _size(message, position, layout)
    if position + size > len(message):
        raise WireError("unexpected EOF")
    return message[position : position + size], position + size


def _size(message: bytes, position: int, layout: int) -> tuple[int, int]:
    if layout in _FIXED:
        return _FIXED[layout], position
    if layout != BYTES:
        raise WireError(f"proto: illegal wireType {layout}")
    size, position = _varint(message, position)
    if position + size > _LENGTH_MAX:
        raise WireError("proto: negative length found during unmarshaling")
    return size, position


def _end_of_unknown(message: bytes, position: int) -> int:
    """Return the end of the unknown field at `position`; the field may be a group of fields."""
    # upstream: a generated.pb.go: skipGenerated
    depth = 0
    while position < len(message):
        key, position = _varint(message, position)
        match key & 7:
            case 3:  # a group begins
                depth += 1
            case 4:  # a group ends
                depth -= 1
            case 0:
                _, position = _varint(message, position)
            case layout:
                size, position = _size(message, position, layout)
                position += size
        if depth == 0:
            break
    if depth or position > len(message):
        raise WireError("unexpected EOF")
    return position


def signed(value: int, bits: int) -> int:
    """Return the lower `bits` bits of `value` as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return (64-bit number, end position) of the varint at `position`."""
    value = 0
    for index, byte in enumerate(message[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & ((1 << 64) - 1), position + index + 1
    if len(message) - position < _VARINT_BYTES_MAX:
        raise WireError("unexpected EOF")
    raise WireError("proto: integer overflow")


def varints(packed: bytes) -> Iterator[int]:
    """Yield the numbers of a packed list. Raises WireError if `packed` is malformed."""
    position = 0
    while position < len(packed):
        value, position = _varint(packed, position)
        yield value


def varint(value: int) -> bytes:
    """Return a non-negative number as a varint: groups of seven bits, lowest group first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """Return an encoded field with the number `number`; `value` is an integer or a boolean."""
    return varint(number << 3 | VARINT) + varint(int(value))


def bytes_field(number: int, value: bytes) -> bytes:
    """Return an encoded field with the number `number`; `value` is UTF-8 text or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value
