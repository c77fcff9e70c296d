"""Listing: splits a JSON listing into the texts of its items, without decoding them.

The texts are views of the mapped file, so they need no copy in memory. Most of them are later
decoded directly into typed views, without an intermediate JSON value.
"""

from __future__ import annotations

import mmap as mmap_module
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from mmap import mmap
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.json_template import TemplateRows
from fairlead.apiserver.registry.dumped_object import DumpedObject
from fairlead.whatif.input.pod_columns import KIND as SNAPSHOT
from fairlead.whatif.input.pod_columns import ItemText, with_pods

Bytes = bytes | mmap

_BLOCK_BYTES: Final = 1 << 20  # a block that fits into the processor's cache
_START_BYTES: Final = 64
_UNNEEDED: Final[int | None] = getattr(mmap_module, "MADV_DONTNEED", None)  # not on all systems


class DecodedItem(Struct, frozen=True):
    """An item that was decoded when it was read, and its newest timestamp."""

    dumped: DumpedObject
    newest: str

    def __bytes__(self) -> bytes:
        """Return the text of the item."""
        return bytes(self.dumped.text)


class ItemTexts(Protocol):
    """The texts of objects; each iteration yields all of them, and may build them anew.

    Neighbouring pods of a snapshot file may be one item (`TemplateRows`).
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ItemText | TemplateRows | DecodedItem]: ...


class Listing(Struct, frozen=True):
    """A List or Snapshot: its `head` without items, and the items as texts, in order.

    `mapped` is the mapped file that contains the items; None if they are in memory.
    """

    head: Json
    items: ItemTexts
    mapped: mmap | None = None

    def release(self) -> None:
        """Let the memory of the mapped file be reused; parts are read again when they are needed.

        Otherwise the whole file would count as memory of the process.
        """
        if self.mapped is not None and _UNNEEDED is not None:
            self.mapped.madvise(_UNNEEDED)


class _List(msgspec.Struct, rename="camel"):
    kind: str
    items: list[msgspec.Raw]
    api_version: Any = None
    metadata: Any = None
    pods: msgspec.Raw = msgspec.Raw()  # not optional: msgspec would expect null


_decode: Final = msgspec.json.Decoder(_List).decode


def split(data: Bytes) -> Listing | None:
    """Return the listing in `data`; None if `data` is not a listing and must be decoded.

    Raises ColumnError for a Snapshot with columns that do not fit together.
    """
    if not data[:_START_BYTES].lstrip().startswith(b"{"):
        return None
    try:
        found = _decode(data)
        _require_utf8(data)
        items = _items(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if items is None:
        return None
    head = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "metadata": found.metadata,
        "items": [],
    }
    listing = Listing(head, items, data if isinstance(data, mmap) else None)
    listing.release()
    return listing


def _items(found: _List) -> Sequence[ItemText | TemplateRows] | None:
    if found.kind == SNAPSHOT and bytes(found.pods):
        return with_pods(found.api_version, found.items, found.pods)
    return found.items if found.kind.endswith("List") else None


def _require_utf8(data: Bytes) -> None:
    """Raise UnicodeDecodeError for bytes that are not UTF-8.

    msgspec does not check the texts that it skips.
    """
    utf8 = getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        if not block.isascii() or utf8.getstate()[0]:
            utf8.decode(block)
    utf8.decode(b"", final=True)
