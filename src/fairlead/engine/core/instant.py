"""Instants and durations: integer nanoseconds, so that arithmetic is exact and order is total.

An `Instant` is the number of nanoseconds since the Unix epoch. A duration is a number of
nanoseconds.
"""

from __future__ import annotations

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND

Instant = int
DurationNs = int


def seconds(value: float) -> DurationNs:
    """Return a duration of `value` seconds, rounded to the nearest nanosecond."""
    return round(value * NANOSECONDS_PER_SECOND)


def to_seconds(duration: DurationNs) -> float:
    """Return `duration` in seconds."""
    return duration / NANOSECONDS_PER_SECOND


def earliest(*instants: Instant | None) -> Instant | None:
    """Return the earliest of `instants` that are not None; None if all of them are None."""
    found: Instant | None = None
    for one in instants:
        if one is not None and (found is None or one < found):
            found = one
    return found


def floor_second(instant: Instant) -> Instant:
    """Return the last whole second at or before `instant`."""
    return instant - instant % NANOSECONDS_PER_SECOND
