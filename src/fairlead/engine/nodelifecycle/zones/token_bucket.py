"""TokenBucket: limits a rate with exactly client-go's arithmetic.

The bucket holds one token and refills at `rate` tokens per second. Upstream's rates are float32,
and all other numbers are float64. As a float32, the rate 0.1 is slightly too high, and the rate
0.01 is slightly too low. The controller asks for a token every 100 ms. At a rate of 0.1, the next
token is ready after slightly less than 10 s. So the controller gets it after 10.0 s. At a rate of
0.01, the next token is ready after slightly more than 100 s. So the controller gets it only with
the following request, after 100.1 s.

upstream: client-go/util/flowcontrol/throttle.go, golang.org/x/time/rate/rate.go:reserveN, advance
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.period import Period

BURST: Final = 1.0
# A wait of more nanoseconds than fit into an int64 counts as infinite (rate.go:InfDuration).
WAIT_MAX_NS: Final = float(2**63 - 1)


def as_float32(value: float) -> float:
    """Return `value` rounded to float32, as upstream stores it."""
    return float(np.float32(value))


class Limiter(Protocol):
    """A rate limiter."""

    @property
    def rate(self) -> float:
        """The rate that the limiter reports, in tokens per second."""
        ...

    def try_accept(self, now: Instant) -> bool:
        """Take a token if one is available at `now`; return whether a token was taken."""
        ...

    def next_acceptance(self, ticks: Period, earliest: Instant) -> Instant | None:
        """Return the first of `ticks` at or after `earliest` at which a token is available.

        Returns None if a token is never available.
        """
        ...


class TokenBucket:
    """A bucket of one token. `rate`, in tokens per second, is rounded to float32."""

    def __init__(self, rate: float, now: Instant) -> None:
        self._rate = as_float32(rate)
        self._tokens = BURST
        self._last = now

    @property
    def rate(self) -> float:
        """The rate at which the bucket refills, in tokens per second."""
        return self._rate

    def try_accept(self, now: Instant) -> bool:
        """Take a token if one is available at `now`; return whether a token was taken."""
        left = self._tokens_at(now) - 1.0
        if not self._is_enough(left):
            return False
        self._tokens, self._last = left, now
        return True

    def next_acceptance(self, ticks: Period, earliest: Instant) -> Instant | None:
        """Return the first of `ticks` at or after `earliest` at which a token is available.

        Returns None if a token is never available.
        """
        lacking = BURST - self._tokens
        if self._rate <= 0:
            return ticks.at_or_after(earliest) if self._is_enough(-lacking) else None
        wait = lacking / self._rate * NANOSECONDS_PER_SECOND
        if wait > WAIT_MAX_NS:
            return None
        found = ticks.at_or_after(max(earliest, self._last + int(wait) - ticks.period))
        while not self._is_enough(self._tokens_at(found) - 1.0):
            found += ticks.period
        return found

    def _tokens_at(self, now: Instant) -> float:
        elapsed = max(0, now - self._last)
        elapsed_s, rest_ns = divmod(elapsed, NANOSECONDS_PER_SECOND)
        refilled = (float(elapsed_s) + float(rest_ns) / 1e9) * self._rate if self._rate > 0 else 0.0
        return min(BURST, self._tokens + refilled)

    def _is_enough(self, left: float) -> bool:
        if left >= 0:
            return True
        return self._rate > 0 and int(min(WAIT_MAX_NS, -left / self._rate * 1e9)) <= 0


class NeverLimiter:
    """A limiter that never has a token.

    Upstream's counterpart, flowcontrol.NewFakeNeverRateLimiter, always reports the rate 1. The
    module `zone_queues` describes the upstream defect that results.
    """

    def __init__(self, rate: float) -> None:
        """`rate` is only reported; the limiter never has a token."""
        self._rate = rate

    @property
    def rate(self) -> float:
        """The rate that the limiter reports, in tokens per second."""
        return self._rate

    def try_accept(self, now: Instant) -> bool:
        """Return False, because there is never a token."""
        return False

    def next_acceptance(self, ticks: Period, earliest: Instant) -> Instant | None:
        """Return None, because there is never a token."""
        return None
