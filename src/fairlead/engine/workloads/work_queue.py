"""WorkQueue: keys of objects to sync, with deduplication, backoff and a burst limit.

A changed object is synced after all changes of the same instant, once its writes are no longer in
flight. After a failed write, the object is synced again with exponential backoff, up to 15 times.
If an object needs too many writes at one instant, its next sync is delayed (`BurstLimiter`).

Example with a first delay of 5 ms and the keys `A` and `B`: after add(A), add(B), add(A), the keys
[A, B] are due. If a write of `A` fails at 0 ms, `A` is retried at 5 ms. If the retry fails, `A` is
retried again at 5 + 10 = 15 ms. `forget(A)` resets the failure count.

upstream: client-go/util/workqueue
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig

BURST_MAX: Final = 200
RETRIES_MAX: Final = 15
BURST_DELAY: Final[DurationNs] = seconds(1)


Key = tuple[str, str]  # namespace, name
Write = CreateObject | PatchObject | DeleteObject


class _InFlight(Struct):
    """The objects (`targets`) that have a write in flight for one key.

    `is_stale` is set if the key became due again while the writes were in flight. `refused_at` is
    the time of the last refusal, or None.
    """

    targets: set[ObjectRef] = field(default_factory=set)
    is_stale: bool = False
    refused_at: Instant | None = None


class WorkQueue:
    """Keys in the order in which they were added, each at most once."""

    def __init__(self, config: WorkloadsConfig) -> None:
        self._retries = Retries(config)
        self._burst_limiter = BurstLimiter()
        self._keys: dict[Key, None] = {}
        self._in_flight: dict[Key, _InFlight] = {}
        self._writers: dict[ObjectRef, Key] = {}

    def add(self, key: Key) -> None:
        """Queue `key` for the next sync."""
        self._keys[key] = None

    def forget(self, key: Key) -> None:
        """Reset the failure count of `key`, and ignore the outcomes of its writes in flight."""
        self._retries.reset(key)
        for target in self._in_flight.pop(key, _InFlight()).targets:
            del self._writers[target]

    def next_due(self) -> Instant | None:
        """Return 0 (already due) if keys are queued, else the time of the next retry.

        Returns None if no key is queued and no retry is scheduled.
        """
        return 0 if self._keys else self._retries.next_due()

    def pop_due(self, now: Instant) -> Iterator[Key]:
        """Yield the keys that are due and not in flight.

        Keys that exceed the burst limit are delayed. Keys that are added during the iteration wait
        for the next call.
        """
        keys, self._keys = self._keys, {}
        for key in keys | dict.fromkeys(self._retries.pop_due(now)):
            if key in self._in_flight:
                self._in_flight[key].is_stale = True
            elif self._burst_limiter.is_exceeded(key, now):
                self._retries.pause(key, now)
            else:
                yield key

    def sent(self, key: Key, commands: Iterable[Write], now: Instant) -> None:
        """Record the writes `commands`, which a sync of `key` sent at `now`.

        The caller must report the outcome of each write with `record_outcome`.
        """
        targets = [command.target for command in commands]
        self._burst_limiter.record(key, now, len(targets))
        if targets:
            self._in_flight.setdefault(key, _InFlight()).targets.update(targets)
            self._writers |= dict.fromkeys(targets, key)

    def is_pending(self, key: Key) -> bool:
        """Return whether writes of `key` are in flight."""
        return key in self._in_flight

    def record_outcome(self, target: ObjectRef, refused_at: Instant | None) -> None:
        """Handle the outcome of a write to `target`; ignore writes that this queue did not record.

        `refused_at` is the time of the refusal, or None if the write succeeded. When all writes of
        a sync have an outcome, the sync is retried if any of them was refused. A sync counts as one
        failure, however many of its writes were refused.
        """
        key = self._writers.pop(target, None)
        if key is None:
            return
        flight = self._in_flight[key]
        flight.targets.discard(target)
        if refused_at is not None:
            flight.refused_at = refused_at
        if flight.targets:
            return
        del self._in_flight[key]
        if flight.refused_at is not None:
            self._retries.refused(key, flight.refused_at)
        else:
            self._retries.reset(key)
        if flight.is_stale:
            self.add(key)


class Retries(Struct):
    """Counts consecutive failures by key, and schedules retries."""

    config: WorkloadsConfig
    _failures: dict[Key, int] = field(default_factory=dict)
    _due: TimerQueue[Key] = field(default_factory=TimerQueue)

    def refused(self, key: Key, now: Instant) -> None:
        """Record a sync with failed writes; schedule a retry, up to RETRIES_MAX times.

        `now` is the time of the last failure.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if failures <= RETRIES_MAX:
            self._due.add(now + self.config.retry_after(failures), key)

    def pause(self, key: Key, now: Instant) -> None:
        """Schedule the next sync of `key` at BURST_DELAY after `now`.

        Call this if the syncs of `key` have sent as many writes as the burst limit allows.
        """
        self._due.add(now + BURST_DELAY, key)

    def reset(self, key: Key) -> None:
        """Forget failures of `key`: all writes of a sync succeeded, or its object was deleted."""
        self._failures.pop(key, None)

    def next_due(self) -> Instant | None:
        """Return the time of the next retry, or None if no retry is scheduled."""
        return self._due.next_due()

    def pop_due(self, now: Instant) -> list[Key]:
        """Return the keys to retry now."""
        return list(self._due.pop_due(now))


class BurstLimiter(Struct):
    """Limits how often each key is written at the same instant.

    Only the writes of the newest instant are counted. If an admission policy reverts the writes of
    a controller, writes and reversals could alternate forever at one instant. The limit makes
    simulated time advance. Upstream's clients limit requests per second instead.
    """

    _now: Instant = 0
    _times: dict[object, int] = field(default_factory=dict)

    def record(self, key: object, now: Instant, times: int = 1) -> None:
        """Count `times` more writes of `key` at the instant `now`."""
        if now != self._now:
            self._now, self._times = now, {}
        self._times[key] = self._times.get(key, 0) + times

    def is_exceeded(self, key: object, now: Instant, maximum: int = BURST_MAX) -> bool:
        """Return whether `key` has reached `maximum` writes at `now` and must pause."""
        return now == self._now and self._times.get(key, 0) >= maximum
