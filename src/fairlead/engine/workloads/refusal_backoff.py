"""RefusalBackoff: exponential delays between the tries of a write that the API server refuses.

A policy or a webhook may refuse a write forever. With a delay of 5 ms that doubles up to 1000 s, a
controller tries the write 21 times in the first hour.

upstream: client-go/util/workqueue/default_rate_limiters.go: DefaultTypedControllerRateLimiter,
ItemExponentialFailureRateLimiter
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct, field

from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.config import RETRY_INITIAL_DEFAULT, RETRY_MAX_DEFAULT, doubled

K = TypeVar("K", bound=Hashable)


class RefusalBackoff(Struct, Generic[K]):
    """Counts consecutive refusals by key.

    The first delay is `initial` (ns). Each further delay is twice as long, up to `maximum` (ns).
    """

    initial: DurationNs = RETRY_INITIAL_DEFAULT
    maximum: DurationNs = RETRY_MAX_DEFAULT
    _refusals: dict[K, int] = field(default_factory=dict)

    def next_try(self, key: K, now: Instant) -> Instant:
        """Record that the write of `key` was refused at `now`; return the time of the next try."""
        refusals = self._refusals[key] = self._refusals.get(key, 0) + 1
        return now + doubled(self.initial, self.maximum, refusals)

    def reset(self, key: K) -> None:
        """Record that the write of `key` succeeded, or that it is not needed any more."""
        self._refusals.pop(key, None)
