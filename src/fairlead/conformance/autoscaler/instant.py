"""Times of the recordings, in milliseconds since the start of the autoscaler's process."""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, format_micro_time, parse_timestamp
from fairlead.engine.core.instant import Instant

_START: Final[Instant] = parse_timestamp("2026-01-01T00:00:00Z")


def at_ms(t_ms: int) -> Instant:
    """Return the instant `t_ms` ms after the start of the autoscaler's process."""
    return _START + t_ms * NANOSECONDS_PER_MILLISECOND


def to_ms(instant: Instant) -> int:
    """Return the ms from the start of the autoscaler's process to `instant`, rounded down."""
    return (instant - _START) // NANOSECONDS_PER_MILLISECOND


def text_at(t_ms: int) -> str:
    """Return the instant `t_ms` ms after the start as an RFC 3339 text with microseconds."""
    return format_micro_time(at_ms(t_ms))
