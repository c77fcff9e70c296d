"""How long a pod waits before it may be tried again.

initial × 2^(count - 1), at most max: 1, 2, 4, 8, 10, 10 … seconds. Expiry is truncated to whole
seconds and a pod is let go at the first whole second strictly after it, so that pods of one
second's window are ordered by priority (backend/queue/backoff_queue.go: alignToWindow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.core.instant import NANOSECONDS_PER_SECOND, DurationNs, Instant, floor_second, seconds

INITIAL_DEFAULT: Final = seconds(1)
MAXIMUM_DEFAULT: Final = seconds(10)
MAX_IN_UNSCHEDULABLE_DEFAULT: Final = seconds(300)


@dataclass(frozen=True, slots=True)
class BackoffConfig:
    """podInitialBackoffSeconds, podMaxBackoffSeconds, and how long a pod may go untried (ns)."""

    initial: DurationNs = INITIAL_DEFAULT
    maximum: DurationNs = MAXIMUM_DEFAULT
    max_in_unschedulable: DurationNs = MAX_IN_UNSCHEDULABLE_DEFAULT


def backoff_window(config: BackoffConfig, since: Instant, count: int) -> Instant:
    """The whole second in which a backoff that began at `since` expires; 0 without backoff."""
    if count <= 0:
        return 0
    duration = config.initial
    for _ in range(count - 1):
        duration *= 2
        if duration >= config.maximum:
            break
    return floor_second(since + min(duration, config.maximum))


def is_backing_off(window: Instant, now: Instant) -> bool:
    """Whether a backoff that expires in `window` is still on."""
    return window >= floor_second(now)


def release_at(window: Instant) -> Instant:
    """When the flush lets a pod of `window` go."""
    return window + NANOSECONDS_PER_SECOND
