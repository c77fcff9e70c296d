"""Parses and formats durations: Go's format (`90s`, `10m`, `1h30m`) or a number of seconds."""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration
from fairlead.engine.core.instant import DurationNs, seconds

LONGEST_NS: Final = 10 * 365 * 24 * 3600 * NANOSECONDS_PER_SECOND


def read_duration(value: str | float) -> DurationNs:
    """Return `value` in nanoseconds; a number means seconds.

    Raises ValueError if `value` is not a duration, is negative, or is longer than ten years.
    """
    if isinstance(value, str):
        duration = parse_duration(value.strip())
    elif abs(value) <= LONGEST_NS:  # false for NaN, too
        duration = seconds(value)
    else:
        raise ValueError(f"{value} is longer than ten years")
    if duration < 0:
        raise ValueError(f"{value} is negative")
    if duration > LONGEST_NS:
        raise ValueError(f"{value} is longer than ten years")
    return duration


def for_readers(duration: DurationNs) -> str:
    """Return `duration` as text in at most two units: `1h02m`, `6m05s`, `42s`, `2.5s`.

    A duration below 10 seconds is rounded to one decimal place, and a duration below one second is
    rounded to two significant digits.
    """
    amount = duration / NANOSECONDS_PER_SECOND
    whole = round(amount)
    if abs(amount) < 10:
        return f"{round(amount, 3):.2g}s" if abs(amount) < 1 else f"{round(amount, 1):g}s"
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"
