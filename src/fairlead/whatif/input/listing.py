"""Listing: splits a JSON listing into the texts of its items, without decoding them.

The texts are views of the mapped file, so they need no copy in memory. Most of them are later
decoded directly into typed views, without an intermediate JSON value.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Final

import msgspec

from fairlead.api.json import Json

Bytes = bytes | mmap

_BLOCK_BYTES: Final = 1 << 20  # stays in the cache
_START_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Listing:
    """A List: its head without items, and the items as texts, in order."""

    head: Json
    items: list[msgspec.Raw]


class _List(msgspec.Struct, rename="camel"):
    kind: str
    items: list[msgspec.Raw]
    api_version: Any = None
    metadata: Any = None


_decode: Final = msgspec.json.Decoder(_List).decode


def split(data: Bytes) -> Listing | None:
    """Return the listing in `data`; None if it is not one and must be decoded."""
    if not data[:_START_BYTES].lstrip().startswith(b"{"):
        return None
    try:
        found = _decode(data)
        _require_utf8(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not found.kind.endswith("List"):
        return None
    head = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "metadata": found.metadata,
        "items": [],
    }
    return Listing(head, found.items)


def _require_utf8(data: Bytes) -> None:
    """Raise UnicodeDecodeError for bytes that are not UTF-8.

    Msgspec does not check skipped texts.
    """
    utf8 = getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        if not block.isascii() or utf8.getstate()[0]:
            utf8.decode(block)
    utf8.decode(b"", final=True)
