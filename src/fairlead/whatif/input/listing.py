"""Listing: splits a long JSON listing into the texts of its items, without decoding them.

kubectl prints a List with one item after another at the same indentation:

    {
        "apiVersion": "v1",
        "items": [
            {                          <- the first item starts
                ...
            },
            {                          <- every other item follows a line `},`
                ...
            }                          <- the last item ends
        ],
        "kind": "List",
        ...
    }

Text of any layout may be split this way: a separator is a line break followed by the same blanks,
which cannot occur in a JSON string. If each piece is a JSON object, and the text before the first
and after the last piece is a listing without items, then the text as a whole is that listing with
the pieces as items. The reader of the pieces checks the former, `split` the latter.

The text is searched in blocks, and the pieces are views of the mapped file, so that no copy of it
is held in memory.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Final

import msgspec

from fairlead.api.json import Json

BLOCK_BYTES: Final = 16 << 20
_HEAD_BYTES: Final = 1 << 10
_FIRST: Final = re.compile(rb'"items":\s*\[(\n *)\{')

Bytes = bytes | mmap


def _ignore(_: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listing:
    """A List without its items, and their texts in order."""

    head: Json
    items: list[memoryview]


def split(data: Bytes, on_bytes: Callable[[int], None] = _ignore) -> Listing | None:
    """The listing `data`; None if it is not one, or not in a layout with one item after another.

    `on_bytes` receives the number of bytes that have been searched so far. Raises
    UnicodeDecodeError for text that is not UTF-8.
    """
    first = _FIRST.search(data[:_HEAD_BYTES])
    if first is None:
        return None
    blanks = first[1]
    begin, end = first.end() - 1, _end_of_last(data, blanks)
    if end < begin:
        return None
    head = _decoded(data[: first.start(1)] + data[end:])
    match head:
        case {"kind": str(kind), "items": []} if kind.endswith("List"):
            pass
        case _:
            return None
    whole = memoryview(data)
    items = []
    for separator in _separators(data, blanks, on_bytes):
        if begin < separator < end:
            items.append(whole[begin : separator + len(blanks) + 1])
            begin = separator + 2 * len(blanks) + 2
    items.append(whole[begin:end])
    return Listing(head, items)


def _end_of_last(data: Bytes, blanks: bytes) -> int:
    """Where the text after the last item begins; -1 if there is none."""
    found = data.rfind(blanks + b"}\n")
    return found + len(blanks) + 1 if found >= 0 else -1


def _separators(data: Bytes, blanks: bytes, on_bytes: Callable[[int], None]) -> Iterator[int]:
    """Where the items end, except for the last."""
    separator = blanks + b"}," + blanks + b"{"
    utf8 = getincrementaldecoder("utf-8")()
    size = len(data)
    for start in range(0, size, BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        if not block.isascii() or utf8.getstate()[0]:
            utf8.decode(block, final=start + BLOCK_BYTES >= size)
        # A separator may continue in the next block; the overlap is too short for a second match.
        block += data[start + BLOCK_BYTES : start + BLOCK_BYTES + len(separator) - 1]
        at = block.find(separator)
        while at >= 0:
            yield start + at
            at = block.find(separator, at + 1)
        on_bytes(min(start + BLOCK_BYTES, size))


def _decoded(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
