"""The wire format: a message is a sequence of numbered fields.

A field is a key (its number, and how its value is laid out) and the value: a varint, eight or
four bytes, or a length and as many bytes.

upstream: protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

VARINT: Final = 0
EIGHT_BYTES: Final = 1
BYTES: Final = 2
FOUR_BYTES: Final = 5

_VARINT_BYTES_MAX: Final = 10
_FIXED: Final = {EIGHT_BYTES: 8, FOUR_BYTES: 4}


class WireError(ValueError):
    """Bytes that are no message; the text is upstream's."""


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field in order: an int for a varint, bytes for everything else.

    Raises WireError.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, layout = key >> 3, key & 7
        if number == 0:
            raise WireError(f"proto: illegal tag 0 (wire type {layout})")
        if layout == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        size, at = _size(message, at, layout)
        if at + size > len(message):
            raise WireError("unexpected EOF")
        yield number, message[at : at + size]
        at += size


def _size(message: bytes, at: int, layout: int) -> tuple[int, int]:
    if layout == BYTES:
        return _varint(message, at)
    if layout not in _FIXED:
        raise WireError(f"proto: illegal wireType {layout}")
    return _FIXED[layout], at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the least first, and where it ends."""
    value = 0
    for place, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    if len(message) - at < _VARINT_BYTES_MAX:
        raise WireError("unexpected EOF")
    raise WireError("proto: integer overflow")


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
