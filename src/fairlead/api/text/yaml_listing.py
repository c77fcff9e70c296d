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

kubectl writes one key or element per line, so each line is one token. Most lines of a dump occur
many times and are tokenized once. The tokens of an item are converted directly to JSON text.

This module reads two kinds of text that continue over several lines: literal blocks (`key: |`), and
texts without quotes, such as the description of a PriorityClass. The text must have the form in
which kubectl prints it.

`yaml_documents`, the general parser, reads everything else: other texts over several lines, flow
collections other than {} and [], anchors, tags, comments and escapes. If an item contains one of
these, the general parser reads the whole item. If the List has another layout, the general parser
reads the whole text. A property test checks that this module's results are the same as those of the
general parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.text.nesting import DEPTH_MAX
from fairlead.api.text.yaml_scalar import ScalarError, key_text, plain_scalar

# Finds control characters, line breaks except line feeds, and characters that YAML refuses.
_UNUSUAL: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_KNOWN_MAX: Final = 1 << 18
_ITEMS: Final = "items:"
# Matches indentation and dashes, then either a key with or without a value, or an element.
_LINE: Final = re.compile(
    r"( *)((?:- )*)(?:([A-Za-z0-9_./][^\s'\"#\\{}\[\],&*!|>%@`?]*?):(?: (\S.*))?|(\S.*))"
)
_BLOCK: Final = re.compile(r"(.*:) \|(-?)")
_QUOTED: Final = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+(<=~^$;-][^#]*")
# Matches a line that continues a text without quotes, and can be nothing else.
_CONTINUATION: Final = re.compile(r" +[A-Za-z0-9(][^#:]*")
_EMPTY: Final = frozenset({"{}", "[]"})

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

# One line of an item: (column, number of dashes, key as JSON text, value as JSON text, text of key
# and value together). The key is "" for an element; the value is "" if the line has none.
_Token = tuple[int, int, str, str, str]
_Open = tuple[int, set[str] | None]


class _OtherLayoutError(Exception):
    """Raised if the text does not have the layout that this module reads."""


def split_listing(text: str) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return (the List without its items, the JSON text of each item).

    Returns None if `text` has another layout or is invalid; the caller must then use the general
    parser.
    """
    if _UNUSUAL.search(text):
        return None
    lines = text.removesuffix("\n").split("\n")
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
    """Return (the List without its items, the lines of each item without the leading dash)."""
    starts = [at for at in range(first, len(lines)) if lines[at].startswith("- ")]
    if not starts or starts[0] != first:
        raise _OtherLayoutError
    end = next(
        (at for at in range(starts[-1] + 1, len(lines)) if lines[at] and lines[at][:2] != "  "),
        len(lines),
    )
    rest = lines[end:]
    if rest and rest[0].startswith(" "):
        raise _OtherLayoutError  # the line may belong to a multi-line text of the last item
    head = scanner.head([*lines[: first - 1], *rest])
    if not isinstance(head, dict) or "items" in head:
        raise _OtherLayoutError
    ends = [*starts[1:], end]
    items = (
        ["  " + lines[start][2:], *lines[start + 1 : after]]
        for start, after in zip(starts, ends, strict=True)
    )
    return {**head, "items": []}, items


class _Scanner:
    """Converts the lines of items to JSON texts.

    `_known` maps lines to their tokens, or to None for lines that only the general parser can read.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Token | None] = {}

    def json_of(self, lines: list[str]) -> bytes:
        """Return the JSON text of an item; raises ValueError if it is not valid YAML."""
        try:
            return self._scanned(lines)
        except _OtherLayoutError:
            pass
        try:
            return _json_text(self._tokens_with_long_texts(lines))
        except _OtherLayoutError:
            (value,) = _general(lines)
            return _encode(value)

    def head(self, lines: list[str]) -> Any:
        """Return the value of a List without its items; raises ValueError for invalid YAML."""
        try:
            # Indents the lines, because the scanner expects the lines of an item.
            return _decode(self._scanned(["  " + line for line in lines if line]))
        except _OtherLayoutError:
            (value,) = (one for one in _general(lines) if one is not None)
            return value

    def _scanned(self, lines: list[str]) -> bytes:
        known = self._known.get
        return _json_text([known(line) or self._token(line) for line in lines])

    def _tokens_with_long_texts(self, lines: list[str]) -> Iterator[_Token]:
        """Yield the tokens of `lines`, even if texts extend over several lines.

        Such a text is a literal block, or a long text without quotes:

            kubectl.kubernetes.io/last-applied-configuration: |
              {"apiVersion":"apps/v1"}
            description: Used for system critical pods that must run in the cluster, but can
              be moved to another node if necessary.

        Raises _OtherLayoutError if the general parser must read the lines.
        """
        at = 0
        while at < len(lines):
            line, at = lines[at], at + 1
            header = _BLOCK.fullmatch(line)
            if header is None:
                line, at = _unfolded(lines, at - 1)
                yield self._known.get(line) or self._token(line)
                continue
            column, dashes, key, _, _ = self._token(header[1])
            text, at = _block(lines, at, column + 2 * dashes)
            value = _encode(text if header[2] else text + "\n").decode()
            yield column, dashes, key, value, key + value

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


