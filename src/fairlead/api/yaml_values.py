"""YAML text to JSON values, the way Kubernetes reads YAML.

PyYAML's C parser delivers events; this module builds plain values from them. Building them here
instead of with PyYAML's constructors settles what a dump of a cluster needs: timestamps and
sexagesimal-looking text stay strings, keys are always strings, a key given twice is refused or
told, NaN and infinity are refused (JSON has neither), aliases may not blow up, nesting is bounded
(PyYAML's constructor would break the process's stack), and it takes half the time. YAML 1.1's
yes/no/on/off are booleans, as kubectl takes them.
"""

from __future__ import annotations

import re
import sys
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

from fairlead.api.nesting import DEPTH_MAX

ALIASED_VALUES_MAX: Final = 1_000_000
_CHARACTERS_PER_VALUE: Final = 64  # a long text weighs as much as several short ones

_STANDARD_TAG: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = (None, "!", f"{_STANDARD_TAG}map", f"{_STANDARD_TAG}seq")
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_MAY_BE_A_NUMBER: Final = frozenset("0123456789+-.")
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_OTHER_BASE: Final = re.compile(r"([-+]?)(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER_CHARACTERS_MAX: Final = 400


# Told of a key that its mapping has already, and of its line, counted from 1.
OnRepeat = Callable[[str, int], object]


class YamlError(ValueError):
    """YAML that cannot be read; `line` counts from 1, 0 when unknown.

    `context` says in the middle of what the problem was met, "" when that is unknown.
    """

    def __init__(self, problem: str, line: int, context: str = "") -> None:
        """Keep the evidence."""
        told = f"{context} {problem}" if context else problem
        super().__init__(f"line {line}: {told}" if line else told)
        self.problem = problem
        self.line = line
        self.context = context


def documents(text: str | bytes, on_repeat: OnRepeat | None = None) -> Iterator[Any]:
    """The documents of `text` one after the other; an empty one is None. Raises YamlError.

    A key that is given twice is told to `on_repeat`, and its last value counts; without
    `on_repeat` it is refused.
    """
    try:
        parser = yaml.CSafeLoader(text)  # only its event interface is used
        while (event := parser.get_event()) is not None:
            match event:
                case DocumentStartEvent():
                    yield _Builder(parser, on_repeat).document()
                case StreamStartEvent() | StreamEndEvent():
                    pass
    except yaml.YAMLError as cause:
        raise _as_yaml_error(cause) from None


def _as_yaml_error(cause: yaml.YAMLError) -> YamlError:
    if isinstance(cause, yaml.MarkedYAMLError):
        mark = cause.problem_mark or cause.context_mark
        line = mark.line + 1 if mark is not None else 0
        return YamlError(cause.problem or "is not YAML", line, cause.context or "")
    if isinstance(cause, yaml.reader.ReaderError):
        return YamlError(f"holds a character that YAML does not allow ({cause.reason})", 0)
    return YamlError(str(cause), 0)


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError for what JSON cannot carry."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _MAY_BE_A_NUMBER:
        return text
    if _DECIMAL.fullmatch(text):
        return _integer(text.replace("_", ""), 10)
    if base := _OTHER_BASE.fullmatch(text):
        digits = base[2].replace("_", "")
        octal = digits[1:].isdigit() or digits[1:2] == "o"
        return _integer(base[1] + digits.replace("o", ""), 8 if octal else 0)
    if _FLOAT.fullmatch(text):
        return _float(text.replace("_", ""))
    if _NOT_JSON.fullmatch(text):
        raise ValueError(f"{text} is not a number that an object can hold")
    return text


def _integer(text: str, base: int) -> int:
    if len(text) > _INTEGER_CHARACTERS_MAX:
        raise ValueError(f"the integer {text[:20]}... is too long")
    value = int(text, base)
    try:
        float(value)
    except OverflowError:
        raise ValueError(f"the integer {text[:20]}... is too large a number") from None
    return value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large a number")
    return value


class _Open:
    """A collection being filled: its value, the key that waits for a value, its anchor."""

    __slots__ = ("anchor", "count_before", "key", "merges", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, count: int) -> None:
        self.value: Any = value
        self.key: str | None = None
        self.anchor = anchor
        self.count_before = count
        self.merges: list[Any] = []


class _Builder:
    """Builds one document; `document` is its only entrance.

    `_stack` holds the open collections, innermost last; `_count` counts the values built, those
    that an alias repeats included, so that a document of nested aliases is refused early.
    """

    def __init__(self, parser: Any, on_repeat: OnRepeat | None) -> None:
        self._parser = parser
        self._on_repeat = on_repeat
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._scalars: dict[str, Any] = {}
        self._count = 0
        self._aliased = 0
        self._result: Any = None

    def document(self) -> Any:
        """The value up to the document's end."""
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
        if event.anchor:
            self._anchors[event.anchor] = (value, weight)
        self._put(value, event)

    def _key(self, top: _Open, event: ScalarEvent) -> None:
        key = event.value
        if key in top.value:
            if self._on_repeat is None:
                raise _refusal(event, f"the key {key!r} is given twice")
            self._on_repeat(key, _line(event))
        top.key = sys.intern(key)

    def _scalar_value(self, event: ScalarEvent) -> Any:
        text = event.value
        if event.tag is not None and event.tag != "!":
            return self._tagged(event)
        return self._plain(event) if event.implicit[0] else text

    def _plain(self, event: ScalarEvent) -> Any:
        """The value of unquoted text; equal texts share one value."""
        text = event.value
        if text not in self._scalars:
            try:
                self._scalars[text] = plain_scalar(text)
            except ValueError as cause:
                raise _refusal(event, str(cause)) from None
        return self._scalars[text]

    def _tagged(self, event: ScalarEvent) -> Any:
        tag = (event.tag or "").removeprefix(_STANDARD_TAG)
        if tag in ("int", "float", "bool", "null"):
            return self._plain(event)
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
        self._stack.append(_Open(value, event.anchor, self._count))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        self._count += 1
        for merged in done.merges:
            for key, item in merged.items():
                done.value.setdefault(key, item)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, self._count - done.count_before)
        self._put(done.value, event)

    def _alias(self, event: AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise _refusal(event, f"the alias *{event.anchor} stands for nothing defined before it")
        value, size = self._anchors[event.anchor]
        self._count += size
        self._aliased += size
        if self._aliased > ALIASED_VALUES_MAX:
            raise _refusal(event, f"aliases repeat more than {ALIASED_VALUES_MAX} values")
        top = self._stack[-1] if self._stack else None
        if top is not None and top.key is None and type(top.value) is dict:
            raise _refusal(event, "a key must be text")
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
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
            top.value[top.key] = value
            top.key = None

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _refusal(event, "<< merges mappings only")
        top.merges.extend(sources)


def _refusal(event: Any, problem: str) -> YamlError:
    return YamlError(problem, _line(event))


def _line(event: Any) -> int:
    """Where an event begins, counted from 1."""
    line: int = event.start_mark.line
    return line + 1
