"""BackoffClock: how long a pod waits before it may be retried.

initial × 2^(count - 1), at most max: 1, 2, 4, 8, 10, 10 … seconds. With SchedulerPopFromBackoffQ,
the default, expiry is truncated to whole seconds and a pod is released at the first whole second
strictly after it, so that the pods of one second's window are ordered by priority
(backend/queue/backoff_queue.go: alignToWindow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import DurationNs, Instant, seconds

INITIAL_DEFAULT: Final = seconds(1)
MAXIMUM_DEFAULT: Final = seconds(10)
MAX_IN_UNSCHEDULABLE_DEFAULT: Final = seconds(300)
_FLUSH_PERIOD: Final = NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class BackoffConfig:
    """The settings of backoff and of the unschedulable pool; durations in ns.

    `initial` and `maximum` are podInitialBackoffSeconds and podMaxBackoffSeconds;
    `max_in_unschedulable` is the longest time in the unschedulable pool. `pop_from_backoff` is the
    feature gate SchedulerPopFromBackoffQ: an idle scheduler pops pods that are backing off.
    `ends_at_expiry`: a backoff ends at its expiry instead of just after it.
    """

    initial: DurationNs = INITIAL_DEFAULT
    maximum: DurationNs = MAXIMUM_DEFAULT
    max_in_unschedulable: DurationNs = MAX_IN_UNSCHEDULABLE_DEFAULT
    pop_from_backoff: bool = True
    ends_at_expiry: bool = False


@dataclass(frozen=True, slots=True)
class BackoffClock:
    """Computes when backoffs expire, and which flush releases their pods.

    Expiry is truncated to multiples of `window` (ns); flushes happen every second, starting at
    `phase`.
    """

    config: BackoffConfig
    window: DurationNs
    phase: Instant

    def expiry(self, since: Instant, count: int) -> Instant:
        """Return the (truncated) expiry of a backoff that began at `since`; 0 without backoff."""
        if count <= 0:
            return 0
        duration = self.config.initial
        for _ in range(count - 1):
            duration *= 2
            if duration >= self.config.maximum:
                break
        expiry = self._truncated(since + min(duration, self.config.maximum))
        return expiry - 1 if self.config.ends_at_expiry else expiry

    def is_on(self, expiry: Instant, now: Instant) -> bool:
        """Return whether a backoff with the truncated expiry `expiry` is still running."""
        return expiry >= self._truncated(now)

    def release_at(self, expiry: Instant) -> Instant:
        """Return the first flush after `expiry`."""
        ticks = (expiry - self.phase) // _FLUSH_PERIOD + 1
        return self.phase + ticks * _FLUSH_PERIOD

    def _truncated(self, instant: Instant) -> Instant:
        return instant - instant % self.window


def backoff_clock(config: BackoffConfig, start: Instant) -> BackoffClock:
    """Return a clock with windows of whole seconds if pods are popped from backoff.

    Otherwise backoffs end exactly at their expiry.
    """
    if config.pop_from_backoff:
        return BackoffClock(config, window=NANOSECONDS_PER_SECOND, phase=0)
    return BackoffClock(config, window=1, phase=start)