def _unfolded(lines: list[str], first: int) -> tuple[str, int]:
    """Return (line `first` joined with its continuation lines, index of the line after them).

    A line continues a text without quotes if it is indented more than the key of the text. Other
    texts are not joined.
    """
    line, end = lines[first], first + 1
    while end < len(lines) and _CONTINUATION.fullmatch(lines[end]):
        end += 1
    matched = _LINE.fullmatch(line) if end > first + 1 else None
    if matched is None or not matched[4] or not _PLAIN.fullmatch(matched[4]):
        return line, first + 1
    rest = lines[first + 1 : end]
    if min(len(one) - len(one.lstrip(" ")) for one in rest) <= matched.start(3):
        raise _OtherLayoutError
    return " ".join((line.rstrip(" "), *(one.strip(" ") for one in rest))), end


def _block(lines: list[str], first: int, column: int) -> tuple[str, int]:
    """Return (text of the literal block, index of the line after it).

    `first` is the index of the block's first line, and `column` is the column of its key. Raises
    _OtherLayoutError if the block does not begin with a line of text, or if the line after the
    block is indented more than the key.
    """
    indentation = len(lines[first]) - len(lines[first].lstrip(" ")) if first < len(lines) else 0
    if indentation <= column or lines[first].isspace():
        raise _OtherLayoutError
    end = first
    while end < len(lines) and (not lines[end] or lines[end].startswith(" " * indentation)):
        end += 1
    rest = lines[end] if end < len(lines) else ""
    if len(rest) - len(rest.lstrip(" ")) > column:
        raise _OtherLayoutError
    return "\n".join(line[indentation:] for line in lines[first:end]).rstrip("\n"), end


def _general(lines: list[str]) -> Iterator[Any]:
    """Read `lines` with the general parser, which is imported only when it is needed."""
    from fairlead.api.text.yaml_documents import documents  # noqa: PLC0415

    return documents("\n".join(lines) + "\n")


def _json_text(tokens: Iterable[_Token]) -> bytes:  # noqa: C901, PLR0912 - one loop
    """Return the JSON text of the item that consists of `tokens`.

    Raises _OtherLayoutError if the general parser must read the item.

    `opened` holds (column, keys read so far) of each open collection, innermost last; a sequence
    has None instead of keys. `at` is the column of the innermost collection, and `keys` are its
    keys. A line with a dash belongs to the open sequence in the line's column. A line without a
    dash belongs to the open mapping in its column. All collections inside that sequence or mapping
    end before the line.

    `is_waiting` is True after a line with a key but no value. If the next line is in a deeper
    column, or has a dash in the same column, it begins the value of the key. Otherwise the value is
    null. `is_first` is True if the next member needs no comma before it.

    The function is a single loop without calls, because it processes millions of lines.
    """
    keys: set[str] | None = set()
    at, opened, pieces = 2, [(2, keys)], ["{"]
    is_first, is_waiting = True, False
    for column, dashes, key, value, piece in tokens:
        if is_waiting:
            is_waiting = False
            if column > at or (column == at and dashes):
                at, keys = column, None if dashes else set()
                opened.append((at, keys))
                pieces.append("[" if dashes else "{")
                is_first = True
            else:
                pieces.append("null")
        while at > column or (at == column and keys is None and not dashes):
            pieces.append("]" if keys is None else "}")
            opened.pop()
            is_first = False
            if not opened:
                raise _OtherLayoutError
            at, keys = opened[-1]
        if at != column or (keys is None) != (dashes > 0):
            raise _OtherLayoutError
        if not is_first:
            pieces.append(",")
        is_first = False
        if dashes:
            _begin_element(opened, pieces, column, dashes, has_key=key != "")
            at, keys = opened[-1]
        if key:
            if keys is None or key in keys:
                raise _OtherLayoutError
            keys.add(key)
        if len(opened) > DEPTH_MAX:
            raise _OtherLayoutError
        pieces.append(piece)
        is_waiting = not value
    if is_waiting:
        pieces.append("null")
    pieces += ["]" if keys is None else "}" for _, keys in reversed(opened)]
    return "".join(pieces).encode()


def _begin_element(
    opened: list[_Open], pieces: list[str], column: int, dashes: int, *, has_key: bool
) -> None:
    """Open the sequences and the mapping that begin on one line, such as `- - a: 1`.

    `has_key` is True if a key follows the dashes, so that a mapping begins.
    """
    for number in range(1, dashes):
        opened.append((column + 2 * number, None))
        pieces.append("[")
    if has_key:
        opened.append((column + 2 * dashes, set()))
        pieces.append("{")


def _tokenized(line: str) -> _Token | None:
    matched = _LINE.fullmatch(line)
    if matched is None:
        return None
    blanks, dashes, key, value, element = matched.groups()
    count = len(dashes) // 2
    try:
        if element is not None:
            found = _scalar(element) if count else None
            return None if found is None else (len(blanks), count, "", found, found)
        found = "" if value is None else _scalar(value)
        if found is None:
            return None
        name = _encode(key_text(key)).decode() + ":"
        return len(blanks), count, name, found, name + found
    except ScalarError:
        return None


def _scalar(text: str) -> str | None:
    """Return the YAML `text` as JSON if it is a simple scalar, {} or []; otherwise None."""
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
