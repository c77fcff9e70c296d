"""ZoneQueues: one rate-limited queue per zone, looked at on a common beat.

A zone that is begun anew gets a new queue with a full bucket; what waited in the old one is
forgotten. Queues outlive their zones.

Two of upstream's defects live here (`Defects`): a stopped limiter says that its rate is 1, so that
one of that rate never replaces it; and a rate of 0 is a bucket like any other, whose first token
lets a node be emptied all the same, even while everything is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.beat import Beat
from fairlead.engine.nodelifecycle.config import Defects, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.token_bucket import NeverLimiter, TokenBucket
from fairlead.engine.nodelifecycle.zone_queue import ZoneQueue

# What a stopped limiter gives as its rate; see NeverLimiter.
NEVER_RATE: Final = {Defects.FIXED: 0.0, Defects.UPSTREAM: 1.0}


class ZoneQueues:
    """By zone; entries are names of nodes."""

    def __init__(self, config: NodeLifecycleConfig, beat: Beat) -> None:
        """`beat` is when the queues are looked at."""
        self._rate = config.node_eviction_rate
        self._begins_stopped = self._rate <= 0 and config.defects is Defects.FIXED
        self._never_rate = NEVER_RATE[config.defects]
        self._beat = beat
        self._queues: dict[str, ZoneQueue] = {}
        self._looked_at = beat.first - beat.period

    def __getitem__(self, zone: str) -> ZoneQueue:
        """The queue of a zone that was begun."""
        return self._queues[zone]

    def has(self, zone: str) -> bool:
        """Whether `zone` was begun."""
        return zone in self._queues

    def open(self, zone: str, now: Instant) -> None:
        """Begin with `zone`."""
        stopped = NeverLimiter(self._never_rate) if self._begins_stopped else None
        self._queues[zone] = ZoneQueue(stopped or TokenBucket(self._rate, now))

    def swap_limiter(self, zone: str, rate: float, now: Instant) -> None:
        """Change the rate of `zone`."""
        self._queues[zone].swap_limiter(rate, self._never_rate, now)

    def next_look(self, now: Instant) -> Instant | None:
        """The first beat at which some entry gets a token, None while there is none."""
        earliest = max(now, self._looked_at + 1)
        dues = [
            queue.limiter.next_acceptance(self._beat, earliest)
            for queue in self._queues.values()
            if len(queue)
        ]
        return min((due for due in dues if due is not None), default=None)

    def look(self, now: Instant, last_pass: Instant) -> Iterator[tuple[str, str]]:
        """The (zone, name) whose turn it is; each must be finished or retried before the next.

        A token is gone whatever comes of the entry.
        """
        self._looked_at = now
        for zone in sorted(self._queues):
            queue = self._queues[zone]
            while (name := queue.head(last_pass)) is not None and queue.limiter.try_accept(now):
                due = queue.due_of(name)
                if due is not None and due > now:
                    break
                yield zone, name
