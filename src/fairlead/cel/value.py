"""The values of expressions: their Python types, their equality and their order.

    bool int uint double    bool, int, Uint, float
    string bytes null       str, bytes, None
    list map                list, dict: JSON values need no conversion
    timestamp duration      Timestamp, Duration: whole nanoseconds
    optional_type type      OptionalValue, TypeValue
    quantities, addresses   frozen records of `library`, each with a `type_name`

In Python, True equals 1, and `isinstance` accepts a bool as an int. In CEL, true does not equal 1.
Therefore code that must distinguish a bool from an int compares `type(value)`.

upstream: cel-go's common/types
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, ClassVar, Final

from msgspec import Struct

INT_MAX: Final = (1 << 63) - 1
INT_MIN: Final = -(1 << 63)
UINT_MAX: Final = (1 << 64) - 1
NANOS: Final = 1_000_000_000
_DIGITS_MAX: Final = 20  # the number of decimal digits of UINT_MAX
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# upstream: common/types/timestamp.go: minUnixTime, maxUnixTime
TIMESTAMP_MIN: Final = -62_135_596_800 * NANOS
TIMESTAMP_MAX: Final = 253_402_300_800 * NANOS - 1


def integer_of(text: str) -> int:
    """Return the integer in `text`, which is decimal or, after `0x`, hexadecimal.

    Python refuses to convert very long decimals. Therefore, for a decimal with more than 20
    significant digits, the result is some other integer outside the ranges of CEL's int and uint.
    """
    if "x" in text:
        return int(text, 16)
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _DIGITS_MAX else 1 << 80
    return -number if text.startswith("-") else number


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Timestamp(Struct, frozen=True, order=True):
    """A timestamp, in nanoseconds since 1970."""

    nanos: int
    type_name: ClassVar[str] = "google.protobuf.Timestamp"

    @property
    def seconds(self) -> int:
        """The whole seconds since 1970."""
        return self.nanos // NANOS

    @property
    def as_datetime(self) -> datetime:
        """The time as a datetime, truncated to microseconds."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanos % NANOS // 1_000)

    def __str__(self) -> str:
        """Return the time in RFC 3339, with as many fractional digits as necessary."""
        at = _EPOCH + timedelta(seconds=self.seconds)
        return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{_fraction(self.nanos % NANOS)}Z"


class Duration(Struct, frozen=True, order=True):
    """A duration in nanoseconds, which fits into 64 bits."""

    nanos: int
    type_name: ClassVar[str] = "google.protobuf.Duration"

    def __str__(self) -> str:
        """Return the duration in seconds: `90s`, `-0.5s`."""
        whole, rest = divmod(abs(self.nanos), NANOS)
        return f"{'-' if self.nanos < 0 else ''}{whole}{_fraction(rest)}s"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0") if nanos else ""


class OptionalValue(Struct, frozen=True):
    """A value that may be absent."""

    value: Any = None
    is_present: bool = True
    type_name: ClassVar[str] = "optional_type"


NONE: Final = OptionalValue(is_present=False)


class TypeValue(Struct, frozen=True):
    """A type as a value: the result of `type(x)`."""

    name: str
    type_name: ClassVar[str] = "type"


class DefaultMap(dict[str, Any]):
    """A map with a default value for every string that is not one of its keys."""

    __slots__ = ("default",)

    def __init__(self, entries: dict[str, Any], default: Any) -> None:
        """Store `entries`; `default` is the value of every string that is not a key."""
        super().__init__(entries)
        self.default = default

    def __missing__(self, key: str) -> Any:
        return self.default


_NAMES: Final = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    DefaultMap: "map",
}
_NUMBERS: Final = frozenset({int, Uint, float})
ABSENT: Final = object()  # the result of `found_in` for a key that a map does not have
_ORDERED: Final = frozenset({bool, str, bytes, Timestamp, Duration})


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    return _NAMES.get(type(value)) or str(value.type_name)


def found_in(whole: dict[Any, Any], key: Any) -> Any:
    """Return the value of `key` in a map; `ABSENT` if there is none.

    Numbers of different types can be equal keys; a number never equals a bool. A DefaultMap has a
    value for every string.

    upstream: cel-go's common/types/map.go: refValMapAccessor.Find
    """
    if type(key) is str:
        return whole.get(key, whole.default if type(whole) is DefaultMap else ABSENT)
    if type(key) is not bool and type(key) not in _NUMBERS:
        return ABSENT
    if key not in whole:
        return ABSENT
    if key not in (0, 1):
        return whole[key]
    # For a dict, true equals 1 and false equals 0. In CEL they differ, so the key in the dict and
    # `key` must be both bools or both numbers.
    own = next(one for one in whole if one == key)
    return whole[key] if (type(own) is bool) is (type(key) is bool) else ABSENT


