"""Converts YAML text to JSON values, as Kubernetes reads YAML.

This module builds plain values from the events of PyYAML's C parser. PyYAML's own constructors
would take twice the time, and Kubernetes objects need other rules:
- texts that look like timestamps or sexagesimal numbers stay strings
- keys are always strings, and duplicate keys are refused or reported
- NaN and infinity are refused, because JSON has neither
- the expansion of aliases is limited
- nesting is limited; PyYAML's own constructors can overflow the stack if nesting is deep

YAML 1.1's yes/no/on/off are booleans, as in kubectl.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from fairlead.api.text.nesting import DEPTH_MAX
from fairlead.api.text.yaml_scalar import ScalarError, key_text, plain_scalar, tagged_scalar

ALIASED_VALUES_MAX: Final = 1_000_000
_CHARACTERS_PER_VALUE: Final = 64  # a long text counts as several short ones

_STANDARD_TAG: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = (None, "!", f"{_STANDARD_TAG}map", f"{_STANDARD_TAG}seq")


# called with a duplicate key and the line of its value, counted from 1, once that value has been
# read
OnRepeat = Callable[[str, int], object]


class YamlError(ValueError):
    """Raised if YAML cannot be parsed; `line` counts from 1 and is 0 if unknown.

    `context` is the construct that contains the problem, "" if unknown.
    """

    def __init__(self, problem: str, line: int, context: str = "", upstream: str = "") -> None:
        """Store the problem; `upstream` is the error message of upstream's Go library."""
        message = f"{context} {problem}" if context else problem
        super().__init__(f"line {line}: {message}" if line else message)
        self.problem = problem
        self.line = line
        self.context = context
        self.upstream = upstream or _upstream_message(problem, line)


class TooManyValuesError(YamlError):
    """Raised by `documents` if a document has more than `values_max` values."""


def documents(
    text: str | bytes,
    on_repeat: OnRepeat | None = None,
    *,
    values_max: int | None = None,
    plain: Callable[[str], Any] = plain_scalar,
) -> Iterator[Any]:
    """Yield the value of each document in `text`; an empty document is None.

    TooManyValuesError is raised as soon as a document has more than `values_max` values; None means
    no limit. Keys do not count. A string counts as one value, plus one for every 64 characters.

    `plain` returns the value of an unquoted scalar, and may raise ScalarError. `plain` is not
    called for keys.

    A duplicate key is reported to `on_repeat`, and its last value is used. If `on_repeat` is None,
    a duplicate key is an error. Raises YamlError if `text` cannot be parsed.
    """
    try:
        parser = yaml.CSafeLoader(text)  # only its event interface is used
        while (event := parser.get_event()) is not None:
            match event:
                case DocumentStartEvent():
                    yield _Builder(parser, on_repeat, values_max, plain).document()
                case StreamStartEvent() | StreamEndEvent():
                    pass
    except yaml.YAMLError as cause:
        raise _as_yaml_error(cause) from None


def _as_yaml_error(cause: yaml.YAMLError) -> YamlError:
    if isinstance(cause, yaml.MarkedYAMLError):
        mark = cause.problem_mark or cause.context_mark
        line = mark.line + 1 if mark is not None else 0
        problem = cause.problem or "is not YAML"
        return YamlError(problem, line, cause.context or "", _in_upstream_words(cause, problem))
    if isinstance(cause, yaml.reader.ReaderError):
        problem = f"holds a character that YAML does not allow ({cause.reason})"
        return YamlError(problem, 0, upstream=f"yaml: {cause.reason}")
    return YamlError(str(cause), 0)


def _in_upstream_words(cause: yaml.MarkedYAMLError, problem: str) -> str:
    # upstream: go.yaml.in/yaml/v2/decode.go:fail, which counts lines in two ways
    met, began = cause.problem_mark, cause.context_mark
    if met is not None and met.line:
        return _upstream_message(problem, met.line + isinstance(cause, yaml.scanner.ScannerError))
    return _upstream_message(problem, began.line if began is not None else 0)


def _upstream_message(problem: str, line: int) -> str:
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _OpenCollection:
    """A mapping or sequence that is being built.

    `key` is the key of the next value, and `is_repeated` is True if that key is a duplicate. `line`
    is the line on which the collection begins.
    """

    __slots__ = ("anchor", "count_before", "is_repeated", "key", "line", "merges", "value")

    def __init__(
        self, value: dict[str, Any] | list[Any], anchor: str | None, count: int, line: int
    ) -> None:
        self.value: Any = value
        self.key: str | None = None
        self.is_repeated = False
        self.line = line
        self.anchor = anchor
        self.count_before = count
        self.merges: list[Any] = []


