"""Parses JSON texts.

If an object repeats a member, the last value counts; `Repeating` also keeps the earlier values.

upstream: sigs.k8s.io/json, which is case-sensitive and reports duplicates,
encoding/json/scanner.go
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import msgspec

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.api.text.nesting import DEPTH_MAX, TOO_DEEP, is_too_deep, items_of

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
NOT_PLAIN: Final = object()
_SPACED: Final = b'": '
_SAMPLE_BYTES: Final = 64
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
_EACH_BYTE: Final = "fairlead-each-byte"
# An integer with more digits may exceed the range of a double.
_DIGITS_MAX: Final = 308


def _replaced(cause: UnicodeError) -> tuple[str, int]:
    # upstream: encoding/json decode.go:unquoteBytes replaces invalid UTF-8 byte by byte
    assert isinstance(cause, UnicodeDecodeError)
    return "\ufffd" * (cause.end - cause.start), cause.end


codecs.register_error(_EACH_BYTE, _replaced)


class JsonError(ValueError):
    """The text is not JSON; the message is Go's."""


class Repeating(dict[str, Any]):
    """A JSON object in which a member is repeated; `pairs` also contains the repetitions."""

    pairs: list[tuple[str, Any]]


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; an object with a repeated member is a `Repeating`.

    Lone surrogates and invalid UTF-8 bytes become U+FFFD, so the value can be encoded again. Raises
    JsonError for invalid JSON, for numbers beyond a double's range, and for values nested deeper
    than DEPTH_MAX.
    """
    raw: bytes | str = text
    if isinstance(text, bytes):
        value = parse_plain(text)
        if value is not NOT_PLAIN:
            return value
        text = text.decode(errors=_EACH_BYTE)
    if may_have_surrogates(text):
        text = _ESCAPE.sub(_whole, text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as cause:
        seen = raw.decode(errors="surrogateescape") if isinstance(raw, bytes) else raw
        raise JsonError(json_problem(cause, seen)) from None
    except JsonError:
        raise
    except RecursionError:
        raise _too_deep(text) from None
    if text.count("[") + text.count("{") > DEPTH_MAX and is_too_deep(value, _items):
        raise _too_deep(text)
    return value


def parse_plain(text: bytes) -> Any:
    """Return the value of a compact JSON text; NOT_PLAIN if `text` is not compact.

    A text is compact if encoding its value gives the same text again. Line feeds at the end of the
    text do not matter.
    """
    if _SPACED in text[:_SAMPLE_BYTES]:
        return NOT_PLAIN
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return NOT_PLAIN
    if _encode(value) != text.rstrip(b"\n"):
        return NOT_PLAIN
    # In a chain of nested containers, only the innermost can be empty. Therefore a value that is
    # deeper than DEPTH_MAX has at least DEPTH_MAX containers that are not empty.
    filled = text.count(b"[") + text.count(b"{") - text.count(b"[]") - text.count(b"{}")
    return NOT_PLAIN if filled >= DEPTH_MAX and is_too_deep(value) else value


def may_have_surrogates(text: str) -> bool:
    """Return whether `text` may contain escaped surrogates."""
    return _HALF.search(text) is not None


def _whole(found: re.Match[str]) -> str:
    return r"\ufffd" if found["half"] else found[0]


def _object(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    repeating = Repeating(made)
    repeating.pairs = pairs
    return repeating


def _items(outer: Json | list[Any]) -> Iterable[Any]:
    return (value for _, value in outer.pairs) if isinstance(outer, Repeating) else items_of(outer)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        _number(text)
    return int(text)


def _too_deep(text: str) -> JsonError:
    found = "[" if text.count("[") > text.count("{") else "{"
    return JsonError(f"invalid character '{found}' {TOO_DEEP}")


def _refused(name: str) -> NoReturn:
    raise JsonError(f"invalid character '{name[0]}' looking for beginning of value")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_constant=_refused,
    parse_float=_number,
    parse_int=_integer,
)


def json_kind(value: Any) -> str:
    """Return the name that Go's decoder uses for the type of a JSON value other than null."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


# --- syntax errors -------------------------------------------------------------------------------

# Go scans byte by byte and stops at the first byte that is not allowed. A text that ends too early
# is scanned as if a space followed. Python's decoder reports where it stopped and what it expected.
# `_Scanner` continues from there in the way that Go scans.

END: Final = "unexpected end of JSON input"
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_DIGITS: Final = re.compile("[0-9]*")
# The valid part of a string, from its opening quote.
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')
_OF_NUMBERS: Final = "0123456789+-.eE"
_WORDS: Final = {"t": "true", "f": "false", "n": "null"}
_HEX: Final = "0123456789abcdefABCDEF"
# Characters that open or close a container, outside strings.
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{\]}]', re.DOTALL)


class _FoundError(Exception):
    """The syntax error that was found."""


