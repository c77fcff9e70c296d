"""JSON values as Go's fmt verbs and encoding/json print them.

upstream: fmt/print.go, encoding/json/encode.go
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from fairlead.api.text.field_problem import quoted

# The characters that encoding/json writes as Unicode escapes.
_MARKUP: Final = re.compile("[<>&\u2028\u2029]")
_ESCAPED: Final = re.compile(r"\\.")
# Escapes for which json-iterator, unlike encoding/json since Go 1.22, writes Unicode escapes.
_CONTROL_ESCAPES: Final = {"\\b": "\\u0008", "\\f": "\\u000c"}
# The decimal exponents with which `%v` prints a number in positional notation, such as 0.0001.
_PLAIN_EXPONENTS: Final = range(-4, 6)


def format_v(value: Any) -> str:
    """Return `value` as Go's `%v` prints it: `map[a:1 b:[x y]]` with sorted keys, null as <nil>."""
    match value:
        case dict():
            members = " ".join(f"{key}:{format_v(value[key])}" for key in sorted(value))
            return f"map[{members}]"
        case list():
            return f"[{' '.join(map(format_v, value))}]"
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return format_float(value)
        case _:
            return str(value)


def format_s(value: Any) -> str:
    """Return `value` as Go's `%s` prints it; a number, for example, prints as `%!s(int64=1)`."""
    # upstream: fmt/print.go:printValue, badVerb
    match value:
        case str():
            return value
        case dict():
            members = " ".join(f"{key}:{format_s(value[key])}" for key in sorted(value))
            return f"map[{members}]"
        case list():
            return f"[{' '.join(map(format_s, value))}]"
        case None:
            return "%!s(<nil>)"
        case _:
            return f"%!s({type_name(value)}={format_v(value)})"


def format_float(value: float) -> str:
    """Return `value` as `%v` prints a float64: the shortest exact digits, such as `1e+06`."""
    # upstream: strconv/ftoa.go:formatDigits: %g writes an exponent that is below -4 or above 5
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    point = len(digits) + exponent
    if _PLAIN_EXPONENTS.start <= point - 1 < _PLAIN_EXPONENTS.stop:
        return f"{Decimal((sign, digits, exponent)):f}"
    shown = "".join(map(str, digits))
    fraction = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{'-' * sign}{shown[0]}{fraction}e{point - 1:+03d}"


def format_go_syntax(value: Any) -> str:
    """Return `value` as Go's `%#v` prints it, such as `map[string]interface {}{"a":1}`."""
    match value:
        case dict():
            members = ", ".join(
                f"{quoted(key)}:{format_go_syntax(value[key])}" for key in sorted(value)
            )
            return f"{type_name(value)}{{{members}}}"
        case list():
            return f"{type_name(value)}{{{', '.join(map(format_go_syntax, value))}}}"
        case str():
            return quoted(value)
        case None:
            return "interface {}(nil)"
        case _:
            return format_v(value)


def type_name(value: Any) -> str:
    """Return the Go type (`%T`) of a JSON value, such as `string` or `map[string]interface {}`."""
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


def json_text(value: Any) -> str:
    """Return `value` as encoding/json writes it, with `<`, `>`, `&`, U+2028 and U+2029 escaped."""
    return escape_html(msgspec.json.encode(value).decode())


def json_iterator_text(value: Any) -> str:
    r"""Return `value` as json-iterator writes it: like `json_text`, but with `\u0008` for `\b`."""
    # upstream: json-iterator/go/stream_str.go:writeStringSlowPathWithHTMLEscaped
    text = json_text(value)
    return _ESCAPED.sub(lambda found: _CONTROL_ESCAPES.get(found[0], found[0]), text)


def escape_html(text: str) -> str:
    """Return JSON text with `<`, `>`, `&`, U+2028 and U+2029 escaped, as json.HTMLEscape does."""
    return _MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
