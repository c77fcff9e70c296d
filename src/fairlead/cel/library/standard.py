"""Functions of the language itself: sizes, patterns, conversions, dates and optional values.

upstream: cel-go's common/stdlib, common/types, cel/library.go:optionalLib
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from math import isfinite, isinf
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairlead.cel.cost.runtime_cost import CostTracker, reading
from fairlead.cel.function import ANY, NUMBERS, Function, free, member, scan, scan_second, search
from fairlead.cel.interpreter.operator import checked_int, checked_timestamp, checked_uint
from fairlead.cel.library.regex import is_found
from fairlead.cel.value import (
    INT_MAX,
    INT_MIN,
    NANOS,
    NONE,
    UINT_MAX,
    Duration,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
    double_text,
    duration_of,
    integer_of,
    timestamp_of,
    type_name,
)

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"
    r"|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_OFFSET: Final = re.compile(r"([+-]?)(\d{1,2}):(\d{2})", re.ASCII)


def _unconverted(value: Any, wanted: str) -> ValueError:
    return ValueError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def to_bool(value: bool | str) -> bool:  # noqa: FBT001 - the language has no keywords
    """Convert a value as CEL's `bool(value)` does. Raises ValueError."""
    if type(value) is bool:
        return value
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise _unconverted(value, "bool")


def to_int(value: Any) -> int:
    """Convert a value as CEL's `int(value)` does.

    A timestamp becomes seconds since 1970, a duration becomes nanoseconds. Raises ValueError for a
    text that is not an integer of 64 bits. Raises CelError for a number that does not fit into 64
    bits.
    """
    match value:
        case Timestamp():
            return value.seconds
        case Duration():
            return value.nanos
        case float():
            if not isfinite(value) or not INT_MIN < value < INT_MAX:
                return checked_int(INT_MAX + 1)
            return int(value)
        case str():
            if not _WHOLE.fullmatch(value) or not INT_MIN <= integer_of(value) <= INT_MAX:
                raise _unconverted(value, "int")
            return integer_of(value)
        case _:
            return checked_int(int(value))


def to_uint(value: Any) -> Uint:
    """Convert a value as CEL's `uint(value)` does; see `to_int` for its errors."""
    match value:
        case float():
            if not isfinite(value) or not 0 <= value < UINT_MAX:
                return checked_uint(-1)
            return Uint(int(value))
        case str():
            if not value.isascii() or not value.isdecimal() or integer_of(value) > UINT_MAX:
                raise _unconverted(value, "uint")
            return Uint(integer_of(value))
        case _:
            return checked_uint(int(value))


def to_double(value: Any) -> float:
    """Convert a value as CEL's `double(value)` does. Raises ValueError."""
    if not isinstance(value, str):
        return float(value)
    found = float(value) if _REAL.fullmatch(value) else None
    # Go's ParseFloat refuses numbers that are too large.
    if found is None or (isinf(found) and "i" not in value.lower()):
        raise _unconverted(value, "double")
    return found


def to_string(value: Any) -> str:
    """Convert a value as CEL's `string(value)` does. Raises ValueError for invalid UTF-8."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise ValueError("invalid UTF-8 in bytes, cannot convert to string") from None
        case _:
            return str(value)


def to_bytes(value: str | bytes) -> bytes:
    """Convert a value as CEL's `bytes(value)` does."""
    return value.encode() if isinstance(value, str) else value


def to_duration(value: Any) -> Duration:
    """Convert a value as CEL's `duration(value)` does; an integer is in nanoseconds.

    Raises ValueError for a text that is not a duration.
    """
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):
        return Duration(value)
    try:
        return duration_of(value)
    except ValueError:
        raise _unconverted(value, Duration.type_name) from None


def to_timestamp(value: Any) -> Timestamp:
    """Convert a value as CEL's `timestamp(value)` does; an integer is in seconds since 1970.

    Raises ValueError for a malformed text, and CelError for a year before 1 or after 9999.
    """
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return checked_timestamp(value * NANOS)
    try:
        return timestamp_of(value)
    except ValueError:
        raise _unconverted(value, Timestamp.type_name) from None


# Parts of dates.


