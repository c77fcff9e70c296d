"""FollowUpPace: limits how often controllers react to changes of pods of a large owner.

Thousands of pods may start one after the other. Each change would cause a status write that the
next change makes obsolete. Upstream's controllers combine these changes, because a sync of a large
owner takes time. Here a sync takes no time, so this class combines the changes instead. The first
change is followed up immediately. Later changes within an interval are followed up together at the
end of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairlead.engine.core.instant import DurationNs, Instant


class FollowUpPace:
    """Limits how often a controller reacts to changes of the pods of each large owner."""

    def __init__(self, interval: DurationNs, is_large: Callable[[str], bool]) -> None:
        """Limit each large owner to one follow-up per `interval` (ns); 0 means no limit.

        A follow-up is the reaction of a controller to changes of the owner's pods. `is_large(key)`
        returns whether the limit applies to the owner `key`.
        """
        self._interval = interval
        self._is_large = is_large
        self._last: dict[str, Instant] = {}
        self._waiting: dict[str, Instant] = {}

    def due(self, changed: Iterable[str], now: Instant) -> list[str]:
        """Return the keys of the owners whose follow-up is due now.

        The returned owners were waiting, or are in `changed`. The other owners in `changed` start
        or continue to wait.
        """
        if not self._interval:
            return list(changed)
        due = [key for key, at in self._waiting.items() if at <= now]
        due += [key for key in changed if key not in self._waiting and self._is_due(key, now)]
        for key in due:
            self._waiting.pop(key, None)
            if self._is_large(key):
                self._last[key] = now
            else:
                self._last.pop(key, None)
        return due

    def are_waiting(self, changed: Mapping[str, None]) -> bool:
        """Return whether every owner in `changed` already waits for a follow-up."""
        return changed.keys() <= self._waiting.keys()

    def next_due(self) -> Instant | None:
        """Return the time of the next follow-up of a waiting owner; None if no owner waits."""
        return min(self._waiting.values(), default=None)

    def forget(self, key: str) -> None:
        """Drop the records about a deleted owner."""
        self._last.pop(key, None)
        self._waiting.pop(key, None)

    def _is_due(self, key: str, now: Instant) -> bool:
        last = self._last.get(key)
        if last is None or now - last >= self._interval or not self._is_large(key):
            return True
        self._waiting[key] = last + self._interval
        return False
