"""Retries: what was refused is tried again, later and later, and given up in the end.

upstream: controllers whose handleErr counts requeues, such as pkg/controller/endpoint
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.pod_control.burst_limiter import REST

Key = tuple[str, str]  # namespace, name

RETRIES_MAX: Final = 15


@dataclass(slots=True)
class Retries:
    """Counts how often in a row something was refused, by what it was about."""

    config: WorkloadsConfig
    _failures: dict[Key, int] = field(default_factory=dict)
    _due: TimerQueue[Key] = field(default_factory=TimerQueue)

    def refused(self, key: Key, now: Instant) -> None:
        """It was refused at `now`."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if failures <= RETRIES_MAX:
            self._due.add(now + self.config.retry_after(failures), key)

    def rest(self, key: Key, now: Instant) -> None:
        """It was done too often at `now`."""
        self._due.add(now + REST, key)

    def taken(self, key: Key) -> None:
        """It was taken, or is of no interest any more."""
        self._failures.pop(key, None)

    def next_due(self) -> Instant | None:
        """When something is to be tried again."""
        return self._due.next_due()

    def pop_due(self, now: Instant) -> list[Key]:
        """What is to be tried again now."""
        return list(self._due.pop_due(now))
