"""Parses and formats timestamps (RFC 3339) and durations (Go's syntax).

Timestamps and durations become integers, in nanoseconds. Fractions of a nanosecond are truncated,
as in Go.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from fairlead.api.text.text_cache import text_cache

NANOSECONDS_PER_SECOND: Final = 1_000_000_000
NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
NANOSECONDS_PER_MICROSECOND: Final = 1_000
INT64_MAX: Final = 2**63 - 1
LENGTH_MAX: Final = 200  # far above any duration that fits
CACHE_SIZE: Final = 1 << 14
SECONDS_KEPT: Final = 64

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_SECOND: Final = timedelta(seconds=1)
# The first and the last second of the years 1 to 9999, in seconds since 1970.
_FIRST_SECOND: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _ONE_SECOND
_LAST_SECOND: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _ONE_SECOND
LAST_INSTANT: Final = _LAST_SECOND * NANOSECONDS_PER_SECOND  # 9999-12-31T23:59:59Z
_RFC_3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_UNITS_NS: Final = {
    "ns": 1,
    "us": NANOSECONDS_PER_MICROSECOND,
    "\u00b5s": NANOSECONDS_PER_MICROSECOND,  # the micro sign
    "\u03bcs": NANOSECONDS_PER_MICROSECOND,  # the Greek letter, which looks identical
    "ms": NANOSECONDS_PER_MILLISECOND,
    "s": NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "h": 3_600 * NANOSECONDS_PER_SECOND,
}
_TERM: Final = re.compile(
    r"(?=[0-9]|\.[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
)


@text_cache(maxsize=CACHE_SIZE)
def parse_timestamp(text: str) -> int:
    """Parse `text` (RFC 3339, such as `2026-01-01T00:00:00Z`) to ns since 1970.

    Raises ValueError if `text` is not a timestamp.
    """
    matched = _RFC_3339.fullmatch(text)
    if matched is None:
        raise ValueError(f"{text!r} is not an RFC 3339 timestamp such as 2026-01-01T00:00:00Z")
    second, fraction, zone = matched.groups(default="")
    try:
        instant = datetime.fromisoformat(second + zone)
    except ValueError as cause:
        raise ValueError(f"{text!r} is not a timestamp: {cause}") from None
    seconds = (instant - _EPOCH) // _ONE_SECOND
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ValueError(f"{text!r} is not a timestamp: in UTC, its year is not from 1 to 9999")
    return seconds * NANOSECONDS_PER_SECOND + int(f"{fraction:0<9.9}")


def format_timestamp(instant: int) -> str:
    """Format `instant` (ns since 1970) as metav1.Time: whole seconds in UTC, truncated.

    Raises ValueError if the year is not in 1 to 9999.
    """
    return f"{_second_text(instant // NANOSECONDS_PER_SECOND)}Z"


def format_micro_time(instant: int) -> str:
    """Format `instant` (ns since 1970) as metav1.MicroTime: six decimals in UTC, truncated.

    Raises ValueError if the year is not in 1 to 9999.
    """
    seconds, rest = divmod(instant, NANOSECONDS_PER_SECOND)
    return f"{_second_text(seconds)}.{rest // NANOSECONDS_PER_MICROSECOND:06}Z"


def parse_duration(text: str) -> int:
    """Parse a Go duration (`1h30m`, `20m`, `1.5s`, `-500ms`, `0`) to ns.

    Raises ValueError if `text` is not a duration.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if len(rest) > LENGTH_MAX:
        raise ValueError(f"a duration of {len(rest)} characters is too long")
    total, position = 0, 0
    while matched := _TERM.match(rest, position):
        whole, fraction, unit = matched.groups(default="")
        total += _UNITS_NS[unit] * int(whole or "0")
        total += _UNITS_NS[unit] * int(fraction or "0") // 10 ** len(fraction)
        position = matched.end()
    if not rest or position < len(rest):
        raise ValueError(f"{text!r} is not a duration such as 90s, 1h30m or 500ms")
    if total > INT64_MAX:
        raise ValueError(f"{text!r} is longer than the 292 years a duration can be")
    return sign * total


def format_duration(duration: int) -> str:
    """Format `duration` (ns) as Go does: `1h30m0s`, `1.5s`, `500ms`, `0s`."""
    magnitude = abs(duration)
    sign = "-" if duration < 0 else ""
    if magnitude == 0:
        return "0s"
    for unit in ("ns", "\u00b5s", "ms"):
        if magnitude < _UNITS_NS[unit] * 1_000:
            return f"{sign}{_decimal(magnitude, _UNITS_NS[unit])}{unit}"
    minutes, rest = divmod(magnitude, _UNITS_NS["m"])
    hours, minutes_of_hour = divmod(minutes, 60)
    text = f"{_decimal(rest, NANOSECONDS_PER_SECOND)}s"
    if minutes:
        text = f"{minutes_of_hour}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


@lru_cache(maxsize=SECONDS_KEPT)  # most timestamps are of the current second
def _second_text(seconds: int) -> str:
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ValueError("the year of an instant is not from 1 to 9999")
    second = _EPOCH + timedelta(seconds=seconds)
    return second.isoformat()[: len("2026-01-01T00:00:00")]


def _decimal(amount: int, unit: int) -> str:
    """Return `amount` / `unit` as an exact decimal number; `unit` is a power of ten."""
    whole, rest = divmod(amount, unit)
    decimals = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{decimals}" if decimals else str(whole)
