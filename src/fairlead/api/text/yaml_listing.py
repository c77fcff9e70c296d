"""Reads a YAML List in the layout in which kubectl prints it, faster than a YAML parser.

    apiVersion: v1
    items:
    - apiVersion: v1                   an item begins with a dash in the first column
      kind: Pod
      metadata:
        labels: {}
        name: web-0
      spec:
        containers:
        - image: web:1                 a sequence is not indented
          args:
          - "8080"
    kind: List                         the rest of the List follows the items

kubectl writes one key or element per line. So each line is one token; most lines of a dump occur
many times and are tokenized once. The tokens of an item are converted directly to JSON text.

The general parser handles everything else (texts over several lines, flow collections, anchors,
tags, comments, escapes): the item that contains such a line, or the whole text if the layout of the
List differs. So the result is that of `yaml_documents`, which a property test checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.text.nesting import DEPTH_MAX
from fairlead.api.text.yaml_scalar import ScalarError, key_text, plain_scalar

# Control characters, line breaks other than a line feed, and characters that YAML refuses.
_UNUSUAL: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_KNOWN_MAX: Final = 1 << 18
_ITEMS: Final = "items:"
# Indentation, dashes, then a key with or without a value, or an element.
_LINE: Final = re.compile(
    r"( *)((?:- )*)(?:([A-Za-z0-9_./][^\s'\"#\\{}\[\],&*!|>%@`?]*?):(?: (\S.*))?|(\S.*))"
)
_QUOTED: Final = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+(<=~^$;-][^#]*")
_EMPTY: Final = frozenset({"{}", "[]"})

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

# column, number of dashes, key as JSON text ("" for an element), value as JSON text ("" for none)
_Token = tuple[int, int, str, str]


class _OtherLayoutError(Exception):
    """The text is not in the layout that this module reads."""


def split_listing(text: str) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return the List `text` without its items, and their JSON texts; None for other layouts."""
    if _UNUSUAL.search(text):
        return None
    lines = text.split("\n")
    try:
        first = lines.index(_ITEMS) + 1
        scanner = _Scanner()
        head, items = _sections(lines, first, scanner)
        return head, [scanner.json_of(item) for item in items]
    except (_OtherLayoutError, OverflowError, ValueError):
        return None


def _sections(
    lines: Sequence[str], first: int, scanner: _Scanner
) -> tuple[dict[str, Any], Iterable[list[str]]]:
    """Return the List without its items, and the lines of each item, without its dash."""
    starts = [at for at in range(first, len(lines)) if lines[at].startswith("- ")]
    if not starts or starts[0] != first:
        raise _OtherLayoutError
    end = next(
        (at for at in range(starts[-1] + 1, len(lines)) if not lines[at].startswith("  ")),
        len(lines),
    )
    head = scanner.head([*lines[: first - 1], *lines[end:]])
    if not isinstance(head, dict) or "items" in head:
        raise _OtherLayoutError
    ends = [*starts[1:], end]
    items = (
        ["  " + lines[start][2:], *lines[start + 1 : after]]
        for start, after in zip(starts, ends, strict=True)
    )
    return {**head, "items": []}, items


class _Scanner:
    """Converts items to JSON texts; `_known` has the tokens of lines, None for other lines."""

    def __init__(self) -> None:
        self._known: dict[str, _Token | None] = {}

    def json_of(self, lines: list[str]) -> bytes:
        """Return the JSON text of an item. Raises ValueError."""
        try:
            return self._scanned(lines)
        except _OtherLayoutError:
            (value,) = _general(lines)
            return _encode(value)

    def head(self, lines: list[str]) -> Any:
        """Return the value of a List without its items. Raises ValueError."""
        try:
            # As if it were an item, which is indented.
            return _decode(self._scanned(["  " + line for line in lines if line]))
        except _OtherLayoutError:
            (value,) = (one for one in _general(lines) if one is not None)
            return value

    def _scanned(self, lines: list[str]) -> bytes:
        item = _ItemText()
        for line in lines:
            item.add(self._token(line))
        return item.end()

    def _token(self, line: str) -> _Token:
        token = self._known.get(line)
        if token is None:
            if line in self._known:
                raise _OtherLayoutError
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            token = self._known[line] = _tokenized(line)
            if token is None:
                raise _OtherLayoutError
        return token


