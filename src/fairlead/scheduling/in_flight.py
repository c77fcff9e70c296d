"""InFlightEvents: what happened while pods were being tried.

A rejection found on yesterday's facts must not put a pod to sleep over today's: every event that
arrives between a pod's pop and the end of its attempt is kept, and asked about when the pod comes
back (backend/queue/active_queue.go: inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from fairlead.framework.cluster_event import ClusterEvent
from fairlead.scheduling.queued_pod import QueuedPod

Entry = tuple[ClusterEvent, QueuedPod | None]


class InFlightEvents:
    """A list of events in order, kept only while somebody is in flight."""

    def __init__(self) -> None:
        """Nobody is in flight."""
        self._events: list[Entry] = []
        self._since: dict[QueuedPod, int] = {}

    def begin(self, queued: QueuedPod) -> None:
        """`queued` is being tried from now on; ended by `end`."""
        self._since[queued] = len(self._events)

    def end(self, queued: QueuedPod) -> list[ClusterEvent]:
        """`queued` is not in flight any more; what happened meanwhile that may concern it."""
        since = self._since.pop(queued, None)
        if since is None:
            return []
        missed = [event for event, only in self._events[since:] if only in (None, queued)]
        if not self._since:
            self._events.clear()
        return missed

    def note(self, event: ClusterEvent) -> None:
        """Something happened that may concern anybody."""
        if self._since:
            self._events.append((event, None))

    def note_own(self, queued: QueuedPod, events: list[ClusterEvent]) -> None:
        """`queued` itself changed."""
        if queued in self._since:
            self._events.extend((event, queued) for event in events)
