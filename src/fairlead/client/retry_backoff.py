"""RetryBackoff: the pause after each consecutive failure.

upstream: apimachinery/pkg/util/wait/backoff.go,
client-go/tools/cache/reflector.go:NewReflectorWithOptions
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# A function that returns a number in [0, 1), an argument of the state machines of this package.
Jitter = Callable[[], float]

RESET_AFTER_NS: Final = 120_000_000_000
FACTOR: Final = 2.0


class RetryBackoff:
    """Doubles the pause with each failure, up to a maximum.

    Each pause is extended at random, to at most twice its length. After two minutes without a
    failure, or after `reset`, the shortest pause is used again.
    """

    def __init__(
        self, jitter: Jitter, first_ns: int = 800_000_000, max_ns: int = 30_000_000_000
    ) -> None:
        """`first_ns` and `max_ns` are the shortest and the longest pause without jitter, in ns."""
        self._jitter = jitter
        self._first, self._max = first_ns, max_ns
        self._next = first_ns
        self._failed_at: int | None = None

    def pause(self, now: int) -> int:
        """Return the pause (ns) after a failure at the time `now` (ns)."""
        if self._failed_at is not None and now - self._failed_at > RESET_AFTER_NS:
            self._next = self._first
        self._failed_at = now
        base, self._next = self._next, min(self._max, int(self._next * FACTOR))
        return int(base * (1 + self._jitter()))

    def reset(self) -> None:
        """Use the shortest pause after the next failure."""
        self._next = self._first
