"""PodColumns: the texts of similar pods, stored as the text of one pod and columns of strings.

The pods of a workload have the same text except for some strings: names, addresses, times. A
snapshot file contains the first pod as JSON, and a column for each string that differs. A column
has one entry for each pod:

    {"like": {"metadata": {"name": "web-x2k"}, "spec": {"nodeName": "n1"}},
     "positions": [4, 5], "strings": [2, 5], "columns": [["web-x2k", "web-b7q"], ["n1", "n3"]]}

The strings in the text of `like`, including keys, are numbered from 0: `"metadata"` is 0, `"name"`
is 1, `"web-x2k"` is 2. `strings` contains the numbers of the strings that have a column, in the
order of the columns. `positions` contains the indices of the pods among all objects of the
snapshot. An entry of a column is the text of a JSON string without its quotes but with its escapes.
So the text of each pod is restored exactly.

When the file is read, similar pods are kept as columns (`TemplateRows`). The typed view of a pod is
made when it is needed, from the view of the first pod and the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, SupportsBytes, TypeVar

import msgspec
from msgspec.structs import astuple

from fairlead.api.json import Json
from fairlead.api.text.json_template import (
    JsonTemplate,
    TemplateRows,
    TemplateText,
    has_marks,
    pieces_of,
)

API_VERSION: Final = "fairlead.dev/v1"
KIND: Final = "Snapshot"

_BETWEEN: Final = "\n"
_NAME_KEY: Final = b'"generateName":"'
# The printable ASCII characters that stand for themselves in a JSON string.
_PLAIN: Final = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')
_ESCAPED: Final = re.compile(
    r'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*'
)

ItemText = msgspec.Raw | bytes | TemplateText
Item = TypeVar("Item", bound=SupportsBytes)


class ColumnError(ValueError):
    """Columns that do not fit together; `field` names the field with the problem."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class _PodColumns(msgspec.Struct):
    like: msgspec.Raw
    positions: list[int]
    strings: list[int]
    columns: list[msgspec.Raw]


