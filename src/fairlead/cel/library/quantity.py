"""CEL functions for resource quantities.

`fairlead.api.quantity` parses the quantities, by the same rules as for API objects.

upstream: apiserver/pkg/cel/library/quantity.go
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity
from fairlead.cel.function import Function, free, is_readable, member, scan
from fairlead.cel.value import INT_MAX, INT_MIN


class QuantityValue(Struct, frozen=True, order=True):
    """A resource quantity in expressions; `1Gi` and `1024Mi` are equal."""

    nano: int
    type_name: ClassVar[str] = "kubernetes.Quantity"


def quantity_value(text: str | float) -> QuantityValue:
    """Parse a quantity. Raises ValueError."""
    try:
        return QuantityValue(parse_quantity(text).nano)
    except ValueError as cause:
        raise ValueError(str(cause).removeprefix(f"{text!r}: ")) from None


def _compare(one: QuantityValue, other: QuantityValue) -> int:
    return (one > other) - (one < other)


def _sum(one: QuantityValue, other: QuantityValue | int, sign: int = 1) -> QuantityValue:
    amount = other * NANOS_PER_UNIT if isinstance(other, int) else other.nano
    return QuantityValue(one.nano + sign * amount)


def _difference(one: QuantityValue, other: QuantityValue | int) -> QuantityValue:
    return _sum(one, other, -1)


def _as_integer(value: QuantityValue) -> int:
    whole, rest = divmod(value.nano, NANOS_PER_UNIT)
    if rest or not INT_MIN <= whole <= INT_MAX:
        raise ValueError("cannot convert value to integer")
    return whole


_ONE: Final = (QuantityValue,)
_BOTH: Final = (QuantityValue, QuantityValue)
FUNCTIONS: Final[tuple[Function, ...]] = (
    free("quantity", (str,), quantity_value, scan),
    free("isQuantity", (str,), is_readable(quantity_value), scan),
    member("compareTo", _BOTH, _compare),
    member("isGreaterThan", _BOTH, lambda one, other: one > other),
    member("isLessThan", _BOTH, lambda one, other: one < other),
    member("add", _BOTH, _sum),
    member("add", (QuantityValue, int), _sum),
    member("sub", _BOTH, _difference),
    member("sub", (QuantityValue, int), _difference),
    free("sign", _ONE, lambda value: (value.nano > 0) - (value.nano < 0)),
    member("isInteger", _ONE, lambda value: not value.nano % NANOS_PER_UNIT),
    member("asInteger", _ONE, _as_integer),
    member("asApproximateFloat", _ONE, lambda value: value.nano / NANOS_PER_UNIT),
)
