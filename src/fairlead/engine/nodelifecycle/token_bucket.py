"""Token buckets as client-go has them, to the last bit, because a gap of 10.0 s depends on it.

A bucket of one token refills at `rate` tokens a second. Rates are float32 upstream, everything
else float64, and a shortage that is worth less than a nanosecond of waiting counts as none: at
0.1 a token is back after exactly 10 s, at 0.01 a little later than 100 s.

upstream: client-go/util/flowcontrol/throttle.go, golang.org/x/time/rate/rate.go:reserveN, advance
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from fairlead.engine.core.instant import NANOSECONDS_PER_SECOND, Instant
from fairlead.engine.nodelifecycle.beat import Beat

BURST: Final = 1.0
# Beyond what int64 nanoseconds can express a wait is endless (rate.go:InfDuration).
WAIT_MAX_NS: Final = float(2**63 - 1)


def as_float32(value: float) -> float:
    """`value` as upstream's float32 options hold it."""
    return float(np.float32(value))


class Limiter(Protocol):
    """Says whether something may happen now; asking takes the token if there is one."""

    @property
    def rate(self) -> float:
        """What the limiter says its rate is, in tokens a second."""
        ...

    def try_accept(self, now: Instant) -> bool:
        """Take a token if there is one."""
        ...

    def next_acceptance(self, beat: Beat, earliest: Instant) -> Instant | None:
        """The first beat at or after `earliest` that would be accepted, None for never."""
        ...


class TokenBucket:
    """One token, at first there; `rate` is rounded to float32."""

    def __init__(self, rate: float, now: Instant) -> None:
        """A full bucket."""
        self._rate = as_float32(rate)
        self._tokens = BURST
        self._last = now

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._rate

    def try_accept(self, now: Instant) -> bool:
        """Take a token if there is one; a refusal leaves no trace."""
        left = self._tokens_at(now) - 1.0
        if not self._is_enough(left):
            return False
        self._tokens, self._last = left, now
        return True

    def next_acceptance(self, beat: Beat, earliest: Instant) -> Instant | None:
        """The first beat at or after `earliest` at which a token is there."""
        lacking = BURST - self._tokens
        if self._rate <= 0:
            return beat.at_or_after(earliest) if self._is_enough(-lacking) else None
        wait = lacking / self._rate * NANOSECONDS_PER_SECOND
        if wait > WAIT_MAX_NS:
            return None
        found = beat.at_or_after(max(earliest, self._last + int(wait) - beat.period))
        while not self._is_enough(self._tokens_at(found) - 1.0):
            found += beat.period
        return found

    def _tokens_at(self, now: Instant) -> float:
        elapsed = max(0, now - self._last)
        whole, rest = divmod(elapsed, NANOSECONDS_PER_SECOND)
        refilled = (float(whole) + float(rest) / 1e9) * self._rate if self._rate > 0 else 0.0
        return min(BURST, self._tokens + refilled)

    def _is_enough(self, left: float) -> bool:
        if left >= 0:
            return True
        return self._rate > 0 and int(min(WAIT_MAX_NS, -left / self._rate * 1e9)) <= 0


class NeverLimiter:
    """No token, ever. What it gives as its rate decides whether it can be exchanged for one.

    Upstream's says 1, so that with a configured rate of 1 leaving it looks like no change, and the
    zone stays stopped for ever (flowcontrol.NewFakeNeverRateLimiter).
    """

    def __init__(self, rate: float) -> None:
        """`rate` is what it says."""
        self._rate = rate

    @property
    def rate(self) -> float:
        """What it says."""
        return self._rate

    def try_accept(self, now: Instant) -> bool:
        """No."""
        return False

    def next_acceptance(self, beat: Beat, earliest: Instant) -> Instant | None:
        """Never."""
        return None
