"""Work queue: which objects a controller is to look at, now or again later, by their keys.

What changed is looked at once all has settled; what was refused is tried again later and later;
what was written too often at one instant has to rest.

upstream: client-go/util/workqueue
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.pod_control.burst_limiter import BurstLimiter
from fairlead.engine.workloads.retries import Key, Retries


class WorkQueue:
    """Keys in the order in which they came; each stands there once."""

    def __init__(self, config: WorkloadsConfig) -> None:
        """Nothing is to be looked at."""
        self._retries = Retries(config)
        self._burst_limiter = BurstLimiter()
        self._keys: dict[Key, None] = {}

    def add(self, key: Key) -> None:
        """Look at it as soon as all has settled."""
        self._keys[key] = None

    def refused(self, key: Key, now: Instant) -> None:
        """What was written of it was refused: look at it again later, unless it was too often."""
        self._retries.refused(key, now)

    def forget(self, key: Key) -> None:
        """Its refusals do not count any more."""
        self._retries.taken(key)

    def next_due(self) -> Instant | None:
        """At once where something has changed, or when something is tried again."""
        return 0 if self._keys else self._retries.next_due()

    def take(self, now: Instant) -> Iterable[Key]:
        """All that is due; what is added from now on is for the next time."""
        keys, self._keys = self._keys, {}
        return keys | dict.fromkeys(self._retries.pop_due(now))

    def rests(self, key: Key, now: Instant) -> bool:
        """Whether it was written too often at this instant: then it comes again after a rest."""
        if not self._burst_limiter.is_exceeded(key, now):
            return False
        self._retries.rest(key, now)
        return True

    def wrote(self, key: Key, now: Instant, times: int) -> None:
        """So many writes of it were asked for."""
        self._burst_limiter.record(key, now, times)
