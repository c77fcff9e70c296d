"""Label and field selectors of lists and watches.

Every kind supports the field selector metadata.name, and most kinds support metadata.namespace. The
kind's strategy or CustomResourceDefinition lists the other fields that a selector can use.

upstream: apimachinery/pkg/fields/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.apiextensions.json_path import json_path
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.registry.strategy import FieldReader
from fairlead.apiserver.storage.storage import StoredObject, value_of
from fairlead.apiserver.validation.meta.format import path_segment_problems

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
NODE: Final = "spec.nodeName"
_ALWAYS_SELECTABLE: Final = (NAME, NAMESPACE)
CACHE_SIZE: Final = 2_048
# the values that a missing field can have as text: of a string, a boolean or a number
_VALUES_OF_MISSING: Final = ("", "false", "0")

_INVALID: Final = "invalid field selector: "
_OPERATOR: Final = re.compile("!=|==?")
_SPECIAL: Final = "\\,="

_encode: Final = msgspec.json.Encoder().encode


class FieldTerm(Struct, frozen=True):
    """One requirement of a field selector.

    If `is_equal` is True, `field` must equal `value`; otherwise, it must differ from `value`.
    """

    field: str
    value: str
    is_equal: bool


class SelectionPredicate(Struct, frozen=True):
    """Matches objects of one kind.

    If `labels` is None and there are no `terms`, every object matches. `reads` contains one
    function for each term. The function takes an object and returns the value of the term's field.

    `words` contains texts that occur in the JSON text of every matching object. An encoded object
    that lacks one of these texts is excluded without being decoded.
    """

    labels: LabelSelector | None = None
    terms: tuple[FieldTerm, ...] = ()
    reads: tuple[FieldReader, ...] = ()
    words: tuple[bytes, ...] = ()

    @property
    def name(self) -> str:
        """The name that a matching object must have; "" if no term requires one."""
        return next((one.value for one in self.terms if one.field == NAME and one.is_equal), "")

    @property
    def node_name(self) -> str:
        """The spec.nodeName that a matching object must have; "" if no term requires one."""
        return next((one.value for one in self.terms if one.field == NODE and one.is_equal), "")

    @property
    def is_everything(self) -> bool:
        """True if every object matches."""
        return self.labels is None and not self.terms

    def selects(self, stored: StoredObject) -> bool:
        """Return whether a stored object matches; the object may still be encoded."""
        if isinstance(stored, bytes) and not all(word in stored for word in self.words):
            return False
        return self.matches(value_of(stored))

    def matches(self, obj: Json) -> bool:
        """Return whether `obj` matches."""
        if self.labels is not None:
            carried: Mapping[str, str] = obj["metadata"].get("labels") or {}
            if not selector_matches(self.labels, carried):
                return False
        return all(
            (read(obj) == term.value) == term.is_equal
            for term, read in zip(self.terms, self.reads, strict=True)
        )


def parsed_selectors(labels: str, fields: str) -> tuple[LabelSelector, tuple[FieldTerm, ...]]:
    """Return (parsed label selector, terms of the field selector). Raises ApiError 400.

    The field names are not checked.
    """
    try:
        wanted = parse_selector(labels)
    except SelectorError as cause:
        raise bad_request(str(cause)) from None
    return wanted, _terms(fields)


@text_cache(maxsize=CACHE_SIZE)
def selection_predicate(kind: Kind, labels: str, fields: str, name: str = "") -> SelectionPredicate:
    """Return the predicate for two selectors and a name ("" for any name). Raises ApiError 400."""
    wanted, terms = parsed_selectors(labels, fields)
    if name:
        terms = (FieldTerm(NAME, name, is_equal=True), *terms)
    reads = tuple(_field_reader(kind, term.field) for term in terms)
    is_any = not wanted.match_labels and not wanted.match_expressions
    words = () if kind.custom else tuple(_words(wanted, terms))
    return SelectionPredicate(None if is_any else wanted, terms, reads, words)


def pinned_name(fields: str) -> str:
    """Return the metadata.name that a field selector requires.

    Return "" if the selector requires no name or is malformed, or if the name is not a valid path
    segment.
    """
    try:
        terms = _terms(fields)
    except ApiError:
        return ""
    names = (term.value for term in terms if term.field == NAME and term.is_equal)
    name = next(names, "")
    return "" if path_segment_problems(name) else name


def _words(labels: LabelSelector, terms: tuple[FieldTerm, ...]) -> Iterator[bytes]:
    """Yield texts that occur in the JSON text of every matching object."""
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
    """Return the parts of `text` between commas; a comma after a backslash does not separate."""
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
    """Return `value` without its backslash escapes. Raises ApiError 400 for an invalid escape."""
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


def _field_reader(kind: Kind, field: str) -> FieldReader:
    """Return a function that reads `field` of an object as text.

    Raises ApiError 400 if field selectors of `kind` do not support the field.
    """
    if field == NAME or (field == NAMESPACE and not _is_named_only(kind)):
        return _metadata(field.removeprefix("metadata."))
    if kind.custom is not None:
        return _selectable(kind.custom.selectable, field)
    strategy = strategy_of(kind)
    fields = strategy.selectable_in_version.get(kind.api_version, strategy.selectable_fields)
    if fields is not None:
        read = fields.get(field)
        if read is None:
            raise bad_request(strategy.unselectable_field.format(field))
        return read
    known = ", ".join(f'"{name}"' for name in _ALWAYS_SELECTABLE)
    raise bad_request(f'"{field}" is not a known field selector: only {known}')


def _is_named_only(kind: Kind) -> bool:
    """Return whether field selectors of `kind` reject metadata.namespace."""
    # upstream: AddFieldLabelConversionFunc in conversion.go of core, certificates and resource;
    # apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    is_custom = kind.custom is not None and not kind.namespaced
    return is_custom or not strategy_of(kind).selects_namespace


def _selectable(paths: tuple[str, ...], field: str) -> FieldReader:
    """Return a function that reads the field `field` of a custom resource as text.

    Raises ApiError 400 if `field` is not in `paths`, the paths of the selectable fields.
    """
    # upstream: apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    if f".{field}" not in paths:
        raise bad_request(f"field label not supported: {field}")
    path = json_path(f".{field}")

    def read(obj: Json) -> str:
        value = next(iter(path.find(obj)), "")
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _metadata(field: str) -> FieldReader:
    def read(obj: Json) -> str:
        text: str = obj["metadata"].get(field, "")
        return text

    return read