def is_equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal.

    Values of different types can be equal only if both are numbers.
    """
    kind, other_kind = type(left), type(right)
    if kind in _NUMBERS:
        return other_kind in _NUMBERS and bool(left == right)
    if isinstance(left, list):
        same_size = isinstance(right, list) and len(left) == len(right)
        return same_size and all(map(is_equal, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and _is_equal_map(left, right)
    if kind is OptionalValue and other_kind is OptionalValue:
        is_same = left.is_present == right.is_present
        return is_same and (not left.is_present or is_equal(left.value, right.value))
    return kind is other_kind and bool(left == right)


def _is_equal_map(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if len(one) != len(other):
        return False
    for key, item in one.items():
        found = found_in(other, key)
        if found is ABSENT or not is_equal(item, found):
            return False
    return True


def is_ordered(left: Any, right: Any) -> bool:
    """Return whether the operator `<` can compare the two values."""
    kind, other_kind = type(left), type(right)
    if kind in _NUMBERS:
        return other_kind in _NUMBERS
    return kind is other_kind and kind in _ORDERED


def double_text(value: float) -> str:
    """Return a double's shortest text, as Go's strconv.FormatFloat(value, 'g', -1, 64) does."""
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"  # noqa: PLR0124
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    power = len(text) + int(exponent) - 1
    if not value or -4 <= power < 6:
        return f"{minus}{Decimal(repr(abs(value))).normalize():f}"
    fraction = f".{text[1:]}" if text[1:] else ""
    return f"{minus}{text[0]}{fraction}e{power:+03}"


def work_of(value: Any, limit: int) -> int:
    """Return the number of values in `value` at all depths.

    If there are more than `limit` values, counting stops early, and the result is a number above
    `limit`. Repeated values are counted each time: `[[x, x], [x, x]]` contains `x` four times.
    """
    due, count = [value], 0
    while due and count <= limit:
        here = due.pop()
        if isinstance(here, list):
            count += len(here)
            due.extend(one for one in here if isinstance(one, list | dict))
        elif isinstance(here, dict):
            count += len(here)
            due.extend(one for one in here.values() if isinstance(one, list | dict))
    return count


# `2026-01-02T03:04:05.678Z`, as Go's time.RFC3339 reads it.
_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def timestamp_of(text: str) -> Timestamp:
    """Parse a timestamp, as Go's time.RFC3339 does. Raises ValueError."""
    matched = _INSTANT.fullmatch(text)
    if matched is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = map(int, matched.groups()[:6])
    at = datetime(year or 1, month, day, hour, minute, second, tzinfo=UTC)
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    if matched[8]:
        offset = int(matched[9]) * 3_600 + int(matched[10]) * 60
        seconds -= -offset if matched[8] == "-" else offset
    fraction = (matched[7] or "").ljust(9, "0")[:9]
    nanos = seconds * NANOS + int(fraction)
    if not year or not TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        raise ValueError(text)
    return Timestamp(nanos)


_UNITS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": NANOS, "m": 60 * NANOS, "h": 3_600 * NANOS,
}  # fmt: skip
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def duration_of(text: str) -> Duration:
    """Parse a duration, as Go's time.ParseDuration does. Raises ValueError."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    at = total = 0
    while at < len(rest):
        matched = _PART.match(rest, at)
        if matched is None or not (matched[1] or matched[2]):
            raise ValueError(text)
        unit, digits = _UNITS[matched[3]], matched[2] or ""
        total += int(matched[1] or 0) * unit + int(digits or 0) * unit // 10 ** len(digits)
        at = matched.end()
    if not rest or total > INT_MAX + (sign < 0):
        raise ValueError(text)
    return Duration(sign * total)


def as_json(value: Any) -> Any:
    """Return a copy of a value with JSON's types: times become strings, bytes become base64."""
    match value:
        case dict():
            return {_key(key): as_json(one) for key, one in value.items()}
        case list():
            return [as_json(one) for one in value]
        case Uint():
            return int(value)
        case bytes():
            return b64encode(value).decode()
        case Timestamp() | Duration():
            return str(value)
        case OptionalValue():
            return as_json(value.value)
        case _:
            return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