def _general(lines: list[str]) -> Iterator[Any]:
    """Read `lines` with the general parser, which is imported if it is needed."""
    from fairlead.api.text.yaml_documents import documents  # noqa: PLC0415

    return documents("\n".join(lines))


class _ItemText:
    """The JSON text of one item, in pieces.

    `_open` has the open collections, innermost last: the column, and the keys of a mapping, None
    for a sequence. Invariant: a line belongs to the innermost collection in its column; deeper ones
    end before it. `_is_waiting` is set after a key without a value: if the next line is deeper, or
    an element in the same column, it begins the value. `_is_first`: the next member needs no comma
    before it.
    """

    __slots__ = ("_is_first", "_is_waiting", "_open", "_pieces")

    def __init__(self) -> None:
        self._pieces = ["{"]
        self._open: list[tuple[int, set[str] | None]] = [(2, set())]
        self._is_first = True
        self._is_waiting = False

    def add(self, token: _Token) -> None:
        """Add a line. Raises _OtherLayoutError."""
        column, dashes, key, value = token
        if self._is_waiting:
            self._begin_value(column, dashes)
        self._end_deeper(column, is_element=dashes > 0)
        if not self._is_first:
            self._pieces.append(",")
        self._is_first = False
        if dashes:
            self._begin_element(column, dashes, has_key=key != "")
        if key:
            keys = self._open[-1][1]
            if keys is None or key in keys:
                raise _OtherLayoutError
            keys.add(key)
            self._pieces.append(key)
        if value:
            self._pieces.append(value)
        else:
            self._is_waiting = True

    def end(self) -> bytes:
        """Return the text, after the last line."""
        if self._is_waiting:
            self._pieces.append("null")
        self._pieces += ["]" if keys is None else "}" for _, keys in reversed(self._open)]
        return "".join(self._pieces).encode()

    def _begin_value(self, column: int, dashes: int) -> None:
        """Begin the value of the last key, or end it as null if the line does not belong to it."""
        self._is_waiting = False
        above = self._open[-1][0]
        if column > above or (column == above and dashes):
            self._begin(column, None if dashes else set())
        else:
            self._pieces.append("null")

    def _begin(self, column: int, keys: set[str] | None) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise _OtherLayoutError
        self._open.append((column, keys))
        self._pieces.append("[" if keys is None else "{")
        self._is_first = True

    def _begin_element(self, column: int, dashes: int, *, has_key: bool) -> None:
        """Begin the sequences, and the mapping, that begin in one line: `- - a: 1`."""
        for number in range(1, dashes):
            self._begin(column + 2 * number, None)
        if has_key:
            self._begin(column + 2 * dashes, set())
        self._is_first = False

    def _end_deeper(self, column: int, *, is_element: bool) -> None:
        """End the collections to which a line in `column` does not belong."""
        at, keys = self._open[-1]
        while at > column or (at == column and keys is None and not is_element):
            self._pieces.append("]" if keys is None else "}")
            self._open.pop()
            self._is_first = False
            if not self._open:
                raise _OtherLayoutError
            at, keys = self._open[-1]
        if at != column or (keys is None) != is_element:
            raise _OtherLayoutError


def _tokenized(line: str) -> _Token | None:
    matched = _LINE.fullmatch(line)
    if matched is None:
        return None
    blanks, dashes, key, value, element = matched.groups()
    count = len(dashes) // 2
    try:
        if element is not None:
            found = _scalar(element) if count else None
            return None if found is None else (len(blanks), count, "", found)
        found = "" if value is None else _scalar(value)
        if found is None:
            return None
        name = _encode(key_text(key)).decode() + ":"
        return len(blanks), count, name, found
    except ScalarError:
        return None


def _scalar(text: str) -> str | None:
    """Return the JSON of a scalar or an empty collection on one line; None for other texts."""
    if text in _EMPTY:
        return text
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return _encode(quoted[1] if quoted[1] is not None else quoted[2]).decode()
    if (
        not _PLAIN.fullmatch(text)
        or ": " in text
        or text.endswith((":", " "))
        or text.startswith(("- ", "---", "..."))
        or text == "-"
    ):
        return None
    return _encode(plain_scalar(text)).decode()
