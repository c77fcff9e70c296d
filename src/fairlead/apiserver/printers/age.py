"""Human-readable durations: `5s`, `3m20s`, `2d4h`, `<unknown>`.

upstream: apimachinery/pkg/util/duration/duration.go:HumanDuration
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp

UNKNOWN: Final = "<unknown>"
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 24 * _HOUR_S
_YEAR_S: Final = 365 * _DAY_S


def human_duration(duration: int) -> str:
    """Return `duration` (ns) as text; the longer the duration, the coarser the text.

    A duration between -2 s and 0 becomes `0s`; a duration of -2 s or less becomes `<invalid>`.
    """
    seconds = _truncated_division(duration, NANOSECONDS_PER_SECOND)
    # Tolerates one second of clock skew.
    if seconds < -1:
        return "<invalid>"
    if duration < 0:
        return "0s"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE_S:
        return _two_units(seconds, _MINUTE_S, "m", 1, "s")
    if seconds < 3 * _HOUR_S:
        return f"{seconds // _MINUTE_S}m"
    if seconds < 8 * _HOUR_S:
        return _two_units(seconds, _HOUR_S, "h", _MINUTE_S, "m")
    if seconds < 2 * _DAY_S:
        return f"{seconds // _HOUR_S}h"
    return _days(seconds)


def age(text: Any, now: int) -> str:
    """Return the text for the time between the timestamp `text` and `now` (ns since 1970).

    Return `<unknown>` if `text` is empty. Raises ValueError if it is not a timestamp.
    """
    if not text:
        return UNKNOWN
    return human_duration(now - parse_timestamp(str(text)))


def age_of(obj: dict[str, Any], now: int) -> str:
    """Return the text for the time since an object was created; `now` is ns since 1970.

    Return `<unknown>` if the object has no creationTimestamp.
    """
    return age(obj.get("metadata", {}).get("creationTimestamp"), now)


def _truncated_division(amount: int, unit: int) -> int:
    """Return `amount` in whole units, truncated towards zero as Go's int() does."""
    return -(-amount // unit) if amount < 0 else amount // unit


def _days(seconds: int) -> str:
    if seconds < 8 * _DAY_S:
        return _two_units(seconds, _DAY_S, "d", _HOUR_S, "h")
    if seconds < 2 * _YEAR_S:
        return f"{seconds // _DAY_S}d"
    if seconds < 8 * _YEAR_S:
        return _two_units(seconds, _YEAR_S, "y", _DAY_S, "d")
    return f"{seconds // _YEAR_S}y"


def _two_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    """Return `seconds` in two units, such as `3m20s`; the smaller unit is omitted if it is zero."""
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")
