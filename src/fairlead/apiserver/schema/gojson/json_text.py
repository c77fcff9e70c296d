"""Parses JSON texts, keeping repeated members; the last one counts.

upstream: sigs.k8s.io/json, which is case-sensitive and reports duplicates
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
from fairlead.api.text.nesting import DEPTH_MAX, TOO_DEEP, is_too_deep, items_of
from fairlead.apiserver.schema.gojson.syntax_error import json_problem

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
# A longer integer may exceed a double.
_DIGITS_MAX: Final = 308


def _replaced(cause: UnicodeError) -> tuple[str, int]:
    # upstream: encoding/json decode.go:unquoteBytes replaces invalid UTF-8 byte by byte
    assert isinstance(cause, UnicodeDecodeError)
    return "\ufffd" * (cause.end - cause.start), cause.end


codecs.register_error(_EACH_BYTE, _replaced)


class JsonError(ValueError):
    """A text that is not JSON, with Go's message."""


class Repeating(dict[str, Any]):
    """An object that repeats a member; `pairs` has all members in order."""

    pairs: list[tuple[str, Any]]


def parse_json(text: bytes | str) -> Any:
    """The value; objects that repeat members are `Repeating`. Raises JsonError.

    Lone surrogates and invalid UTF-8 bytes become U+FFFD, so the value can be encoded again.
    Numbers beyond a double's range, and values nested beyond DEPTH_MAX, are refused.
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
    """The value of a compact text, as most clients send it; NOT_PLAIN for any other text.

    A text is compact if encoding its value gives the same text again.
    """
    if _SPACED in text[:_SAMPLE_BYTES]:
        return NOT_PLAIN
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return NOT_PLAIN
    if _encode(value) != text.rstrip(b"\n"):
        return NOT_PLAIN
    # Of nested containers, only the innermost may be empty.
    filled = text.count(b"[") + text.count(b"{") - text.count(b"[]") - text.count(b"{}")
    return NOT_PLAIN if filled >= DEPTH_MAX and is_too_deep(value) else value


def may_have_surrogates(text: str) -> bool:
    """Whether `text` may contain escaped surrogates."""
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
        raise _beyond(text)
    return value


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        _number(text)
    return int(text)


def _beyond(number: str) -> JsonError:
    return JsonError(f"json: cannot unmarshal number {number} into Go value of type float64")


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
    """The name by which Go's decoder calls the type of a JSON value, which is not null."""
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