class _Metadata(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Outline(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = _Metadata()


_decode: Final = msgspec.json.Decoder(list[_PodColumns]).decode
_decode_column: Final = msgspec.json.Decoder(list[str]).decode
_outline_of: Final = msgspec.json.Decoder(_Outline).decode


# --- reading -------------------------------------------------------------------------------------


def with_pods(
    api_version: object, items: Iterable[msgspec.Raw], pods: msgspec.Raw
) -> list[ItemText | TemplateRows]:
    """Return all objects of a snapshot in order: `items`, with the pods put at their positions.

    `pods` contains groups of similar pods. Consecutive pods of one group become one `TemplateRows`.

    Raises ColumnError if the columns do not fit together, or if `api_version` is not API_VERSION.
    Raises msgspec.DecodeError if `pods` is malformed.
    """
    if api_version != API_VERSION:
        problem = f"{api_version!r} is not {API_VERSION!r}, which this version of Fairlead reads"
        raise ColumnError("apiVersion", problem)
    at: dict[int, TemplateRows] = {}
    taken: set[int] = set()
    count = 0
    for number, group in enumerate(_decode(pods)):
        field = f"pods[{number}]"
        rows, positions = _rows(group, field), group.positions
        count += len(rows)
        taken.update(positions)
        if len(taken) < count:
            raise ColumnError(f"{field}.positions", "names a position that another pod has")
        for begin, end in _runs(positions):
            at[positions[begin]] = rows.part(begin, end)
    others = list(items)
    total = len(others) + count
    if taken and not 0 <= min(taken) <= max(taken) < total:
        raise ColumnError("pods", f"has a position that is not from 0 to {total - 1}")
    found: list[ItemText | TemplateRows] = []
    rest, index = iter(others), 0
    while index < total:
        part = at.get(index)
        found.append(next(rest) if part is None else part)
        index += 1 if part is None else len(part)
    return found


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each part of `positions` with consecutive numbers.

    `begin` and `end` are indices into `positions`; `end` is exclusive.
    """
    begin = 0
    for end in range(1, len(positions) + 1):
        if end == len(positions) or positions[end] != positions[end - 1] + 1:
            yield begin, end
            begin = end


def texts_of(items: Iterable[Item | TemplateRows]) -> Iterator[Item | TemplateText]:
    """Yield the text of each object in `items`."""
    for item in items:
        if isinstance(item, TemplateRows):
            yield from item
        else:
            yield item


def objects_of(value: Json) -> list[Any]:
    """Return all objects of a snapshot that was decoded as a JSON value. Raises ColumnError."""
    items, pods = value.get("items"), msgspec.json.encode(value.get("pods"))
    if not isinstance(items, list):
        raise ColumnError("items", "is not a list")
    try:
        texts = with_pods(
            value.get("apiVersion"),
            (msgspec.Raw(msgspec.json.encode(one)) for one in items),
            msgspec.Raw(pods),
        )
        return [msgspec.json.decode(bytes(text)) for text in texts_of(texts)]
    except msgspec.DecodeError as cause:
        raise ColumnError("pods", str(cause)) from None


def _rows(group: _PodColumns, field: str) -> TemplateRows:
    """Return the texts of the pods in `group`. Raises ColumnError."""
    pieces = pieces_of(bytes(group.like))
    strings, columns = group.strings, _decoded(group.columns, field)
    if len(strings) != len(columns):
        raise ColumnError(f"{field}.columns", f"has {len(columns)} columns, not {len(strings)}")
    if strings != sorted({*strings}) or any(not 0 <= one < len(pieces) // 2 for one in strings):
        problem = f"is not an ascending list of numbers from 0 to {len(pieces) // 2 - 1}"
        raise ColumnError(f"{field}.strings", problem)
    for number, column in enumerate(columns):
        if len(column) != len(group.positions):
            problem = f"has {len(column)} entries, not {len(group.positions)}"
            raise ColumnError(f"{field}.columns[{number}]", problem)
    variable = frozenset(2 * one + 1 for one in strings)
    are_plain = {
        id(column): _are_plain(column, f"{field}.columns[{number}]")
        for number, column in {id(one): (at, one) for at, one in enumerate(columns)}.values()
    }
    opaque = frozenset(
        number
        for number, (index, column) in enumerate(zip(sorted(variable), columns, strict=True))
        if not are_plain[id(column)] or _is_key(pieces, index)
    )
    template = JsonTemplate(pieces, variable, opaque)
    return TemplateRows(template, columns, len(group.positions))


def _decoded(columns: Sequence[msgspec.Raw], field: str) -> list[list[str]]:
    """Return the strings of each of `columns`; equal columns share one list.

    Raises ColumnError for a column that is not a list of strings.
    """
    # Some columns are equal: a pod has its IP address in several fields, and the name of a volume
    # in the list of volumes and in the mounts.
    known: dict[bytes, list[str]] = {}
    found = []
    for number, column in enumerate(columns):
        text = bytes(column)
        if text not in known:
            try:
                known[text] = _decode_column(text)
            except msgspec.ValidationError as cause:
                raise ColumnError(f"{field}.columns[{number}]", str(cause)) from None
        found.append(known[text])
    return found


def _are_plain(column: Sequence[str], field: str) -> bool:
    """Return whether no text in `column` contains escapes or special characters.

    Raises ColumnError for a text that cannot be part of a JSON string.
    """
    joined = "".join(column)
    if joined.isascii() and not joined.encode().translate(None, _PLAIN):
        return True  # the next test would return True, too, but takes three times as long
    if '"' not in joined and "\\" not in joined and joined.isprintable():
        return True
    for number, text in enumerate(column):
        if _ESCAPED.fullmatch(text) is None:
            raise ColumnError(f"{field}[{number}]", "is not the text of a JSON string")
    return False


def _is_key(pieces: Sequence[bytes], index: int) -> bool:
    return pieces[index + 1].lstrip().startswith(b":")


# --- writing -------------------------------------------------------------------------------------


def in_listing_order(items: Sequence[bytes]) -> Sequence[bytes]:
    """Return the JSON texts `items` with the pods sorted as the API server lists them.

    The pods are sorted by namespace and name, and all of them are put at the place of the first
    pod. The simulation sorts the pods that it loads. If the pods are sorted already, a what-if
    takes a tenth less time.
    """
    outlines = list(map(_outline_of, items))
    found = [number for number, one in enumerate(outlines) if one.kind == "Pod"]
    first = found[0] if found else 0
    found.sort(key=lambda number: astuple(outlines[number].metadata))
    pods = [items[number] for number in found]
    others = [text for text, one in zip(items, outlines, strict=True) if one.kind != "Pod"]
    return [*others[:first], *pods, *others[first:]]


def encode_list(items: Iterable[bytes], metadata: Mapping[str, Any]) -> bytes:
    """Return the JSON texts `items` as one List, in the form that kubectl prints."""
    head = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', b",\n".join(items), b"]}\n"))


def encode_columns(items: Sequence[bytes], metadata: Mapping[str, Any]) -> bytes:
    """Return a snapshot file that contains the objects `items`, given as compact JSON."""
    groups: dict[tuple[bytes, bytes], _Group] = {}
    for position, text in enumerate(items):
        if _outline_of(text).kind != "Pod" or has_marks(text):
            continue
        pieces = pieces_of(text)
        key = _generate_name(text), b'"'.join(pieces[::2])
        group = groups.setdefault(key, _Group(pieces))
        group.add(position, pieces)
    large = [group for group in groups.values() if len(group.positions) > 1]
    columns = [group.columns(items) for group in large]
    within = {position for group in large for position in group.positions}
    rest = [msgspec.Raw(text) for position, text in enumerate(items) if position not in within]
    whole = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "items": rest,
        "pods": columns,
    }
    return msgspec.json.encode(whole) + b"\n"


class _Group:
    """Pods whose texts differ only in strings."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.first = pieces
        self.positions: list[int] = []
        self.differing: set[int] = set()

    def add(self, position: int, pieces: list[bytes]) -> None:
        self.positions.append(position)
        if pieces != self.first:
            pairs = zip(pieces, self.first, strict=True)
            self.differing.update(
                number for number, (one, first) in enumerate(pairs) if one != first
            )

    def columns(self, items: Sequence[bytes]) -> _PodColumns:
        indices = sorted(self.differing)
        # The texts are split again, because all pieces of all pods would take gigabytes.
        split = (pieces_of(items[position]) for position in self.positions)
        rows = [[pieces[index].decode() for index in indices] for pieces in split]
        columns = [list(column) for column in zip(*rows, strict=True)] if indices else []
        strings = [index // 2 for index in indices]
        texts = [msgspec.Raw(msgspec.json.encode(column)) for column in columns]
        return _PodColumns(msgspec.Raw(items[self.positions[0]]), self.positions, strings, texts)


def _generate_name(text: bytes) -> bytes:
    """Return the key and value of generateName in the compact JSON `text`; b"" if it is absent."""
    begin = text.find(_NAME_KEY)
    return b"" if begin < 0 else text[begin : text.find(b'"', begin + len(_NAME_KEY))]
