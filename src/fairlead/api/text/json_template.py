"""JsonTemplate: a JSON text with placeholders for strings, used to decode similar texts quickly.

The JSON texts of a workload's pods differ only in a few strings: names, addresses, times. Only one
of these texts is decoded. To get the value of another text, the decoded value is copied, and these
strings are replaced in the copy.

    sample     {"name": "web-x2k", "image": "web:1", "nodeName": "n1"}
    another    {"name": "web-b7q", "image": "web:1", "nodeName": "n3"}
    template   {"name": "▯", "image": "web:1", "nodeName": "▯"}        strings  "web-b7q", "n3"

The parts between the placeholders are compared as bytes, which takes a tenth of the time of
decoding. To find the places of the strings in the decoded value, the template is decoded once with
a marker in each placeholder.

`JsonTemplate.strings` returns None if a placeholder contains a backslash or an unprintable
character. The JSON text of such a string may differ from the string's value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress, count, pairwise, repeat
from operator import itemgetter, ne
from struct import unpack
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import astuple, force_setattr

_ESCAPE: Final = b"\\"
_STRING: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_QUOTE: Final = b'"'
_MARK: Final = "\x7f"  # starts a marker; a text with this character gets no template
_ESCAPED_MARK: Final = re.compile(rb"\\u007[fF]")
_BETWEEN: Final = "\n"
_PRINTABLE_ASCII: Final = bytes(range(0x20, 0x7F)) + _BETWEEN.encode()
# Frequent searches for a single byte search for its code. For `bytes in bytes`, Python 3.11 first
# raises a TypeError and catches it, because the left side is not an integer.
_QUOTE_CODE, _ESCAPE_CODE, _MARK_CODE = (ord(one) for one in (_QUOTE, _ESCAPE, _MARK))
_LAYOUTS_MAX: Final = 16
_encode: Final = msgspec.json.Encoder().encode

Value = TypeVar("Value")
Places = Mapping[Any, "Places | int"] | int
"""The places of strings in a value: by field, key or index; a leaf is the number of a string."""
_Below = Sequence[tuple[Any, int]]
_Inner = Sequence[tuple[Any, Callable[[Sequence[str]], Any]]]


class JsonTemplate:
    """The JSON texts that equal a sample except for the contents of some of its strings.

    Each string that may differ is a placeholder. Placeholders are numbered from 0. The strings of
    most placeholders can be inserted into a copy of the decoded sample. The set `opaque` contains
    the numbers of the other placeholders, whose strings are keys of JSON objects or may contain
    escape sequences. The method `text` needs the strings of all placeholders.
    """

    def __init__(
        self, pieces: list[bytes], variable: frozenset[int], opaque: frozenset[int] = frozenset()
    ) -> None:
        """Create a template from `pieces`, the pieces of a sample (see `pieces_of`).

        In `pieces`, the strings that may differ have the indices `variable`. These indices are odd,
        because `pieces_of` gives strings odd indices. The strings that may differ are numbered from
        0 in the order of their indices.
        """
        # The pieces are not kept, because they take six times as much memory as the sample.
        self._variable = variable
        self.opaque = opaque
        self._sampled = [pieces[index] for index in sorted(variable)]
        bounds = [-1, *sorted(variable), len(pieces)]
        # the text before, between and after the placeholders, with the quotes around them
        self._first, *self._others = (
            _QUOTE * (before >= 0)
            + _QUOTE.join(pieces[before + 1 : after])
            + _QUOTE * (after < len(pieces))
            for before, after in pairwise(bounds)
        )
        self._parts = (self._first, *self._others)
        # {length of a text: the lengths of its parts and strings, as a format of `struct`}; see
        # `_guessed`
        self._layouts: dict[int, str] = {}

    @classmethod
    def between(cls, pieces: list[bytes], others: list[bytes]) -> JsonTemplate | None:
        """Return the template that accepts the texts of `pieces` and `others`.

        The template has placeholders only for the strings in which these texts differ. The text of
        `pieces` is the sample. Returns None if `_differing` returns None.
        """
        differing = _differing(pieces, others)
        return None if differing is None else cls(pieces, differing)

    def extended(self, pieces: list[bytes]) -> JsonTemplate | None:
        """Return a template that accepts all texts of this template, and the text of `pieces`.

        Returns None if `_differing` returns None for the `sample` and this text.
        """
        own = pieces_of(self.sample)
        differing = _differing(own, pieces)
        return None if differing is None else JsonTemplate(own, self._variable | differing)

    def strings(self, text: bytes | memoryview) -> list[str] | None:
        """Return the strings in the placeholders of `text`; None if `text` does not match.

        A memoryview is copied to bytes only if the quick search (`_guessed`) finds nothing.
        """
        found = self._guessed(text)
        if found is None:
            found = self._searched(bytes(text))
        if found is None:
            return None
        joined = _BETWEEN.encode().join(found)
        strings = joined.decode().split(_BETWEEN)
        if len(strings) != len(found) or _ESCAPE_CODE in joined:
            return None
        # Nearly all strings are printable ASCII. `isprintable` takes several times as long.
        others = joined.translate(None, _PRINTABLE_ASCII)
        return None if others and not "".join(strings).isprintable() else strings

    def _guessed(self, text: bytes | memoryview) -> tuple[bytes, ...] | None:
        """Return what `_searched` would return, in a third of the time, or None.

        The strings in `text` are assumed to have the same lengths as those in an earlier text that
        was equally long. Most pods of a workload have such strings. The result is None if the
        lengths differ, or if there was no earlier text of this length.
        """
        layout = self._layouts.get(len(text))
        if layout is None:
            return None
        pieces: tuple[bytes, ...] = unpack(layout, text)
        parts, found = pieces[::2], pieces[1::2]
        # A quote would end the string, so the string would be shorter than assumed.
        if parts != self._parts or _QUOTE_CODE in b"".join(found):
            return None
        return found

    def _searched(self, text: bytes) -> tuple[bytes, ...] | None:
        """Return the bytes in the placeholders of `text`; None if `text` does not match."""
        if not text.startswith(self._first):
            return None
        found = []
        begin = len(self._first)
        layout = [f"{begin}s"]
        for part in self._others:
            end = text.find(_QUOTE, begin)
            if end < 0 or not text.startswith(part, end):
                return None
            found.append(text[begin:end])
            layout.append(f"{end - begin}s{len(part)}s")
            begin = end + len(part)
        if begin != len(text):
            return None
        if len(self._layouts) < _LAYOUTS_MAX and len(text) not in self._layouts:
            self._layouts[len(text)] = "".join(layout)
        return tuple(found)

    def text(self, strings: Iterable[str]) -> bytes:
        """Return the text that has `strings` in the placeholders."""
        return self._text(one.encode() for one in strings)

    def _text(self, strings: Iterable[bytes]) -> bytes:
        between = zip(strings, self._others, strict=True)
        return b"".join((self._first, *chain.from_iterable(between)))

    @property
    def sample(self) -> bytes:
        """A text that matches this template."""
        return self._text(self._sampled)

    @property
    def marked(self) -> bytes:
        """The sample with a marker in place of each string that may differ.

        `places_in` finds the markers in the decoded text.
        """
        return self.text(map(marker, range(len(self._sampled))))


class TemplateText:
    """A JSON text that is stored as its template and the strings in the placeholders."""

    __slots__ = ("_strings", "template")

    def __init__(self, template: JsonTemplate, strings: Sequence[str]) -> None:
        """`strings` are the contents of the placeholders, escaped as in JSON."""
        self.template = template
        self._strings = strings

    @property
    def strings(self) -> Sequence[str]:
        """The contents of the placeholders, escaped as in JSON."""
        return self._strings

    def __bytes__(self) -> bytes:
        return self.template.text(self.strings)


class _RowText(TemplateText):
    """A text of a TemplateRows; its strings are collected from the columns at each access.

    Most of these texts are never read.
    """

    __slots__ = ("_columns", "_index")

    def __init__(
        self, template: JsonTemplate, columns: Sequence[Sequence[str]], index: int
    ) -> None:
        """Create a text; its strings are the item at `index` of each column in `columns`."""
        self.template = template
        self._columns = columns
        self._index = index

    @property
    def strings(self) -> Sequence[str]:
        """The contents of the placeholders, escaped as in JSON."""
        index = self._index
        return [column[index] for column in self._columns]


class TemplateRows:
    """JSON texts of one template, which differ only in the strings of its placeholders.

    `columns` has one column for each placeholder. Item `i` of a column is the string in text `i`.
    """

    def __init__(
        self, template: JsonTemplate, columns: Sequence[Sequence[str]], count: int
    ) -> None:
        """`columns` has a column for each placeholder, and `count` is the length of a column.

        A column contains strings, escaped as in JSON.
        """
        self.template = template
        self.columns = columns
        self._count = count

    @classmethod
    def of(cls, template: JsonTemplate, rows: Sequence[Sequence[str]]) -> TemplateRows:
        """Return TemplateRows with one text for each of `rows`.

        Each text is `template` with the row's strings in its placeholders. There must be at least
        one row.
        """
        return cls(template, tuple(zip(*rows, strict=True)), len(rows))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> TemplateText:
        """Return the text at `index`, which must be less than the number of texts."""
        return _RowText(self.template, self.columns, index)

    def __iter__(self) -> Iterator[TemplateText]:
        if not self.columns:
            return repeat(TemplateText(self.template, ()), self._count)
        return map(partial(TemplateText, self.template), zip(*self.columns, strict=True))

    @classmethod
    def joined(cls, parts: Sequence[TemplateRows]) -> TemplateRows:
        """Return the texts of all `parts`.

        There must be at least one part, and all parts must have the same template.
        """
        columns = zip(*(one.columns for one in parts), strict=True)
        together = [list(chain.from_iterable(some)) for some in columns]
        return cls(parts[0].template, together, sum(map(len, parts)))

    def part(self, begin: int, end: int) -> TemplateRows:
        """Return the texts whose index is at least `begin` and less than `end`."""
        if end - begin == self._count:
            return self
        columns = [column[begin:end] for column in self.columns]
        return TemplateRows(self.template, columns, end - begin)

    def sorted_by(self, number: int) -> TemplateRows:
        """Return the texts sorted by the string in the placeholder with the number `number`.

        Returns `self` if the texts are already in order.
        """
        key = self.columns[number]
        order = sorted(range(self._count), key=key.__getitem__)
        if order == list(range(self._count)):
            return self
        in_order = itemgetter(*order)
        # Columns that are the same list stay one list.
        made = {id(column): list(in_order(column)) for column in self.columns}
        columns = [made[id(column)] for column in self.columns]
        return TemplateRows(self.template, columns, self._count)


def pieces_of(text: bytes) -> list[bytes]:
    """Split a JSON text at its quotes; the contents of strings have odd indices."""
    return _STRING.split(text) if _ESCAPE in text else text.split(_QUOTE)


def _differing(sample: list[bytes], pieces: list[bytes]) -> frozenset[int] | None:
    """Return the indices of the strings in which `pieces` differs from `sample`.

    Returns None if the texts differ in more than string values. Also returns None if the text of
    `pieces` contains the character with which every marker begins (see `marker`). In such a text, a
    string could be mistaken for a marker.
    """
    if len(pieces) != len(sample) or pieces[::2] != sample[::2]:
        return None
    if has_marks(_QUOTE.join(pieces)):
        return None
    differing = frozenset(compress(count(), map(ne, pieces, sample)))
    if any(pieces[index + 1].lstrip().startswith(b":") for index in differing):
        return None  # the string is a key
    return differing


def has_marks(text: bytes) -> bool:
    """Return whether `text` contains the character with which every marker begins (see `marker`).

    Such a text must not become a template, because its strings could be mistaken for markers.
    """
    if _MARK.encode() in text:
        return True
    return _ESCAPE in text and _ESCAPED_MARK.search(text) is not None


def marker(number: int) -> str:
    """Return the string by which `places_in` recognizes the placeholder number `number`."""
    return f"{_MARK}{number}"


def places_in(value: object) -> Places | None:
    """Return the places of the markers in `value`; None if `value` contains no marker.

    `value` is decoded from a text that `JsonTemplate.marked` returned.
    """
    if isinstance(value, str):
        return int(value[1:]) if value.startswith(_MARK) else None
    # Most parts contain no marker, and this search is faster than a visit of each item.
    if _MARK_CODE not in _encode(value):
        return None
    below: Any = ()
    if isinstance(value, msgspec.Struct):
        below = zip(value.__struct_fields__, astuple(value), strict=True)
    elif isinstance(value, dict):
        below = value.items()
    elif isinstance(value, list | tuple):
        below = enumerate(value)
    found = {key: places for key, item in below if item and (places := places_in(item)) is not None}
    return found or None


def substitution(value: Value, places: Places | None) -> Callable[[Sequence[str]], Value]:
    """Return a function that receives strings, and returns a copy of `value` with them at `places`.

    The copy and `value` share all parts in which no string is replaced. If `places` is None, the
    function returns `value` itself.
    """
    return (lambda _: value) if places is None else _substitution(value, places)


def _substitution(value: Any, places: Places) -> Callable[[Sequence[str]], Any]:
    if isinstance(places, int):
        return itemgetter(places)
    below = [(key, place) for key, place in places.items() if isinstance(place, int)]
    inner = [
        (key, _substitution(_member(value, key), place))
        for key, place in places.items()
        if not isinstance(place, int)
    ]
    if isinstance(value, msgspec.Struct):
        return partial(_copied_struct, value.__copy__, below, inner)  # type: ignore[attr-defined]
    make = dict if isinstance(value, dict) else list
    made = partial(_copied, partial(make, value), below, inner)
    return (lambda strings: tuple(made(strings))) if isinstance(value, tuple) else made


def _member(value: Any, key: Any) -> Any:
    return getattr(value, key) if isinstance(value, msgspec.Struct) else value[key]


def _copied_struct(
    copy: Callable[[], msgspec.Struct], below: _Below, inner: _Inner, strings: Sequence[str]
) -> msgspec.Struct:
    made = copy()
    for field, number in below:
        force_setattr(made, field, strings[number])
    for field, part in inner:
        force_setattr(made, field, part(strings))
    return made


def _copied(copy: Callable[[], Any], below: _Below, inner: _Inner, strings: Sequence[str]) -> Any:
    made = copy()
    for key, number in below:
        made[key] = strings[number]
    for key, part in inner:
        made[key] = part(strings)
    return made
