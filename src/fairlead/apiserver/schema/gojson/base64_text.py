"""Base64 as Go's encoding/base64 decodes it: line breaks are ignored.

upstream: encoding/base64/base64.go:decodeQuantum
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS: Final = b"\r\n"
_PADDING: Final = ord("=")
_QUANTUM: Final = 4


class IllegalBase64Error(ValueError):
    """The text is not base64."""

    def __init__(self, at: int) -> None:
        """`at` is the offset of the error in bytes."""
        super().__init__(f"illegal base64 data at input byte {at}")
        self.at = at


def canonical_base64(text: str) -> str:
    """Decode `text` from base64, and return the bytes encoded again, without line breaks.

    Raises IllegalBase64Error if `text` is not base64.
    """
    plain = text.translate(_WITHOUT_LINE_ENDS) if "\n" in text or "\r" in text else text
    try:
        return base64.b64encode(base64.b64decode(plain, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise IllegalBase64Error(_illegal_at(text.encode())) from None


_WITHOUT_LINE_ENDS: Final = dict.fromkeys(_LINE_ENDS)


def _illegal_at(text: bytes) -> int:
    read = 0  # The number of characters that were read of the current group of four.
    for at, one in enumerate(text):
        if one in _LINE_ENDS:
            continue
        if one in _ALPHABET:
            read = (read + 1) % _QUANTUM
        elif one == _PADDING and read > 1:
            return _illegal_after(text, at + 1, missing=_QUANTUM - 1 - read)
        else:
            return at
    # Upstream subtracts the length of the incomplete group, even if it contains line ends.
    return len(text) - read


def _illegal_after(text: bytes, at: int, missing: int) -> int:
    """Return the offset of the error, which is in the padding or after the padding.

    `at` is the offset after the first padding character, and `missing` is the number of padding
    characters that must follow.
    """
    for _ in range(missing):
        at = _past_line_ends(text, at)
        if at == len(text):
            return at
        if text[at] != _PADDING:
            return at - 1
        at += 1
    return _past_line_ends(text, at)


def _past_line_ends(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in _LINE_ENDS:
        at += 1
    return at
