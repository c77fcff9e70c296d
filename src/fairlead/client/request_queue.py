"""RequestQueue: requests that wait until priorities, order and limits allow them to be sent.

    priority    requests with a lower priority number are sent first
    order       requests with the same target are sent one after another, in the order of `add`
    rate        on average at most `qps` a second, in bursts of `burst` (a token bucket)
    in flight   at most `in_flight_max` simultaneously

The queue does no I/O: `pop_ready` returns the requests to send, and `finish` records that a request
was answered.

upstream: client-go/util/flowcontrol/throttle.go
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND

Item = TypeVar("Item")

PRIORITIES: Final = 3


class RequestLimits(Struct, frozen=True):
    """Limits of a client; if `qps` is 0 or less, the rate is not limited."""

    qps: float = 50.0
    burst: int = 100
    in_flight_max: int = 64


class _Waiting(Struct, Generic[Item]):
    item: Item
    target: str
    priority: int


class RequestQueue(Generic[Item]):
    """A queue of requests that wait to be sent."""

    def __init__(self, limits: RequestLimits, now: int) -> None:
        """Start with a full token bucket at `now` (ns)."""
        self._limits = limits
        self._tokens = float(limits.burst)
        self._filled_at = now
        self._ready: tuple[deque[_Waiting[Item]], ...] = tuple(deque() for _ in range(PRIORITIES))
        # Keyed by the target of each request that is in flight or ready: the requests that wait
        # for its response.
        self._behind: dict[str, deque[_Waiting[Item]]] = {}
        self._in_flight = 0

    def __len__(self) -> int:
        """Return the number of requests that wait or are in flight."""
        ready = sum(map(len, self._ready))
        return ready + self._in_flight + sum(map(len, self._behind.values()))

    def add(self, item: Item, priority: int, target: str) -> None:
        """Add the request `item`; `priority` is between 0 (sent first) and PRIORITIES - 1."""
        waiting = _Waiting(item, target, priority)
        behind = self._behind.get(target)
        if behind is not None:
            behind.append(waiting)
            return
        self._behind[target] = deque()
        self._ready[priority].append(waiting)

    def pop_ready(self, now: int) -> list[tuple[Item, str]]:
        """Return (request, target) for each request to send at `now`.

        When a request has been answered, pass its target to `finish`.
        """
        self._fill(now)
        taken: list[tuple[Item, str]] = []
        for ready in self._ready:
            while ready and self._in_flight < self._limits.in_flight_max and self._tokens >= 1:
                if self._limits.qps > 0:
                    self._tokens -= 1
                self._in_flight += 1
                waiting = ready.popleft()
                taken.append((waiting.item, waiting.target))
        return taken

    def finish(self, target: str) -> None:
        """Record that a request with the target `target` has been answered."""
        self._in_flight -= 1
        behind = self._behind[target]
        if behind:
            waiting = behind.popleft()
            self._ready[waiting.priority].append(waiting)
        else:
            del self._behind[target]

    def next_due(self) -> int | None:
        """Return the time (ns) at which the next request may be sent; 0 if it may be sent now.

        Returns None if no request waits, or if too many requests are in flight.
        """
        if not any(self._ready) or self._in_flight >= self._limits.in_flight_max:
            return None
        missing = max(0.0, 1 - self._tokens)
        return (
            self._filled_at + int(missing / self._limits.qps * NANOSECONDS_PER_SECOND) + 1
            if missing
            else 0
        )

    def _fill(self, now: int) -> None:
        limits = self._limits
        elapsed = (now - self._filled_at) / NANOSECONDS_PER_SECOND
        self._tokens = min(float(limits.burst), self._tokens + max(0.0, elapsed) * limits.qps)
        self._filled_at = now
        if limits.qps <= 0:
            self._tokens = float(max(1, limits.burst))
