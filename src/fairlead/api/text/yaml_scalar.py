"""The value of an unquoted YAML scalar, as Kubernetes reads YAML.

The booleans of YAML 1.1 are recognised, including the single letters `y` and `n`. Numbers may be
decimal, hexadecimal, octal or binary, and may contain underscores. A timestamp stays a string, and
so does a number beyond 64-bit floats, such as the git commit `78e8770191`. Infinity and NaN are
refused, because JSON has neither.

upstream: sigs.k8s.io/yaml/goyaml.v2/resolve.go, sigs.k8s.io/yaml/yaml.go:convertToJSONableObject
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES"), True),
    **dict.fromkeys(("true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO"), False),
    **dict.fromkeys(("false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_MAY_BE_A_NUMBER: Final = frozenset("0123456789+-.")
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OTHER_BASE: Final = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[bB]([01]+)|[oO]?([0-7]+))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# In a float that begins with a point, underscores are allowed only between digits.
_POINTED: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_NOT_JSON: Final = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
}
_UINT64: Final = 1 << 64
_INT64: Final = 1 << 63
_TEN: Final = 10
# longer numbers do not fit 64 bits, and int() needs time quadratic in their length
_DIGITS_MAX: Final = 400
_KINDS: Final = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}


class ScalarError(ValueError):
    """Raised for a scalar that JSON cannot represent, or that does not have the type of its tag."""

    def __init__(self, problem: str, upstream: str = "") -> None:
        """Store the problem; `upstream` is the error message of the Go library."""
        super().__init__(problem)
        self.upstream = upstream


def plain_scalar(text: str) -> Any:
    """Return the value of an unquoted scalar. Raises ScalarError if JSON cannot represent it."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _MAY_BE_A_NUMBER:
        return text
    if text in _NOT_JSON:
        problem = f"{text} is not a number that an object can hold"
        raise ScalarError(problem, f"json: unsupported value: {_NOT_JSON[text]}")
    if text[0] == ".":
        return _float(text.replace("_", ""), text) if _POINTED.fullmatch(text) else text
    return _number(text.replace("_", ""), text)


def argument_scalar(text: str) -> Any:
    """Return the value of an unquoted scalar on a command line.

    On a command line, words such as `y`, `no` and `Off` are usually names. Therefore only `true`
    and `false` are booleans, as in YAML 1.2. Raises ScalarError if JSON cannot represent the value.
    """
    value = plain_scalar(text)
    is_word = isinstance(value, bool) and text.lower() not in ("true", "false")
    return text if is_word else value


def tagged_scalar(tag: str, text: str) -> Any:
    """Return the value of a scalar tagged `int`, `float`, `bool` or `null`.

    Raises ScalarError if `text` is not of the type `tag`.
    """
    value = plain_scalar(text)
    found = _KINDS[type(value)]
    if found == tag:
        return value
    if (found, tag) == ("int", "float"):
        return float(value)
    problem = f"cannot decode !!{found} `{text}` as a !!{tag}"
    raise ScalarError(problem, f"yaml: {problem}")


def key_text(text: str) -> str:
    """Return an unquoted key as a JSON key; raises ScalarError if JSON cannot represent it."""
    if text not in _CONSTANTS and text[0] not in _MAY_BE_A_NUMBER:
        return text
    match plain_scalar(text):
        case bool() as truth:
            return "true" if truth else "false"
        case int() as number if -_INT64 <= number < _INT64:
            return str(number)
        case float() as number:
            return _float_key(number)
        case str():
            return text
        case _:
            problem = "a key must be text"
            raise ScalarError(problem, f"unsupported map key of type: {problem}")


def _number(plain: str, text: str) -> Any:
    if _DECIMAL.fullmatch(plain):
        return _integer(plain, 10, text)
    if base := _OTHER_BASE.fullmatch(plain):
        sign, hexadecimal, binary, octal = base.groups(default="")
        digits = hexadecimal or binary or octal
        made = _integer(sign + digits, 16 if hexadecimal else 2 if binary else 8, text)
        if made is not text:
            return made
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _integer(digits: str, base: int, text: str) -> Any:
    if base == _TEN and (len(digits) > _DIGITS_MAX or math.isinf(float(digits))):
        return _float(digits, text)
    if len(digits) > _DIGITS_MAX:
        return text
    value = int(digits, base)
    return value if base == _TEN or -_INT64 <= value < _UINT64 else text


def _float(plain: str, text: str) -> float | str:
    """Return the number `plain` as a float.

    If the number is too large for a float, return `text`, the scalar as it was written.

    upstream: strconv.ParseFloat returns ErrRange
    """
    value = float(plain)
    return text if math.isinf(value) else value


def _float_key(number: float) -> str:
    # Upstream formats the key as a 32-bit float. Here it gets six significant digits, which is
    # the same text for most keys.
    return str(int(number)) if number.is_integer() and abs(number) < 1 << 63 else f"{number:g}"
