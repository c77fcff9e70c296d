"""ZoneQueues: one rate-limited queue for each zone, all processed at the same instants.

A zone that is opened again gets a new queue with a full bucket; entries of the old queue are
dropped. A queue outlives its zone.

Two upstream defects are reproduced here under `DefectPolicy.UPSTREAM`. A stopped limiter reports
the rate 1, so that a limiter with rate 1 never replaces it. And a rate of 0 is an ordinary bucket
whose initial token allows one eviction even while evictions are stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.zones.rate_limited_queue import RateLimitedQueue
from fairlead.engine.nodelifecycle.zones.token_bucket import NeverLimiter, TokenBucket

# The rate that a stopped limiter reports; see NeverLimiter.
NEVER_RATE: Final = {DefectPolicy.FIXED: 0.0, DefectPolicy.UPSTREAM: 1.0}


class ZoneQueues:
    """Queues by zone; entries are node names."""

    def __init__(self, config: NodeLifecycleConfig, ticks: Period) -> None:
        """`ticks` are the instants at which the queues are processed."""
        self._rate = config.node_eviction_rate
        self._begins_stopped = self._rate <= 0 and config.defects is DefectPolicy.FIXED
        self._never_rate = NEVER_RATE[config.defects]
        self._ticks = ticks
        self._queues: dict[str, RateLimitedQueue] = {}
        self._processed_at = ticks.first - ticks.period

    def __getitem__(self, zone: str) -> RateLimitedQueue:
        """The queue of a zone that was opened."""
        return self._queues[zone]

    def has(self, zone: str) -> bool:
        """Whether `zone` was opened."""
        return zone in self._queues

    def open(self, zone: str, now: Instant) -> None:
        """Creates the queue of `zone`."""
        stopped = NeverLimiter(self._never_rate) if self._begins_stopped else None
        self._queues[zone] = RateLimitedQueue(stopped or TokenBucket(self._rate, now))

    def swap_limiter(self, zone: str, rate: float, now: Instant) -> None:
        """Changes the rate of `zone`."""
        self._queues[zone].swap_limiter(rate, self._never_rate, now)

    def next_attempt(self, now: Instant) -> Instant | None:
        """The first tick at which some entry gets a token, None if there is none."""
        earliest = max(now, self._processed_at + 1)
        dues = [
            queue.limiter.next_acceptance(self._ticks, earliest)
            for queue in self._queues.values()
            if len(queue)
        ]
        return min((due for due in dues if due is not None), default=None)

    def accepted(self, now: Instant, last_pass: Instant) -> Iterator[tuple[str, str]]:
        """Yields each (zone, name) that gets a token; finish or retry it before continuing.

        The token is spent whatever happens to the entry.
        """
        self._processed_at = now
        for zone in sorted(self._queues):
            queue = self._queues[zone]
            while (name := queue.head(last_pass)) is not None and queue.limiter.try_accept(now):
                due = queue.due_of(name)
                if due is not None and due > now:
                    break
                yield zone, name