def _local(value: Timestamp, zone: str) -> datetime:
    """Return a timestamp's local time in `zone`, such as `Europe/Paris` or `-07:30`."""
    at, matched = value.as_datetime, _OFFSET.fullmatch(zone)
    if matched is None:
        try:
            return at.astimezone(ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"unknown time zone {zone}") from None
    offset = timedelta(hours=int(matched[2]), minutes=int(matched[3]))
    return at.astimezone(timezone(-offset if matched[1] == "-" else offset))


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDate": lambda at: at.day,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
    "getMilliseconds": lambda at: at.microsecond // 1_000,
}
_SPANS: Final[dict[str, int]] = {
    "getHours": 3_600 * NANOS,
    "getMinutes": 60 * NANOS,
    "getSeconds": NANOS,
}


def _part(of: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda value, zone="UTC": of(value.as_datetime if zone == "UTC" else _local(value, zone))


def _whole(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


def _dates() -> Iterator[Function]:
    for name, of in _PARTS.items():
        yield member(name, (Timestamp,), _part(of))
        yield member(name, (Timestamp, str), _part(of))
    for name, nanos in _SPANS.items():
        yield member(name, (Duration,), lambda value, nanos=nanos: _whole(value.nanos, nanos))
    yield member("getMilliseconds", (Duration,), lambda value: _whole(value.nanos, 1_000_000))


# Optional values. `or` and `orValue` are in `evaluator`, because they evaluate their argument only
# if the optional value is absent.


def _dereferenced(value: OptionalValue) -> Any:
    if not value.is_present:
        raise ValueError("optional.none() dereference")
    return value.value


def _non_zero(value: Any) -> OptionalValue:
    is_zero = (
        not value
        if isinstance(value, (*NUMBERS, bool, str, bytes, list, dict))
        else (
            value is None
            or (isinstance(value, Duration) and not value.nanos)
            or (isinstance(value, OptionalValue) and not value.is_present)
        )
    )
    return NONE if is_zero else OptionalValue(value)


def _unwrapped(items: list[Any]) -> list[Any]:
    if not all(isinstance(one, OptionalValue) for one in items):
        raise ValueError("no such overload")
    return [one.value for one in items if one.is_present]


def _is_match(tracker: CostTracker, text: str, pattern: str) -> bool:
    return is_found(tracker, text, pattern)


def _conversions() -> Iterator[Function]:
    taken: dict[str, tuple[Callable[[Any], Any], tuple[type, ...]]] = {
        "bool": (to_bool, (bool, str)),
        "int": (to_int, (*NUMBERS, str, Timestamp, Duration)),
        "uint": (to_uint, (*NUMBERS, str)),
        "double": (to_double, (*NUMBERS, str)),
        "string": (to_string, (*NUMBERS, bool, str, bytes, Timestamp, Duration)),
        "bytes": (to_bytes, (str, bytes)),
        "duration": (to_duration, (int, str, Duration)),
        "timestamp": (to_timestamp, (int, str, Timestamp)),
    }
    costly = {("bytes", str), ("string", bytes)}
    for name, (convert, kinds) in taken.items():
        for kind in kinds:
            yield free(name, (kind,), convert, scan if (name, kind) in costly else None)


def _sizes() -> Iterator[Function]:
    for kind in (str, bytes, list, dict):
        yield free("size", (kind,), len)
        yield member("size", (kind,), len)


FUNCTIONS: Final[tuple[Function, ...]] = (
    *_sizes(),
    *_conversions(),
    *_dates(),
    free("dyn", (ANY,), lambda value: value),
    free("type", (ANY,), lambda value: TypeValue(type_name(value))),
    free("matches", (str, str), _is_match, search, is_metered=True),
    member("matches", (str, str), _is_match, search, is_metered=True),
    member("contains", (str, str), lambda text, part: part in text, lambda text, part: (
        reading(text) * reading(part)
    )),
    member("startsWith", (str, str), str.startswith, scan_second),
    member("endsWith", (str, str), str.endswith, scan_second),
    free("optional.of", (ANY,), OptionalValue),
    free("optional.none", (), lambda: NONE),
    free("optional.ofNonZeroValue", (ANY,), _non_zero),
    free("optional.unwrap", (list,), _unwrapped),
    member("unwrapOpt", (list,), _unwrapped),
    member("hasValue", (OptionalValue,), lambda value: value.is_present),
    member("value", (OptionalValue,), _dereferenced),
)  # fmt: skip
