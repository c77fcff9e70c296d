"""ConsolidationMemory: records which methods found no command since the cluster last changed.

upstream: pkg/controllers/state/cluster.go:ConsolidationState, MarkUnconsolidated
"""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import DurationNs, Instant

_FORGET_AFTER_NS: Final[DurationNs] = 300 * NANOSECONDS_PER_SECOND


class ConsolidationMemory:
    """Records which consolidation methods found no command since the cluster last changed.

    After five minutes without a change, all methods run again.
    """

    def __init__(self) -> None:
        """Start in a state in which every consolidation method has to run."""
        self._changed_at: Instant = 0
        self._changes = 0
        self._seen: dict[str, tuple[int, Instant]] = {}

    def change(self, now: Instant) -> None:
        """Record that the cluster has changed, so that methods run again."""
        self._changed_at = now
        self._changes += 1

    def _state(self, now: Instant) -> tuple[int, Instant]:
        """Return the number of changes, and the time of the last change.

        If nothing has changed for five minutes, a change at `now` is recorded first.
        """
        if now - self._changed_at >= _FORGET_AFTER_NS:
            self.change(now)
        return self._changes, self._changed_at

    def is_consolidated(self, method: str, now: Instant) -> bool:
        """Return whether `method` ran since the cluster last changed, and found no command."""
        return self._seen.get(method) == self._state(now)

    def still_holds(self, method: str, now: Instant) -> bool:
        """Return the same as `is_consolidated`, but leave the memory unchanged."""
        is_recent = now - self._changed_at < _FORGET_AFTER_NS
        return is_recent and self._seen.get(method) == (self._changes, self._changed_at)

    def mark(self, method: str, now: Instant) -> None:
        """Record that `method` ran after the last change of the cluster, and found no command."""
        self._seen[method] = self._state(now)

    def expires_at(self) -> Instant:
        """Return the time at which all methods run again even if nothing changes."""
        return self._changed_at + _FORGET_AFTER_NS