def json_problem(cause: json.JSONDecodeError, text: str) -> str:
    """Return Go's message about `text`, which Python's decoder rejected with the error `cause`.

    Invalid UTF-8 bytes are surrogates in `text` (`surrogateescape`).
    """
    try:
        _Scanner(text, cause.pos).after(cause.msg)
    except _FoundError as found:
        return str(found)


class _Scanner:
    """Scans JSON text as Go does, from the position where Python's decoder stopped.

    `_at` is the offset of the next character.
    """

    def __init__(self, text: str, start: int) -> None:
        self._text = text + " "
        self._at = start

    def after(self, expected: str) -> NoReturn:
        """Find the syntax error and raise it as _FoundError.

        `expected` is the message of Python's JSONDecodeError, such as `Expecting ',' delimiter`.
        """
        if expected == "Unterminated string starting at":
            self._pass_over(_STRING)
            self._string()
        if expected.startswith("Invalid "):
            if expected.endswith("escape"):
                self._step_back()
            self._string()
        if self._is_within_number():
            self._number()
        self._pass_over(_BLANKS)
        match expected:
            case "Extra data":
                self._refuse("after top-level value")
            case "Expecting property name enclosed in double quotes":
                self._refuse("looking for beginning of object key string")
            case "Expecting ':' delimiter":
                self._refuse("after object key")
            case "Expecting ',' delimiter":
                self._refuse(f"after {self._container()}")
            case _:
                self._value()

    def _value(self) -> NoReturn:
        first = self._character()
        if first == "-":
            self._number()
        for letter in _WORDS.get(first, "")[1:]:
            self._at += 1
            if self._character() != letter:
                self._refuse(f"in literal {_WORDS[first]} (expecting {_shown(letter)})")
        self._refuse("looking for beginning of value")

    def _string(self) -> NoReturn:
        """Raise the error of a malformed string; its valid part ends before the position `_at`.

        The character at `_at` begins an illegal escape, is a control character, or ends the text.
        """
        if self._character() != "\\":
            if self._at == len(self._text) - 1:
                raise _FoundError(END)
            self._refuse("in string literal")
        self._at += 1
        if self._character() != "u":
            self._refuse("in string escape code")
        for _ in range(4):
            self._at += 1
            self._require(_HEX, r"in \u hexadecimal character escape")
        raise _FoundError(END)

    def _step_back(self) -> None:
        """Move back to the backslash of an escape, if the decoder stopped inside it."""
        start = self._text.rfind("\\", 0, self._at + 1)
        if "u" in self._text[start : self._at + 1]:
            self._at = start

    def _is_within_number(self) -> bool:
        """Return whether the decoder stopped inside a number."""
        start = self._at
        while start and self._text[start - 1] in _OF_NUMBERS:
            start -= 1
        read = self._text[start : self._at].lower()
        match self._text[self._at]:
            case ".":
                return bool(read) and "." not in read and "e" not in read
            case "e" | "E":
                return bool(read) and "e" not in read
            case _:
                return False

    def _number(self) -> None:
        """Move `_at` to the end of a number; raise the error if the number is malformed.

        Before the call, `_at` is the position of the number's sign, decimal point or exponent.
        """
        if self._character() == "-":
            self._at += 1
            self._require("0123456789", "in numeric literal")
        if self._character() == ".":
            self._at += 1
            self._require("0123456789", "after decimal point in numeric literal")
            self._pass_over(_DIGITS)
        if self._character() in "eE":
            self._at += 1
            if self._character() in "+-":
                self._at += 1
            self._require("0123456789", "in exponent of numeric literal")
            self._pass_over(_DIGITS)

    def _pass_over(self, pattern: re.Pattern[str]) -> None:
        matched = pattern.match(self._text, self._at)
        self._at = matched.end() if matched else self._at

    def _require(self, allowed: str, context: str) -> None:
        if self._character() not in allowed:
            self._refuse(context)

    def _character(self) -> str:
        if self._at >= len(self._text):
            raise _FoundError(END)
        return self._text[self._at]

    def _container(self) -> str:
        """Return Go's term for an element of the innermost list or object that is still open."""
        depth: list[str] = []
        for found in _STRUCTURE.finditer(self._text, 0, self._at):
            match found[0]:
                case "[" | "{":
                    depth.append(found[0])
                case "]" | "}" if depth:
                    depth.pop()
        return "array element" if depth and depth[-1] == "[" else "object key:value pair"

    def _refuse(self, context: str) -> NoReturn:
        raise _FoundError(f"invalid character {_shown(self._character())} {context}")


def _shown(character: str) -> str:
    # upstream: encoding/json/scanner.go:quoteChar, which prints the first byte as Latin-1
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    byte = character.encode("utf-8", "surrogateescape")[:1].decode("latin-1")
    return f"'{quoted(byte)[1:-1]}'"
