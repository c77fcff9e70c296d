"""Resource quantities with upstream's arithmetic: exact decimals, never floats.

A quantity is a signed number with a suffix. There are three families of suffixes (`Format`):
decimal SI (`n u m "" k M G T P E`), binary SI (`Ki … Ei`) and decimal exponents (`e3`, `E-2`). A
suffix `E` means exa; `E` followed by digits is an exponent. Fractions of a nano are rounded away
from zero, so that a request never becomes 0. Binary quantities are limited to int64; other
quantities may have up to NANO_MAX nanos. A text that upstream considers canonical keeps its form,
including signs, zeros and fractions (`+1`, `1.500`, `007`).

Amounts are stored as a whole number of nanos, so sums are exact.

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
# Far above real quantities; the bounds limit the cost of hostile input.
LENGTH_MAX: Final = 256
EXPONENT_MAX: Final = 1000
NANO_MAX: Final = 10**200
CACHE_SIZE: Final = 1 << 16

UPSTREAM_FORM: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
# Integer part and fraction may both be empty: upstream reads `.5`, `5.` and even `Ki` (as zero).
_FORM: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")


class Format(StrEnum):
    """The family of suffixes in which a quantity is written."""

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


_BINARY_RESOURCES: Final = ("memory", "ephemeral-storage", "hugepages-")

# upstream: quantity.go:ErrFormatWrong, ErrSuffix, ErrNumeric
NO_QUANTITY: Final = f"quantities must match the regular expression '{UPSTREAM_FORM}'"
NO_SUFFIX: Final = "unable to parse quantity's suffix"
NO_NUMBER: Final = "unable to parse numeric part of quantity"
# Numbers with more digits take upstream's slow path; only the fast path keeps texts unchanged.
_FAST_DIGITS: Final = 18
_FAST_BINARY_DIGITS: Final = 14


class QuantityError(ValueError):
    """Raised if a text is not a quantity; `rule` is upstream's error message."""

    def __init__(self, text: str, rule: str = NO_QUANTITY, why: str = "") -> None:
        """Store `rule`; the error message contains `why` if it is given, otherwise `rule`."""
        super().__init__(f"{text!r}: {why or rule}")
        self.rule = rule


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Quantity:
    """An exact amount in nanos; quantities are compared by amount, regardless of notation.

    `written` is the original text if upstream keeps it unchanged, otherwise "".
    """

    nano: int
    format: Format = field(default=Format.DECIMAL_SI, compare=False)
    written: str = field(default="", compare=False)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up (away from zero), limited to int64."""
        return round_up(self.nano, NANOS_PER_MILLI)

    @property
    def whole(self) -> int:
        """The amount in whole units, rounded up (away from zero), limited to int64."""
        return round_up(self.nano, NANOS_PER_UNIT)


@lru_cache(maxsize=CACHE_SIZE)
def parse_quantity(text: QuantityText) -> Quantity:
    """Parse `text`; a JSON number is parsed as it is written.

    Raises QuantityError if `text` is not a quantity.
    """
    # upstream: quantity.go:UnmarshalJSON trims blanks, ParseQuantity does the rest
    written = str(text).strip()
    if len(written) > LENGTH_MAX:
        too_many = f"it has {len(written)} characters, more than {LENGTH_MAX}"
        raise QuantityError(f"{written[:20]}…", why=too_many)
    matched = _FORM.fullmatch(written)
    if not written or matched is None:
        raise QuantityError(written)
    sign, digits, fraction, suffix = matched.groups(default="")
    multiplier, exponent, family = _interpret(suffix, written)
    if not digits and not _has_digit(written) and _takes_slow_path(suffix, exponent):
        raise QuantityError(written, NO_NUMBER)
    magnitude = _nanos(int(digits + fraction or "0") * multiplier, exponent - len(fraction))
    if magnitude > NANO_MAX:
        raise QuantityError(written, why="the amount is too large")
    kept = written if _is_kept_as_written(digits, fraction, suffix, exponent) else ""
    if family is Format.BINARY_SI:
        magnitude = min(magnitude, INT64_MAX * NANOS_PER_UNIT)
        if 0 < magnitude < NANOS_PER_UNIT:
            family = Format.DECIMAL_SI
    nano = -magnitude if sign == "-" else magnitude
    return Quantity(nano=nano, format=family, written=kept)


@lru_cache(maxsize=CACHE_SIZE)
def milli_value(text: QuantityText) -> int:
    """Return the amount of `text` in thousandths, rounded up.

    Raises QuantityError if `text` is not a quantity.
    """
    return parse_quantity(text).milli


@lru_cache(maxsize=CACHE_SIZE)
def whole_value(text: QuantityText) -> int:
    """Return the amount of `text` in whole units, rounded up.

    Raises QuantityError if `text` is not a quantity.
    """
    return parse_quantity(text).whole


@lru_cache(maxsize=CACHE_SIZE)
def approximate_value(text: QuantityText) -> float:
    """Return the value of the quantity `text` as a float, with upstream's rounding errors.

    For example, 700m is computed as 700 times 0.001. Raises QuantityError if `text` is not a
    quantity.
    """
    # upstream: quantity.go:AsApproximateFloat64
    parse_quantity(text)
    written = str(text).strip()
    matched = _FORM.fullmatch(written)
    assert matched is not None
    sign, digits, fraction, suffix = matched.groups(default="")
    multiplier, exponent, _ = _interpret(suffix, written)
    amount = float(int(f"{sign}{digits}{fraction}" if digits or fraction else "0") * multiplier)
    scale = exponent - len(fraction)
    return amount * float(f"1e{scale}") if scale else amount


def round_up(nano: int, unit: int) -> int:
    """Return `nano` / `unit` (both in nanos), rounded away from zero and limited to int64."""
    # upstream: amount.go:AsScaledInt64 stops at int64's bounds as well
    magnitude = min(-(-abs(nano) // unit), INT64_MAX)
    return magnitude if nano >= 0 else -magnitude


def canonical(quantity: Quantity, family: Format | None = None) -> str:
    """Return the text of `quantity` with a suffix of `family`.

    If `family` is None, the family of `quantity` is used. The text from which `quantity` was parsed
    is returned if it has this family and upstream considers it canonical. Otherwise the result is
    the shortest form that has no fraction. Values that the binary form cannot represent (below 1
    Ki, fractions, beyond int64) get the decimal form.
    """
    # upstream: quantity.go:CanonicalizeBytes. Upstream drops the suffix of a decimal number beyond
    # exa (E) and of a binary number beyond exbi (Ei), which changes the value. Here the number gets
    # more digits instead, so that parsing the text gives an equal quantity.
    if quantity.written and family in (None, quantity.format):
        return quantity.written
    if quantity.nano == 0:
        return "0"
    chosen = family or quantity.format
    if chosen is Format.BINARY_SI and _has_binary_form(quantity):
        return _canonical_binary(quantity.nano // NANOS_PER_UNIT)
    return _canonical_decimal(quantity.nano, exponential=chosen is Format.DECIMAL_EXPONENT)


def amount_text(name: str, amount: int) -> str:
    """Return `amount` of resource `name` as a quantity, such as 250m or 1536Mi.

    `amount` is in millicores for cpu and in whole units for other resources.
    """
    if name == "cpu":
        return canonical(Quantity(nano=amount * NANOS_PER_MILLI))
    family = Format.BINARY_SI if name.startswith(_BINARY_RESOURCES) else Format.DECIMAL_SI
    return canonical(Quantity(nano=amount * NANOS_PER_UNIT, format=family))


def rounded_text(name: str, amount: int) -> str:
    """Return `amount` of resource `name` as a short quantity; bytes are rounded up to Gi or Mi.

    `amount` is in millicores for cpu and in whole units for other resources. Amounts of bytes below
    1Mi are not rounded. `amount_text` returns the exact quantity.
    """
    if name.startswith(_BINARY_RESOURCES):
        for unit in (1 << 30, 1 << 20):
            if amount >= unit:
                return amount_text(name, -(-amount // unit) * unit)
    return amount_text(name, amount)


def _interpret(suffix: str, written: str) -> tuple[int, int, Format]:
    """Return (factor, power of ten, format) of `suffix`.

    Raises QuantityError if `suffix` is invalid; the error names `written`, the whole quantity.
    """
    # upstream: suffix.go:interpret; the tables come first, which makes `E` exa
    if suffix in _DECIMAL_EXPONENTS:
        return 1, _DECIMAL_EXPONENTS[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_EXPONENTS:
        return 1 << _BINARY_EXPONENTS[suffix], 0, Format.BINARY_SI
    matched = _EXPONENT.fullmatch(suffix)
    if matched is None:
        raise QuantityError(written, NO_SUFFIX)
    exponent = int(matched[1])
    if abs(exponent) > EXPONENT_MAX:
        raise QuantityError(
            written, NO_SUFFIX, f"the exponent is not from -{EXPONENT_MAX} to {EXPONENT_MAX}"
        )
    return 1, exponent, Format.DECIMAL_EXPONENT


def _is_kept_as_written(digits: str, fraction: str, suffix: str, exponent: int) -> bool:
    """Return True if upstream prints a quantity with these parts as it was written.

    `digits` must have no leading zeros.
    """
    # upstream: quantity.go:ParseQuantity
    if suffix in _BINARY_EXPONENTS:
        is_fast = not fraction and len(digits) <= _binary_digits(_BINARY_EXPONENTS[suffix])
        return is_fast and int(digits or "0") & 7 != 0
    scale = exponent - len(fraction)
    number = (digits or "0") + fraction
    is_fast = len(number) <= _FAST_DIGITS and scale >= NANO_EXPONENT
    return is_fast and scale % 3 == 0 and number[0] != "0" and not number.endswith("000")


def _takes_slow_path(suffix: str, exponent: int) -> bool:
    """Return True if upstream parses numbers with `suffix` or `exponent` in its slow path.

    The slow path refuses a number without a digit.
    """
    if suffix in _BINARY_EXPONENTS:
        return _binary_digits(_BINARY_EXPONENTS[suffix]) < 1
    return exponent < NANO_EXPONENT


def _binary_digits(power: int) -> int:
    return _FAST_BINARY_DIGITS - power * 3 // 10


def _has_digit(written: str) -> bool:
    return written.lstrip("+-")[:1].isdigit() or written.lstrip("+-.")[:1].isdigit()


def _nanos(mantissa: int, exponent: int) -> int:
    """Return `mantissa` × 10^`exponent` in nanos, rounded up."""
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
