"""JSON values as the language that upstream is written in prints them in refusals.

upstream: fmt's %v for map[string]interface{}, []interface{}
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from fairlead.api.field_problem import quoted

# What upstream writes in JSON by its number: signs of HTML, ends of lines, two controls.
_ESCAPE: Final = re.compile("\\\\.|[<>&\u2028\u2029]")
_MARKUP: Final = re.compile("[<>&\u2028\u2029]")
_NUMBERS: Final = {"\\b": "\\u0008", "\\f": "\\u000c"}
_EXPONENTS: Final = range(-4, 6)  # of numbers that are written without one


def go_text(value: Any) -> str:
    """`map[a:1 b:[x y]]`: keys in order, texts without quotes, null as <nil>."""
    match value:
        case dict():
            members = " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value))
            return f"map[{members}]"
        case list():
            return f"[{' '.join(map(go_text, value))}]"
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case _:
            return str(value)


def go_verb(value: Any) -> str:
    """A value that stands where a text was expected: `%!s(int64=1)`, but texts as they are."""
    # upstream: fmt's %s
    match value:
        case str():
            return value
        case dict():
            members = " ".join(f"{key}:{go_verb(value[key])}" for key in sorted(value))
            return f"map[{members}]"
        case list():
            return f"[{' '.join(map(go_verb, value))}]"
        case None:
            return "%!s(<nil>)"
        case _:
            return f"%!s({go_kind(value)}={go_text(value)})"


def go_float(value: float) -> str:
    """`1000`, `2.5`, `1e+06`: as few digits as tell a number from all others."""
    # upstream: strconv/ftoa.go:%g writes an exponent below -4, and from 6 on
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    point = len(digits) + exponent
    if _EXPONENTS.start <= point - 1 < _EXPONENTS.stop:
        return f"{Decimal((sign, digits, exponent)):f}"
    shown = "".join(map(str, digits))
    fraction = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{'-' * sign}{shown[0]}{fraction}e{point - 1:+03d}"


def go_syntax(value: Any) -> str:
    """`map[string]interface {}{"a":1}`: a value as a program has it, members in order."""
    match value:
        case dict():
            members = ", ".join(f"{quoted(key)}:{go_syntax(value[key])}" for key in sorted(value))
            return f"{go_kind(value)}{{{members}}}"
        case list():
            return f"{go_kind(value)}{{{', '.join(map(go_syntax, value))}}}"
        case str():
            return quoted(value)
        case None:
            return "interface {}(nil)"
        case _:
            return go_text(value)


def go_kind(value: Any) -> str:
    """`string`, `map[string]interface {}`: the type of a decoded JSON value."""
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case str():
            return "string"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case _:
            return "<nil>"


def go_json(value: Any) -> str:
    """JSON as upstream's encoder writes it."""
    return _ESCAPE.sub(_by_number, msgspec.json.encode(value).decode())


def escaped(text: str) -> str:
    """A text of JSON with signs of HTML by their numbers, as upstream passes it on."""
    return _MARKUP.sub(_by_number, text)


def _by_number(found: re.Match[str]) -> str:
    mark = found[0]
    return f"\\u{ord(mark):04x}" if len(mark) == 1 else _NUMBERS.get(mark, mark)