class _Builder:
    """Builds one document; `document` is its only entry point.

    `_stack` holds the collections that are being built, innermost last. `_count` is the number of
    values that were built. A value that an alias repeats is counted again, so that a document of
    nested aliases is refused early.
    """

    def __init__(
        self,
        parser: Any,
        on_repeat: OnRepeat | None,
        values_max: int | None,
        plain: Callable[[str], Any],
    ) -> None:
        self._parser = parser
        self._value_of = plain
        self._on_repeat = on_repeat
        self._values_max = sys.maxsize if values_max is None else values_max
        self._stack: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._scalars: dict[str, Any] = {}
        self._count = 0
        self._aliased = 0
        self._result: Any = None

    def document(self) -> Any:
        """Read the parser's events up to the end of the document; return the document's value.

        Raises YamlError.
        """
        while True:
            event = self._parser.get_event()
            match event:
                case ScalarEvent():
                    self._scalar(event)
                case MappingStartEvent():
                    self._open({}, event)
                case SequenceStartEvent():
                    self._open([], event)
                case MappingEndEvent() | SequenceEndEvent():
                    self._close(event)
                case AliasEvent():
                    self._alias(event)
                case DocumentEndEvent():
                    return self._result

    def _scalar(self, event: ScalarEvent) -> None:
        top = self._stack[-1] if self._stack else None
        if top is not None and top.key is None and type(top.value) is dict:
            self._key(top, event)
            return
        value = self._scalar_value(event)
        weight = 1 + len(event.value) // _CHARACTERS_PER_VALUE
        self._count += weight
        if self._count > self._values_max:
            raise TooManyValuesError(f"has more than {self._values_max} values", _line(event))
        if event.anchor:
            self._anchors[event.anchor] = (value, weight)
        self._put(value, event)

    def _key(self, top: _OpenCollection, event: ScalarEvent) -> None:
        key = self._key_text(event)
        if key in top.value:
            if self._on_repeat is None:
                raise _refusal(event, f"the key {key!r} is given twice")
            top.is_repeated = True
        top.key = sys.intern(key)

    def _key_text(self, event: ScalarEvent) -> str:
        if event.tag is not None or not event.implicit[0]:
            return str(event.value)
        try:
            return key_text(event.value)
        except ScalarError as cause:
            raise _refusal(event, str(cause), cause.upstream) from None

    def _scalar_value(self, event: ScalarEvent) -> Any:
        text = event.value
        if event.tag is not None and event.tag != "!":
            return self._tagged(event)
        return self._plain(event) if event.implicit[0] else text

    def _plain(self, event: ScalarEvent) -> Any:
        """Return the value of an unquoted scalar; equal texts share the same value."""
        text = event.value
        if text not in self._scalars:
            try:
                self._scalars[text] = self._value_of(text)
            except ScalarError as cause:
                raise _refusal(event, str(cause), cause.upstream) from None
        return self._scalars[text]

    def _tagged(self, event: ScalarEvent) -> Any:
        tag = (event.tag or "").removeprefix(_STANDARD_TAG)
        try:
            if tag in ("int", "float", "bool", "null"):
                return tagged_scalar(tag, event.value)
            if tag == "binary":
                return b64decode(event.value).decode(errors="replace")
        except ScalarError as cause:
            raise _refusal(event, str(cause), cause.upstream) from None
        except ValueError as cause:
            raise _refusal(event, f"!!binary value contains invalid base64 data: {cause}") from None
        if tag in ("str", "timestamp"):
            return event.value
        raise _refusal(event, f"the tag {event.tag} is not supported")

    def _open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if len(self._stack) >= DEPTH_MAX:
            raise _refusal(event, f"is nested more than {DEPTH_MAX} levels deep")
        top = self._stack[-1] if self._stack else None
        if top is not None and top.key is None and type(top.value) is dict:
            raise _refusal(event, "a key must be text")
        if event.tag not in _COLLECTION_TAGS:
            raise _refusal(event, f"the tag {event.tag} is not supported")
        self._stack.append(_OpenCollection(value, event.anchor, self._count, _line(event)))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        self._count += 1
        if self._count > self._values_max:
            raise TooManyValuesError(f"has more than {self._values_max} values", _line(event))
        for merged in done.merges:
            for key, item in merged.items():
                done.value.setdefault(key, item)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._count - done.count_before)
        self._put(done.value, event, done.line)

    def _alias(self, event: AliasEvent) -> None:
        if event.anchor not in self._anchors:
            problem = f"the alias *{event.anchor} has no anchor before it"
            upstream = f"yaml: unknown anchor '{event.anchor}' referenced"
            raise _refusal(event, problem, upstream)
        value, size = self._anchors[event.anchor]
        self._count += size
        self._aliased += size
        if self._aliased > ALIASED_VALUES_MAX:
            raise _refusal(event, f"aliases repeat more than {ALIASED_VALUES_MAX} values")
        top = self._stack[-1] if self._stack else None
        if top is not None and top.key is None and type(top.value) is dict:
            raise _refusal(event, "a key must be text")
        self._put(value, event)

    def _put(self, value: Any, event: Any, line: int = 0) -> None:
        """Store `value` in the innermost collection.

        `line` is the line on which the value begins; 0 means the line of `event`.
        """
        if not self._stack:
            self._result = value
            return
        top = self._stack[-1]
        if type(top.value) is list:
            top.value.append(value)
        elif top.key == "<<":
            top.key = None
            self._merge(top, value, event)
        else:
            if top.is_repeated and top.key is not None and self._on_repeat is not None:
                self._on_repeat(top.key, line or _line(event))
            top.is_repeated = False
            top.value[top.key] = value
            top.key = None

    def _merge(self, top: _OpenCollection, value: Any, event: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            upstream = "yaml: map merge requires map or sequence of maps as the value"
            raise _refusal(event, "<< merges mappings only", upstream)
        top.merges.extend(sources)


def _refusal(event: Any, problem: str, upstream: str = "") -> YamlError:
    return YamlError(problem, _line(event), upstream=upstream)


def _line(event: Any) -> int:
    """Return the line on which an event begins, counted from 1."""
    line: int = event.start_mark.line
    return line + 1
