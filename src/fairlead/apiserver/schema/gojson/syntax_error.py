"""Go's error messages for texts that are not JSON.

Go scans byte by byte and stops at the first one that cannot follow; a text that ends too early is
scanned as if a space followed. Python's decoder reports where it stopped and what it expected; this
module scans on from there as Go does.

upstream: encoding/json/scanner.go
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from fairlead.api.text.field_problem import quoted

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
    """Go's message about `text`, which Python's decoder refused.

    Invalid UTF-8 bytes are surrogates in it (`surrogateescape`).
    """
    try:
        _Scanner(text, cause.pos).after(cause.msg)
    except _FoundError as found:
        return str(found)


class _Scanner:
    """Scans on from where the decoder stopped; `_at` is the next offset."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text + " "
        self._at = start

    def after(self, expected: str) -> NoReturn:
        """Find the error, given what Python's decoder expected. Raises _FoundError."""
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
        """Scan a string from an illegal escape or control character."""
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
        """Step back to the beginning of an escape."""
        start = self._text.rfind("\\", 0, self._at + 1)
        if "u" in self._text[start : self._at + 1]:
            self._at = start

    def _is_within_number(self) -> bool:
        """Whether the decoder stopped inside a number."""
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
        """Scan a number from its sign, point or exponent."""
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
        """Whether the innermost list or object is still open."""
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
    # upstream: encoding/json/scanner.go:quoteChar; the first byte, as Latin-1
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    byte = character.encode("utf-8", "surrogateescape")[:1].decode("latin-1")
    return f"'{quoted(byte)[1:-1]}'"
