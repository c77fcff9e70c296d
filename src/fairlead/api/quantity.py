"""Resource quantities with upstream's arithmetic: exact decimals, never floats.

A quantity is a signed number with a suffix of one of three families (`Format`): decimal SI
(`n u m "" k M G T P E`), binary SI (`Ki … Ei`) or a decimal exponent (`e3`, `E-2`). `E` alone is
exa; followed by digits it is an exponent. What is finer than a nano is rounded up, away from
zero: whoever asks for something gets something. Binary quantities beyond int64 are capped
there, decimal ones are not.

Everything is kept as a whole number of nanos, so sums are exact; `milli_value` and `whole_value`
round up only at the end, as the scheduler does.

upstream: apimachinery/pkg/api/resource/{quantity,suffix,amount}.go
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

from fairlead.api.objects import QuantityText

NANOS_PER_UNIT: Final = 10**9
NANOS_PER_MILLI: Final = 10**6
NANO_EXPONENT: Final = -9
INT64_MAX: Final = 2**63 - 1
# No real quantity comes near; the bounds keep hostile input from costing time and memory.
LENGTH_MAX: Final = 256
EXPONENT_MAX: Final = 1000
NANO_MAX: Final = 10**200
CACHE_SIZE: Final = 1 << 16

UPSTREAM_FORM: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
# Number and fraction may both be empty: upstream reads `.5`, `5.` and even `Ki` (as zero).
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")


class Format(StrEnum):
    """The family of suffixes a quantity was written with, and is written in again."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY_EXPONENTS)
_EXA: Final = 18


class QuantityError(ValueError):
    """A text that is no quantity."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Quantity:
    """An exact amount; equality and order are of the amount, whatever way it was written."""

    nano: int
    format: Format = field(default=Format.DECIMAL_SI, compare=False)

    @property
    def milli(self) -> int:
        """Thousandths, rounded up (away from zero), at most int64."""
        return round_up(self.nano, NANOS_PER_MILLI)

    @property
    def whole(self) -> int:
        """Whole units, rounded up (away from zero), at most int64."""
        return round_up(self.nano, NANOS_PER_UNIT)


@lru_cache(maxsize=CACHE_SIZE)
def parse_quantity(text: QuantityText) -> Quantity:
    """`text` as a quantity; a JSON number is read as it is written. Raises QuantityError."""
    # upstream: quantity.go:UnmarshalJSON trims blanks, ParseQuantity does the rest
    written = str(text).strip()
    if len(written) > LENGTH_MAX:
        raise QuantityError(f"a quantity of {len(written)} characters is too long")
    matched = _FORM.fullmatch(written)
    if not written or matched is None:
        raise QuantityError(
            f"{written!r}: quantities must match the regular expression '{UPSTREAM_FORM}'"
        )
    sign, digits, fraction, suffix = matched.groups(default="")
    multiplier, exponent, family = _interpret(suffix, written)
    magnitude = _nanos(int(digits + fraction or "0") * multiplier, exponent - len(fraction))
    if magnitude > NANO_MAX:
        raise QuantityError(f"{written!r}: is beyond all measure")
    if family is Format.BINARY_SI:
        magnitude = min(magnitude, INT64_MAX * NANOS_PER_UNIT)
        if 0 < magnitude < NANOS_PER_UNIT:
            family = Format.DECIMAL_SI
    return Quantity(nano=-magnitude if sign == "-" else magnitude, format=family)


@lru_cache(maxsize=CACHE_SIZE)
def milli_value(text: QuantityText) -> int:
    """`text` in thousandths, rounded up. Raises QuantityError."""
    return parse_quantity(text).milli


@lru_cache(maxsize=CACHE_SIZE)
def whole_value(text: QuantityText) -> int:
    """`text` in whole units, rounded up. Raises QuantityError."""
    return parse_quantity(text).whole


def round_up(nano: int, unit: int) -> int:
    """`nano` in whole `unit`s (of nanos), away from zero and within int64."""
    # upstream: amount.go:AsScaledInt64 stops at int64's bounds as well
    magnitude = min(-(-abs(nano) // unit), INT64_MAX)
    return magnitude if nano >= 0 else -magnitude


def canonical(quantity: Quantity, family: Format | None = None) -> str:
    """`quantity` in the shortest form without fraction, in `family` (its own when None).

    Nothing is lost: a decimal form stands in for a binary one below 1 Ki, for fractions and
    beyond int64.
    """
    # upstream: quantity.go:CanonicalizeBytes. There a decimal beyond exa, a binary beyond exbi
    # loses its suffix; here the number gets longer instead, so that it reads back the same.
    if quantity.nano == 0:
        return "0"
    chosen = family or quantity.format
    if chosen is Format.BINARY_SI and _has_binary_form(quantity):
        return _canonical_binary(quantity.nano // NANOS_PER_UNIT)
    return _canonical_decimal(quantity.nano, exponential=chosen is Format.DECIMAL_EXPONENT)


def _interpret(suffix: str, written: str) -> tuple[int, int, Format]:
    """The factor and the power of ten that `suffix` stands for, and its family."""
    # upstream: suffix.go:interpret; the tables come first, which makes `E` exa
    if suffix in _DECIMAL_EXPONENTS:
        return 1, _DECIMAL_EXPONENTS[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_EXPONENTS:
        return 1 << _BINARY_EXPONENTS[suffix], 0, Format.BINARY_SI
    matched = _EXPONENT.fullmatch(suffix)
    if matched is None:
        raise QuantityError(f"{written!r}: unable to parse quantity's suffix")
    exponent = int(matched[1])
    if abs(exponent) > EXPONENT_MAX:
        raise QuantityError(f"{written!r}: the exponent is beyond {EXPONENT_MAX}")
    return 1, exponent, Format.DECIMAL_EXPONENT


def _nanos(mantissa: int, exponent: int) -> int:
    """`mantissa` times ten to `exponent`, in nanos, rounded up."""
    shift = exponent - NANO_EXPONENT
    scale: int = 10 ** abs(shift)
    return mantissa * scale if shift >= 0 else -(-mantissa // scale)


def _has_binary_form(quantity: Quantity) -> bool:
    whole, rest = divmod(quantity.nano, NANOS_PER_UNIT)
    return rest == 0 and 1024 <= abs(whole) <= INT64_MAX


def _canonical_binary(amount: int) -> str:
    power = 0
    while amount % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        amount //= 1024
        power += 1
    return f"{amount}{_BINARY_SUFFIXES[power]}"


def _canonical_decimal(mantissa: int, *, exponential: bool) -> str:
    exponent = NANO_EXPONENT
    while mantissa % 1000 == 0 and (exponential or exponent < _EXA):
        mantissa //= 1000
        exponent += 3
    if not exponential:
        return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)
