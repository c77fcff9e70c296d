"""What CEL expressions about devices may say beyond CEL itself: quantities and versions.

The expressions know `device.driver`, `device.attributes` and `device.capacity` under exactly these
names. A quantity is a map with the one key `quantity`, a version one with `semver`, so that `==`
compares their canonical form and no other operator has an overload for them.

upstream: apiserver/pkg/cel/library/{quantity,semverlib}.go, dynamic-resource-allocation/cel
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.quantity import (
    NANOS_PER_UNIT,
    Format,
    Quantity,
    QuantityError,
    canonical,
    parse_quantity,
)

if TYPE_CHECKING:
    from cel_expr_python import cel

Value = dict[str, str]

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


def _quantity(quantity: Quantity) -> Value:
    return {_QUANTITY: canonical(quantity, Format.DECIMAL_SI)}


def _version_key(text: str) -> tuple[Any, ...]:
    """Sorts as versions do (semver.org, 11): a pre-release comes before its release."""
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise ValueError(f"{text!r} is no semantic version")
    major, minor, patch, pre = matched.groups()
    numbers = (int(major), int(minor), int(patch))
    if pre is None:
        return (*numbers, 1)
    labels = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in pre.split("."))
    return (*numbers, 0, labels)


def _nano(value: Value) -> int:
    if _QUANTITY not in value:
        raise ValueError("no such overload: not a quantity")
    return parse_quantity(value[_QUANTITY]).nano


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


def _is_written_as(read: Callable[[str], Value]) -> Callable[[str], bool]:
    def is_written(text: str) -> bool:
        try:
            read(text)
        except (ValueError, QuantityError):
            return False
        return True

    return is_written


def _part(at: int) -> Callable[[Value], int]:
    def part(value: Value) -> int:
        if _VERSION not in value:
            raise ValueError("no such overload: not a version")
        return int(_version_key(value[_VERSION])[at])

    return part


def device_language() -> cel.Env:
    """The environment in which expressions are compiled."""
    # The library takes a hundredth of a second to load, and most clusters have no claims.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415

    types = cel.Type
    value = types.Map(types.STRING, types.DYN)
    return cel.NewEnv(
        variables={
            "device.driver": types.STRING,
            "device.attributes": types.Map(types.STRING, value),
            "device.capacity": types.Map(types.STRING, types.Map(types.STRING, value)),
        },
        extensions=[
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
        functions=_functions(cel, value),
    )


def _functions(library: Any, value: Any) -> list[Any]:
    types = library.Type
    text, number, truth = types.STRING, types.INT, types.BOOL

    def declared(name: str, *overloads: tuple[Any, list[Any], bool, Callable[..., Any]]) -> Any:
        made = [
            library.Overload(
                id=f"{name}_{i}", return_type=kind, parameters=taken, is_member=member, impl=impl
            )
            for i, (kind, taken, member, impl) in enumerate(overloads)
        ]
        return library.FunctionDecl(name, made)

    both = [value, value]
    return [
        declared("quantity", (value, [text], False, quantity_value)),
        declared("isQuantity", (truth, [text], False, _is_written_as(quantity_value))),
        declared("semver", (value, [text], False, version_value)),
        declared("isSemver", (truth, [text], False, _is_written_as(version_value))),
        declared("compareTo", (number, both, True, _compare)),
        declared("isGreaterThan", (truth, both, True, lambda a, b: _compare(a, b) > 0)),
        declared("isLessThan", (truth, both, True, lambda a, b: _compare(a, b) < 0)),
        declared(
            "add",
            (value, both, True, lambda a, b: _added(a, b, 1)),
            (value, [value, number], True, lambda a, b: _added(a, b, 1)),
        ),
        declared(
            "sub",
            (value, both, True, lambda a, b: _added(a, b, -1)),
            (value, [value, number], True, lambda a, b: _added(a, b, -1)),
        ),
        declared("sign", (number, [value], True, lambda a: (_nano(a) > 0) - (_nano(a) < 0))),
        declared("isInteger", (truth, [value], True, lambda a: not _nano(a) % NANOS_PER_UNIT)),
        declared("asInteger", (number, [value], True, _as_integer)),
        declared(
            "asApproximateFloat",
            (types.DOUBLE, [value], True, lambda a: _nano(a) / NANOS_PER_UNIT),
        ),
        declared("major", (number, [value], True, _part(0))),
        declared("minor", (number, [value], True, _part(1))),
        declared("patch", (number, [value], True, _part(2))),
    ]
