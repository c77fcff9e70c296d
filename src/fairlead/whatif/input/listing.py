"""Listing: splits a JSON listing into the texts of its items, without decoding them.

The texts refer to the content of the file, which is not copied.
"""

from __future__ import annotations

import mmap as mmap_module
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from itertools import pairwise
from mmap import PAGESIZE, mmap
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.json_template import TemplateRows
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.whatif.input.pod_columns import KIND as SNAPSHOT
from fairlead.whatif.input.pod_columns import ItemText, with_pods

Bytes = bytes | mmap

_BLOCK_BYTES: Final = 1 << 18  # a block that fits into the processor's cache
_LARGE_BYTES: Final = 1 << 20  # a larger listing is split at its indentation
_ENVELOPE_BYTES: Final = (
    1 << 16
)  # the first and the last item of an indented listing are searched here
_FIRST_INDENT: Final = re.compile(rb'\{\n( +)"')
_BRACE_MINUS_NEWLINE: Final = ord("}") - ord("\n")
_BETWEEN_VALUES: Final = re.compile(rb"\}[ \t\r]*\n[ \t\r\n]*\{")
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
    """Items that contain the texts of objects.

    An item has the text of one object, or is a `TemplateRows` with the texts of several
    neighbouring pods of a snapshot file. The items can be iterated over several times; each
    iteration may create new items.
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ItemText | TemplateRows | DecodedItem]: ...


class Listing(Struct, frozen=True):
    """A List or Snapshot: its `head` without items, and the items as texts, in order.

    `mapped` is the mapped file that contains the items; None if no file is mapped.
    """

    head: Json
    items: ItemTexts
    mapped: mmap | None = None

    def release(self, share: float) -> None:
        """Let the system reuse the memory of the first `share` (0 to 1) of the mapped file.

        Parts of the file that are needed later are read again.
        """
        if self.mapped is not None and _UNNEEDED is not None:
            pages = int(share * len(self.mapped)) // PAGESIZE
            self.mapped.madvise(_UNNEEDED, 0, pages * PAGESIZE)


# A List with another field is read by the caller, which refuses a field that contains objects.
class _List(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    kind: str
    items: list[msgspec.Raw] | None  # Go programs write null for an empty list
    api_version: Any = None
    metadata: Any = None
    pods: msgspec.Raw = msgspec.Raw()  # not optional: msgspec would expect null


class _Kind(msgspec.Struct):
    kind: str


_decode: Final = msgspec.json.Decoder(_List).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode


def split(data: Bytes) -> Listing | None:
    """Return the listing in `data`; None if `data` is not a listing, or has an unknown field.

    In a large listing with kubectl's indentation, the items are not parsed (`_split_indented`), so
    they may be malformed.

    Raises ColumnError if the listing is a Snapshot (the output of `fairlead snapshot`) with columns
    that do not fit together.
    """
    if not data[:_START_BYTES].lstrip().startswith(b"{"):
        return None
    try:
        found = (_split_indented(data) if len(data) > _LARGE_BYTES else None) or _decode(data)
        _require_utf8(data)
        items = _items(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _joined(data) if len(data) > _LARGE_BYTES else None
    if items is None:
        return None
    head = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "metadata": found.metadata,
        "items": [],
    }
    return Listing(head, items, data if isinstance(data, mmap) else None)


def _split_indented(data: Bytes) -> _List | None:
    """Return the listing in `data` if it has kubectl's indentation, otherwise None.

    `_split_indented` takes a sixth of the time of `_decode`, because it searches only the lines
    between items:

        {
            "apiVersion": "v1",
            "items": [
                {
                    "apiVersion": "v1",
                    ...
                },              these two lines
                {

    A JSON string contains no line breaks, so such a line is never part of a string. If a file has
    another layout and these two lines are within an item, the items are split there, and decoding
    them fails. Raises msgspec.DecodeError if the text around the items is malformed.
    """
    start, end = data[:_ENVELOPE_BYTES], data[-_ENVELOPE_BYTES:]
    indent = _FIRST_INDENT.match(start)
    if indent is None:
        return None
    outer = b"\n" + indent[1]
    inner = outer + indent[1]
    key = outer + b'"items": ['
    opening, closing = start.find(key + inner + b"{"), end.rfind(inner + b"}" + outer + b"]")
    if opening < 0 or closing < 0:
        return None
    first = opening + len(key + inner)
    last = len(data) - len(end) + closing + len(inner + b"}")
    envelope = _decode(data[:first] + data[last:])
    if envelope.items:
        return None  # the key occurs twice
    gap = b"," + inner  # between two items
    ends = _item_ends(data, first, last, inner, gap + b"{")
    if ends is None:
        return None
    begins = [first, *(end + len(gap) for end in ends[:-1])]
    view = memoryview(data)
    texts = [msgspec.Raw(view[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    return replace(envelope, items=texts)


def _item_ends(
    data: Bytes, first: int, last: int, margin: bytes, between: bytes
) -> list[int] | None:
    """Return the end of each item in `data`, in order; None if the items have an unexpected layout.

    The first item begins at `first`, and the last item ends at `last`. The last line of an item is
    `margin`, which consists of a line break and spaces, and then `}`. The text `between` must
    follow each item except the last one. Any other text there may mean that, for example, a second
    listing begins.
    """
    whole = np.frombuffer(data, np.uint8)
    width = len(margin)
    block = bytearray(_BLOCK_BYTES)
    found: list[int] = []
    for start in range(first + width, last, _BLOCK_BYTES):
        count = min(_BLOCK_BYTES, last - start)
        # Only in few places is the difference between a byte and the byte `width` before it the
        # same as between `}` and a line break. This subtraction takes a third of the time of
        # comparing both bytes, and `find` skips 32 bytes at a time.
        lines = whole[start - width : start - width + count]
        np.subtract(whole[start : start + count], lines, np.frombuffer(block, np.uint8, count))
        index = block.find(_BRACE_MINUS_NEWLINE, 0, count)
        while index >= 0:
            end = start + index + 1
            if data[end - width - 1 : end] == margin + b"}":
                if end < last and data[end : end + len(between)] != between:
                    return None
                found.append(end)
            index = block.find(_BRACE_MINUS_NEWLINE, index + 1, count)
    return found


def value_ranges(data: Bytes) -> list[tuple[int, int]]:
    """Return (start, end) of each JSON value in `data`; each value begins on a new line.

    `data` is split wherever only white space with a line break stands between `}` and `{`. The
    split is never inside a value: within a value, a comma stands between two objects, and a string
    contains no line break. If `data` is not JSON, the ranges are meaningless.
    """
    starts = [0, *(gap.end() - 1 for gap in _BETWEEN_VALUES.finditer(data))]
    return list(pairwise([*starts, len(data)]))


def _joined(data: Bytes) -> Listing | None:
    """Return the objects in `data`, which contains JSON values on separate lines (`value_ranges`).

    A List is replaced by its items. Returns None if a value is invalid, is a Snapshot, is not a
    Kubernetes object, or is a List with an unknown field.
    """
    view = memoryview(data)
    items: list[ItemText | TemplateRows] = []
    try:
        _require_utf8(data)
        for start, end in value_ranges(data):
            value = msgspec.Raw(view[start:end])
            kind = _decode_kind(value).kind
            if kind == SNAPSHOT:
                return None
            listed = _items(_decode(value)) if kind.endswith("List") else [value]
            if listed is None:
                return None
            items += listed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Listing({"apiVersion": "v1", "kind": "List", "metadata": None, "items": []}, items)


def _items(found: _List) -> Sequence[ItemText | TemplateRows] | None:
    if bytes(found.pods):
        if found.kind != SNAPSHOT or found.items is None:
            return None
        return with_pods(found.api_version, found.items, found.pods)
    return found.items or [] if found.kind.endswith("List") else None


def _require_utf8(data: Bytes) -> None:
    """Raise UnicodeDecodeError for bytes that are not UTF-8.

    msgspec does not check the texts that it skips.
    """
    utf8 = getincrementaldecoder("utf-8")()
    signed = np.frombuffer(data, np.int8)  # the bytes that are not ASCII are negative
    for start in range(0, len(data), _BLOCK_BYTES):
        if utf8.getstate()[0] or signed[start : start + _BLOCK_BYTES].min() < 0:
            utf8.decode(data[start : start + _BLOCK_BYTES])
    utf8.decode(b"", final=True)
