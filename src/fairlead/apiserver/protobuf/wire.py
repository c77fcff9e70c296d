"""The wire format: a message is a sequence of numbered fields.

A field is a key (its number, and how its value is laid out) and the value: a varint, eight or
four bytes, or a length and as many bytes.

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

# How a field may be laid out, and what a refusal calls it.
Layout = tuple[tuple[int, ...], str]


class WireError(ValueError):
    """Bytes that are no message; the text is upstream's."""


def fields(
    message: bytes, name: str = "", known: Mapping[int, Layout] | None = None
) -> Iterator[tuple[int, Any]]:
    """Number and value of each field in order: an int for a varint, bytes for everything else.

    Of a message that is called `name`; other fields than those `known` are passed over. Raises
    WireError.
    """
    # upstream: a generated.pb.go: Unmarshal
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        number, layout = signed(key >> 3, 32), key & 7
        if layout == _END_OF_GROUP:
            raise WireError(f"proto: {name}: wiretype end group for non-group")
        if number <= 0:
            raise WireError(f"proto: {name}: illegal tag {number} (wire type {key})")
        if known is not None and number not in known:
            at = _end_of_unknown(message, start)
            continue
        if known is not None and layout not in known[number][0]:
            raise WireError(f"proto: wrong wireType = {layout} for field {known[number][1]}")
        value, at = _read(message, at, layout)
        yield number, value


def _read(message: bytes, at: int, layout: int) -> tuple[Any, int]:
    if layout == VARINT:
        return _varint(message, at)
    size, at = _size(message, at, layout)
    if at + size > len(message):
        raise WireError("unexpected EOF")
    return message[at : at + size], at + size


def _size(message: bytes, at: int, layout: int) -> tuple[int, int]:
    if layout in _FIXED:
        return _FIXED[layout], at
    if layout != BYTES:
        raise WireError(f"proto: illegal wireType {layout}")
    size, at = _varint(message, at)
    if at + size > _LENGTH_MAX:
        raise WireError("proto: negative length found during unmarshaling")
    return size, at


def _end_of_unknown(message: bytes, at: int) -> int:
    """Where a field ends that nobody knows, with all that its group holds if it is one."""
    # upstream: a generated.pb.go: skipGenerated
    depth = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 3:  # a group begins
                depth += 1
            case 4:  # and ends
                depth -= 1
            case 0:
                _, at = _varint(message, at)
            case layout:
                size, at = _size(message, at, layout)
                at += size
        if depth == 0:
            break
    if depth or at > len(message):
        raise WireError("unexpected EOF")
    return at


def signed(value: int, bits: int) -> int:
    """A number as two's complement has it, of which the lower `bits` count."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of 64 bits in groups of seven, the least first, and where it ends."""
    value = 0
    for place, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & ((1 << 64) - 1), at + place + 1
    if len(message) - at < _VARINT_BYTES_MAX:
        raise WireError("unexpected EOF")
    raise WireError("proto: integer overflow")


def varints(packed: bytes) -> Iterator[int]:
    """The numbers of a list that came as one value. Raises WireError."""
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def varint(value: int) -> bytes:
    """A number that is not negative in groups of seven bits, the least first."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def number_field(number: int, value: int) -> bytes:
    """A field with a number or a truth value."""
    return varint(number << 3 | VARINT) + varint(int(value))


def bytes_field(number: int, value: bytes) -> bytes:
    """A field with a text in UTF-8, or with a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value
