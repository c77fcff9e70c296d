"""Quantities and semantic versions.

A quantity is a map with the one key `quantity`, a version one with `semver`, so that `==` compares
their canonical form and no other operator has an overload for them.

upstream: apiserver/pkg/cel/library/{quantity,semverlib}.go
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from fairlead.api.quantity import NANOS_PER_UNIT, Format, Quantity, canonical, parse_quantity
from fairlead.cel.function import (
    REAL,
    TEXT,
    TRUTH,
    VALUE,
    WHOLE,
    Function,
    Value,
    free,
    is_readable,
    member,
    of,
)

_QUANTITY: Final = "quantity"
_VERSION: Final = "semver"
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_LABELS: Final = r"[0-9A-Za-z.-]+"
_FORM: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_LABELS}))?(?:\+{_LABELS})?")


def quantity_value(text: str | float) -> Value:
    """A quantity as expressions see it. Raises ValueError."""
    return _quantity(parse_quantity(text))


def version_value(text: str) -> Value:
    """A semantic version as expressions see it. Raises ValueError."""
    _version_key(text)
    return {_VERSION: text}


def loose_version(text: str) -> str:
    """A semantic version of what is nearly one: `v01.2`. Raises ValueError.

    upstream: apiserver/pkg/cel/library/semverlib.go:normalizeAndParse
    """
    parts = [_number(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join((*parts, "0", "0")[:3] if len(parts) < 3 else parts)


def _number(part: str) -> str:
    """A part of a version without zeros before its digits."""
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1].isdecimal() else f"0{rest}"


def _quantity(quantity: Quantity) -> Value:
    return {_QUANTITY: canonical(quantity, Format.DECIMAL_SI)}


def _version_key(text: str) -> tuple[Any, ...]:
    """Sorts as versions do (semver.org, 11): a pre-release comes before its release."""
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise ValueError(_no_version(text))
    major, minor, patch, pre = matched.groups()
    numbers = (int(major), int(minor), int(patch))
    if pre is None:
        return (*numbers, 1)
    labels = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in pre.split("."))
    return (*numbers, 0, labels)


def _no_version(text: str) -> str:
    """Why a text is none."""
    parts = text.split(".", 2)
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    for name, part in zip(("major", "minor", "patch"), parts, strict=True):
        digits = re.split(r"[-+]", part, maxsplit=1)[0] if name == "patch" else part
        if not digits.isdecimal():
            return f"Invalid character(s) found in {name} number {json.dumps(digits)}"
        if len(digits) > 1 and digits.startswith("0"):
            shown = f"{name.capitalize()} number must not contain leading zeroes"
            return f"{shown} {json.dumps(digits)}"
    return f"{text!r} is no semantic version"


def _nano(value: Value) -> int:
    return parse_quantity(of(value, _QUANTITY, "a quantity")).nano


def _compare(one: Value, other: Value) -> int:
    """-1, 0 or 1; both are quantities, or both versions."""
    if _VERSION in one and _VERSION in other:
        first, second = _version_key(one[_VERSION]), _version_key(other[_VERSION])
        return (first > second) - (first < second)
    return (_nano(one) > _nano(other)) - (_nano(one) < _nano(other))


def _added(one: Value, other: Value | int, sign: int) -> Value:
    amount = other * NANOS_PER_UNIT if isinstance(other, int) else _nano(other)
    return _quantity(Quantity(nano=_nano(one) + sign * amount))


def _as_integer(value: Value) -> int:
    whole, rest = divmod(_nano(value), NANOS_PER_UNIT)
    if rest:
        raise ValueError("cannot convert value to integer")
    return whole


def _part(at: int) -> Callable[[Value], int]:
    return lambda value: int(_version_key(of(value, _VERSION, "a version"))[at])


_BOTH: Final = (VALUE, VALUE)
FUNCTIONS: Final[tuple[Function, ...]] = (
    free("quantity", VALUE, (TEXT,), quantity_value),
    free("isQuantity", TRUTH, (TEXT,), is_readable(quantity_value)),
    free("semver", VALUE, (TEXT,), version_value),
    free("isSemver", TRUTH, (TEXT,), is_readable(version_value)),
    member("compareTo", WHOLE, _BOTH, _compare),
    member("isGreaterThan", TRUTH, _BOTH, lambda a, b: _compare(a, b) > 0),
    member("isLessThan", TRUTH, _BOTH, lambda a, b: _compare(a, b) < 0),
    member("add", VALUE, _BOTH, lambda a, b: _added(a, b, 1)),
    member("add", VALUE, (VALUE, WHOLE), lambda a, b: _added(a, b, 1)),
    member("sub", VALUE, _BOTH, lambda a, b: _added(a, b, -1)),
    member("sub", VALUE, (VALUE, WHOLE), lambda a, b: _added(a, b, -1)),
    free("sign", WHOLE, (VALUE,), lambda a: (_nano(a) > 0) - (_nano(a) < 0)),
    member("isInteger", TRUTH, (VALUE,), lambda a: not _nano(a) % NANOS_PER_UNIT),
    member("asInteger", WHOLE, (VALUE,), _as_integer),
    member("asApproximateFloat", REAL, (VALUE,), lambda a: _nano(a) / NANOS_PER_UNIT),
    member("major", WHOLE, (VALUE,), _part(0)),
    member("minor", WHOLE, (VALUE,), _part(1)),
    member("patch", WHOLE, (VALUE,), _part(2)),
)
