"""BackoffClock: computes the time for which a pod waits before it may be retried.

The backoff is initial × 2^(count - 1), at most the maximum: 1, 2, 4, 8, 10, 10 … seconds. If the
feature gate SchedulerPopFromBackoffQ is on (the default), the expiry is truncated to whole seconds.
The pod is released one second after the truncated expiry. So pods whose backoffs expire within the
same second have equal expiries. Pods with equal expiries are ordered by priority
(backend/queue/backoff_queue.go: alignToWindow).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import DurationNs, Instant, seconds

INITIAL_DEFAULT: Final = seconds(1)
MAXIMUM_DEFAULT: Final = seconds(10)
MAX_IN_UNSCHEDULABLE_DEFAULT: Final = seconds(300)
_FLUSH_PERIOD: Final = NANOSECONDS_PER_SECOND
_DOUBLINGS_MAX: Final = 63  # more than any maximum needs, because an Instant has 64 bits


class BackoffConfig(Struct, frozen=True):
    """The settings of backoff and of the unschedulable pool; durations in ns."""

    initial: DurationNs = INITIAL_DEFAULT  # podInitialBackoffSeconds
    maximum: DurationNs = MAXIMUM_DEFAULT  # podMaxBackoffSeconds
    # Pods that were unschedulable for longer than this are retried.
    max_in_unschedulable: DurationNs = MAX_IN_UNSCHEDULABLE_DEFAULT
    # The feature gate SchedulerPopFromBackoffQ: an idle scheduler pops pods that are backing off.
    pop_from_backoff: bool = True
    ends_at_expiry: bool = False  # whether a backoff ends exactly at its expiry, not right after it


class BackoffClock(Struct, frozen=True):
    """Computes when a pod's backoff expires, and when the pod is released after that.

    An expiry is truncated to a multiple of `window` (ns). A flush of the backoff queue releases
    pods. Flushes happen every second, starting at `phase`.
    """

    config: BackoffConfig
    window: DurationNs
    phase: Instant

    def expiry(self, since: Instant, count: int) -> Instant:
        """Return the time at which the backoff that began at `since` expires.

        `count` is the number of the backoff, counted from 1. The result is rounded down to a
        multiple of `window`. The backoff counts as still running at the returned time (`is_on`). If
        the configuration sets `ends_at_expiry`, 1 ns is subtracted from the result, so that the
        backoff ends at the expiry itself. Returns 0 if `count` is 0, because there is no backoff
        then.
        """
        if count <= 0:
            return 0
        doubled = self.config.initial << min(count - 1, _DOUBLINGS_MAX)
        expiry = self._truncated(since + min(doubled, self.config.maximum))
        return expiry - 1 if self.config.ends_at_expiry else expiry

    def is_on(self, expiry: Instant, now: Instant) -> bool:
        """Return whether a backoff with the truncated expiry `expiry` is still running at `now`."""
        return expiry >= self._truncated(now)

    def release_at(self, expiry: Instant) -> Instant:
        """Return the time at which a pod whose backoff ends at `expiry` is released.

        The returned time is the time of the first flush of the backoff queue after `expiry`.
        """
        ticks = (expiry - self.phase) // _FLUSH_PERIOD + 1
        return self.phase + ticks * _FLUSH_PERIOD

    def _truncated(self, instant: Instant) -> Instant:
        return instant - instant % self.window


def backoff_clock(config: BackoffConfig, start: Instant) -> BackoffClock:
    """Return the clock for `config`."""
    if config.pop_from_backoff:
        return BackoffClock(config, window=NANOSECONDS_PER_SECOND, phase=0)
    return BackoffClock(config, window=1, phase=start)
