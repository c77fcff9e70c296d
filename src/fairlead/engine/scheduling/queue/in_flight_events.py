"""InFlightEvents: what happened while pods were being tried.

A rejection found on yesterday's facts must not put a pod to sleep over today's: every event that
arrives between a pod's pop and the end of its attempt is kept, and asked about when the pod comes
back (backend/queue/active_queue.go: inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from typing import Final

from fairlead.engine.framework.cluster_event import ClusterEvent
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod

_TRIMMED_FROM: Final = 1024
Entry = tuple[ClusterEvent, QueuedPod | None]


class InFlightEvents:
    """A list of events in order, kept only while somebody is in flight."""

    def __init__(self) -> None:
        """Nobody is in flight."""
        self._events: list[Entry] = []
        self._start = 0
        self._since: dict[QueuedPod, int] = {}

    def begin(self, queued: QueuedPod) -> None:
        """`queued` is being tried from now on; ended by `end`."""
        self._since[queued] = self._start + len(self._events)

    def end(self, queued: QueuedPod) -> list[ClusterEvent]:
        """`queued` is not in flight any more; what happened meanwhile that may concern it."""
        since = self._since.pop(queued, None)
        if since is None:
            return []
        later = self._events[since - self._start :]
        self._trim()
        return [event for event, only in later if only in (None, queued)]

    def _trim(self) -> None:
        """Forget what happened before anybody now in flight was popped, a lot at a time."""
        needed = min(self._since.values(), default=self._start + len(self._events))
        if not self._since or needed - self._start > _TRIMMED_FROM:
            del self._events[: needed - self._start]
            self._start = needed

    def note(self, event: ClusterEvent) -> None:
        """Something happened that may concern anybody."""
        if self._since:
            self._events.append((event, None))

    def note_own(self, queued: QueuedPod, events: list[ClusterEvent]) -> None:
        """`queued` itself changed."""
        if queued in self._since:
            self._events.extend((event, queued) for event in events)
