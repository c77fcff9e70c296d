"""WorkQueue: keys of objects to sync, with deduplication, backoff and a burst limit.

A changed object is synced once everything of the instant has settled. After a failure it is synced
again with exponential backoff, up to 15 times. After too many writes at one instant it pauses
(`BurstLimiter`).

Example with a first delay of 5 ms: add(a), add(b), add(a) yields [a, b]. If the write of a fails at
0 s, a comes back at 5 ms; failing again, at 5 + 10 = 15 ms. `forget(a)` resets its failures.

upstream: client-go/util/workqueue
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig

BURST_MAX: Final = 200
REST: Final[DurationNs] = seconds(1)


class WorkQueue:
    """Keys in the order in which they were added, each at most once."""

    def __init__(self, config: WorkloadsConfig) -> None:
        """Start empty."""
        self._retries = Retries(config)
        self._burst_limiter = BurstLimiter()
        self._keys: dict[Key, None] = {}

    def add(self, key: Key) -> None:
        """Queues `key` for the next sync."""
        self._keys[key] = None

    def refused(self, key: Key, now: Instant) -> None:
        """Queues `key` again after a backoff, unless it has failed too often."""
        self._retries.refused(key, now)

    def forget(self, key: Key) -> None:
        """Resets the failures of `key`."""
        self._retries.taken(key)

    def next_due(self) -> Instant | None:
        """0 if keys are queued, else the time of the next retry."""
        return 0 if self._keys else self._retries.next_due()

    def take(self, now: Instant) -> Iterable[Key]:
        """Takes all keys that are due; keys added from now on come next time."""
        keys, self._keys = self._keys, {}
        return keys | dict.fromkeys(self._retries.pop_due(now))

    def rests(self, key: Key, now: Instant) -> bool:
        """Whether `key` was written too often at this instant; then it is queued for later."""
        if not self._burst_limiter.is_exceeded(key, now):
            return False
        self._retries.rest(key, now)
        return True

    def wrote(self, key: Key, now: Instant, times: int) -> None:
        """Counts `times` writes for `key`."""
        self._burst_limiter.record(key, now, times)


Key = tuple[str, str]  # namespace, name

RETRIES_MAX: Final = 15


@dataclass(slots=True)
class Retries:
    """Counts consecutive failures by key, and schedules retries."""

    config: WorkloadsConfig
    _failures: dict[Key, int] = field(default_factory=dict)
    _due: TimerQueue[Key] = field(default_factory=TimerQueue)

    def refused(self, key: Key, now: Instant) -> None:
        """A write failed at `now`."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if failures <= RETRIES_MAX:
            self._due.add(now + self.config.retry_after(failures), key)

    def rest(self, key: Key, now: Instant) -> None:
        """Too many writes at `now`: schedule a pause."""
        self._due.add(now + REST, key)

    def taken(self, key: Key) -> None:
        """A write succeeded, or the object is gone."""
        self._failures.pop(key, None)

    def next_due(self) -> Instant | None:
        """Time of the next retry."""
        return self._due.next_due()

    def pop_due(self, now: Instant) -> list[Key]:
        """The keys to retry now."""
        return list(self._due.pop_due(now))


@dataclass(slots=True)
class BurstLimiter:
    """Limits the writes by key at one instant; only the newest instant is counted.

    When another component reverts a write at once, for example an admission policy that changes
    objects, controller and policy would alternate forever while the simulated time stands still.
    Upstream's controllers are limited by their client's requests per second instead.
    """

    _now: Instant = 0
    _times: dict[object, int] = field(default_factory=dict)

    def record(self, key: object, now: Instant, times: int = 1) -> None:
        """Counts `times` writes for `key`."""
        if now != self._now:
            self._now, self._times = now, {}
        self._times[key] = self._times.get(key, 0) + times

    def is_exceeded(self, key: object, now: Instant, maximum: int = BURST_MAX) -> bool:
        """Whether `key` has reached `maximum` writes at this instant and must pause."""
        return now == self._now and self._times.get(key, 0) >= maximum
