"""ZoneQueues: the nodes that wait for eviction, in one rate-limited queue per zone.

Evicting a node means tainting it or, in the older mode, deleting its pods. When `ZoneStates` drops
a zone, the zone keeps its queue. When `ZoneStates.open` adds the zone again, `ZoneQueues.open`
replaces this queue. The new queue is empty and has a new limiter.

`DefectPolicy.UPSTREAM` reproduces two upstream defects. First, a limiter that stops evictions
reports the rate 1. If the zone's new rate is also 1, the rate seems unchanged. So the limiter is
not replaced, and evictions stay stopped. Second, a zone whose initial rate is 0 gets an ordinary
bucket. The initial token of this bucket allows one eviction although evictions are stopped.

The life of a name in a `RateLimitedQueue`:

                        add                      token accepted
    unknown ────────────────────▶ waiting ─────────────────────────▶ handled
       ▲                             │ remove                            │ remove
       └─────────────────────────────┴───────────────────────────────────┘

A waiting or handled name is *known*. A known name must be removed before it can be added again.

For every not-ready node whose taint is missing, upstream's monitor pass removes the queue entry and
adds a new one. So the node's entry always has the time of the last pass. Here, the entries of these
nodes are *requeued* entries, which store no time. Requeued entries implicitly have the time of the
last pass, and are ordered by name. When a node is no longer requeued, its entry becomes a *timed*
entry with the time of the last pass that requeued it.

Example: pass 1 (at 5 s) finds a and b not ready: requeued = [a, b]. Before pass 2 (at 10 s), the
Ready condition of a is removed. So pass 2 does not requeue a: timed = [(5 s, a)], requeued = [b].
The head is a, because 5 s is before 10 s, the implicit time of b.

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go (orders entries with equal
times in heap order, not by name)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.zones.token_bucket import (
    Limiter,
    NeverLimiter,
    TokenBucket,
    as_float32,
)

# The rate that a stopped limiter reports; see NeverLimiter.
NEVER_RATE: Final = {DefectPolicy.FIXED: 0.0, DefectPolicy.UPSTREAM: 1.0}


class ZoneQueues:
    """The queue of each zone. Entries of the queues are node names."""

    def __init__(self, config: NodeLifecycleConfig, ticks: Period) -> None:
        """`ticks` are the times at which the queues are processed."""
        self._rate = config.node_eviction_rate
        self._begins_stopped = self._rate <= 0 and config.defects is DefectPolicy.FIXED
        self._never_rate = NEVER_RATE[config.defects]
        self._ticks = ticks
        self._queues: dict[str, RateLimitedQueue] = {}
        self._processed_at = ticks.first - ticks.period

    def __getitem__(self, zone: str) -> RateLimitedQueue:
        """Return the queue of `zone`, for which `open` must have been called."""
        return self._queues[zone]

    def has(self, zone: str) -> bool:
        """Return whether `open` was called for `zone`."""
        return zone in self._queues

    def open(self, zone: str, now: Instant) -> None:
        """Create an empty queue for `zone`; drop the old queue of the zone if there is one."""
        stopped = NeverLimiter(self._never_rate) if self._begins_stopped else None
        self._queues[zone] = RateLimitedQueue(stopped or TokenBucket(self._rate, now))

    def swap_limiter(self, zone: str, rate: float, now: Instant) -> None:
        """Change the eviction rate of `zone` to `rate` nodes per second."""
        self._queues[zone].swap_limiter(rate, self._never_rate, now)

    def next_attempt(self, now: Instant) -> Instant | None:
        """Return the first time at which a nonempty queue's rate limiter has a token.

        The result is one of the constructor's `ticks`. The result is not before `now`, and it is
        later than the last processing of the queues. Returns None if all queues are empty, or if
        the rate limiters of the nonempty queues will never have a token.
        """
        earliest = max(now, self._processed_at + 1)
        dues = [
            queue.limiter.next_acceptance(self._ticks, earliest)
            for queue in self._queues.values()
            if len(queue)
        ]
        return min((due for due in dues if due is not None), default=None)

    def accepted(self, now: Instant, last_pass: Instant) -> Iterator[tuple[str, str]]:
        """Yield (zone, name) for each due entry, while the rate limiter of its zone has tokens.

        `last_pass` is the time of the last monitor pass. Requeued entries are due at this time.
        After each entry, the caller must call `finish` or `retry` before it continues the
        iteration. If the head of a queue is not due yet, it uses up a token but is not yielded. The
        iteration then goes on with the next zone.
        """
        self._processed_at = now
        for zone in sorted(self._queues):
            queue = self._queues[zone]
            while (name := queue.head(last_pass)) is not None and queue.limiter.try_accept(now):
                due = queue.due_of(name)
                if due is not None and due > now:
                    break
                yield zone, name


class RateLimitedQueue:
    """The nodes of one zone that wait for eviction, in order; `limiter` limits evictions."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self._timed: list[tuple[Instant, str]] = []
        self._requeued: list[str] = []
        self._due: dict[str, Instant | None] = {}  # by known name; None for a requeued entry
        self._waiting: set[str] = set()  # never iterated

    def __len__(self) -> int:
        return len(self._waiting)

    def is_known(self, name: str) -> bool:
        """Return whether `name` is waiting or was handled, and has not been removed."""
        return name in self._due

    def requeue_each_pass(self, name: str) -> None:
        """Give `name` a requeued entry, which replaces its timed entry if it has one.

        If `name` was handled, it waits again. The module docstring explains requeued and timed
        entries.
        """
        if name in self._waiting and self._due[name] is None:
            return
        self.remove(name)
        self._due[name] = None
        self._waiting.add(name)
        insort(self._requeued, name)

    def stop_requeuing(self, name: str, last_requeued: Instant) -> None:
        """If `name` has a requeued entry, turn it into a timed entry with the time `last_requeued`.

        The module docstring explains requeued and timed entries.
        """
        if name in self._waiting and self._due[name] is None:
            self._take_out(name)
            self._put_in(name, last_requeued)

    def add(self, name: str, now: Instant) -> None:
        """Add an entry for `name` with the time `now`, unless `name` is waiting or was handled."""
        if name not in self._due:
            self._put_in(name, now)

    def mark_handled(self, name: str) -> None:
        """Record `name` as handled, unless it is waiting."""
        self._due.setdefault(name, 0)

    def remove(self, name: str) -> None:
        """Remove the node `name`, whether it is waiting or has been handled."""
        if name in self._waiting:
            self._take_out(name)
        self._due.pop(name, None)

    def head(self, last_pass: Instant) -> str | None:
        """Return the waiting name with the earliest time; None if no name is waiting.

        Requeued entries have no time of their own. `last_pass` is used as their time.
        """
        if not self._timed:
            return self._requeued[0] if self._requeued else None
        if self._requeued and (last_pass, self._requeued[0]) < self._timed[0]:
            return self._requeued[0]
        return self._timed[0][1]

    def finish(self, name: str) -> None:
        """Mark `name`, which is waiting, as handled."""
        self._take_out(name)
        self._due[name] = 0

    def retry(self, name: str, due: Instant) -> None:
        """Queue `name` again with the time `due`, because the node could not be handled."""
        if name in self._waiting:
            self._take_out(name)
        self._put_in(name, due)

    def due_of(self, name: str) -> Instant | None:
        """Return the time stored in the entry of `name`; None if the entry is a requeued entry.

        The module docstring explains requeued and timed entries.
        """
        return self._due[name]

    def _put_in(self, name: str, due: Instant) -> None:
        self._due[name] = due
        self._waiting.add(name)
        insort(self._timed, (due, name))

    def _take_out(self, name: str) -> None:
        self._waiting.discard(name)
        due = self._due[name]
        if due is None:
            del self._requeued[bisect_left(self._requeued, name)]
        else:
            del self._timed[bisect_left(self._timed, (due, name))]

    # --- the rate ------------------------------------------------------------------------------

    def swap_limiter(self, rate: float, never_rate: float, now: Instant) -> None:
        """Change the rate of the queue to `rate`; a `rate` of 0 stops evictions.

        If the current limiter already reports `rate`, it is kept. If not, a new limiter replaces
        it. A new token bucket starts full if the old limiter has a token now. It starts empty if
        the old limiter has no token. `never_rate` is the rate that the new limiter reports if
        `rate` is 0.
        """
        # upstream: rate_limited_queue.go:SwapLimiter
        if self.limiter.rate == as_float32(rate):
            return
        if rate <= 0:
            self.limiter = NeverLimiter(never_rate)
            return
        bucket = TokenBucket(rate, now)
        if not self.limiter.try_accept(now):
            bucket.try_accept(now)
        self.limiter = bucket
