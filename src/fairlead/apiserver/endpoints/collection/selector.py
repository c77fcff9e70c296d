"""Label and field selectors of lists and watches.

upstream: apimachinery/pkg/fields/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.endpoints.collection.selectable_fields import NAME, reader
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.selectable_field import FieldReader
from fairlead.apiserver.storage.storage import Kept, value_of
from fairlead.apiserver.validation.meta.format import path_segment_problems

CACHE_SIZE: Final = 2_048
# Values that a missing field can have.
_VALUES_OF_MISSING: Final = ("", "false", "0")

_INVALID: Final = "invalid field selector: "
_OPERATOR: Final = re.compile("!=|==?")
_SPECIAL: Final = "\\,="

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One requirement of a field selector."""

    field: str
    value: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """Matches objects of one kind; no labels (None) and no terms match everything.

    `words` occur in the JSON text of every match, so that most encoded objects can be ruled out
    without decoding them.
    """

    labels: LabelSelector | None = None
    terms: tuple[FieldTerm, ...] = ()
    reads: tuple[FieldReader, ...] = ()
    words: tuple[bytes, ...] = ()

    @property
    def name(self) -> str:
        """The name that matches must have, "" for any."""
        return next((one.value for one in self.terms if one.field == NAME and one.is_equal), "")

    @property
    def is_everything(self) -> bool:
        """Whether every object matches."""
        return self.labels is None and not self.terms

    def selects(self, kept: Kept) -> bool:
        """Whether a stored object, possibly still encoded, matches."""
        if isinstance(kept, bytes) and not all(word in kept for word in self.words):
            return False
        return self.matches(value_of(kept))

    def matches(self, obj: Json) -> bool:
        """Whether `obj` matches."""
        if self.labels is not None:
            carried: Mapping[str, str] = obj["metadata"].get("labels") or {}
            if not selector_matches(self.labels, carried):
                return False
        return all(
            (read(obj) == term.value) == term.is_equal
            for term, read in zip(self.terms, self.reads, strict=True)
        )


def parsed_selectors(labels: str, fields: str) -> tuple[LabelSelector, tuple[FieldTerm, ...]]:
    """Parses both selectors, without checking the fields. Raises ApiError 400."""
    try:
        wanted = parse_selector(labels)
    except SelectorError as cause:
        raise bad_request(str(cause)) from None
    return wanted, _terms(fields)


@text_cache(maxsize=CACHE_SIZE)
def selection_predicate(kind: Kind, labels: str, fields: str, name: str = "") -> SelectionPredicate:
    """The predicate for two selectors and, if not "", a name. Raises ApiError 400."""
    wanted, terms = parsed_selectors(labels, fields)
    if name:
        terms = (FieldTerm(NAME, name, is_equal=True), *terms)
    reads = tuple(reader(kind, term.field) for term in terms)
    is_any = not wanted.match_labels and not wanted.match_expressions
    words = () if kind.custom else tuple(_words(wanted, terms))
    return SelectionPredicate(None if is_any else wanted, terms, reads, words)


def pinned_name(fields: str) -> str:
    """The metadata.name that a field selector requires.

    "" if it requires none, or is malformed.
    """
    try:
        terms = _terms(fields)
    except ApiError:
        return ""
    names = (term.value for term in terms if term.field == NAME and term.is_equal)
    name = next(names, "")
    return "" if path_segment_problems(name) else name


def _words(labels: LabelSelector, terms: tuple[FieldTerm, ...]) -> Iterator[bytes]:
    """Texts that occur in the JSON of every match."""
    for key, value in labels.match_labels.items():
        yield from (_encode(key), _encode(value))
    for one in labels.match_expressions:
        if one.operator == "In" and len(one.values) == 1:
            yield from (_encode(one.key), _encode(one.values[0]))
    for term in terms:
        if term.is_equal and term.value not in _VALUES_OF_MISSING:
            yield _encode(term.value)[1:-1]


def _terms(text: str) -> tuple[FieldTerm, ...]:
    # upstream: apimachinery/pkg/fields/selector.go:parseSelector
    terms = []
    for part in sorted(filter(None, _split(text))):
        found = _OPERATOR.search(part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, value = part[: found.start()], part[found.end() :]
        if field or value:
            terms.append(FieldTerm(field, _unescaped(value), is_equal=found[0] != "!="))
    return tuple(terms)


def _split(text: str) -> list[str]:
    """Split at commas that no backslash escapes."""
    parts, current, escaped = [], "", False
    for mark in text:
        if mark == "," and not escaped:
            parts.append(current)
            current = ""
            continue
        escaped = mark == "\\" and not escaped
        current += mark
    return [*parts, current]


def _unescaped(value: str) -> str:
    """`value` without escapes. Raises ApiError 400."""
    # upstream: apimachinery/pkg/fields/selector.go:UnescapeValue
    text, escaped = "", False
    for mark in value:
        if escaped and mark not in _SPECIAL:
            raise bad_request(f"{_INVALID}invalid escape sequence: \\{mark}")
        if not escaped and mark == "\\":
            escaped = True
            continue
        if not escaped and mark in _SPECIAL:
            raise bad_request(f"{_INVALID}unescaped character in value: {ord(mark)}")
        text += mark
        escaped = False
    if escaped:
        raise bad_request(f"{_INVALID}invalid escape sequence: \\")
    return text
