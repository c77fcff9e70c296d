"""InFlightEvents: the events that arrive while pods are being scheduled.

If an event that arrives during a pod's attempt makes the rejection of the pod obsolete, the pod
must not be put into the unschedulable pool. So all events that arrive after a pod is popped are
kept until its attempt ends. The kept events are checked when the pod returns to the queue
(backend/queue/active_queue.go: inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from typing import Final

from fairlead.engine.framework.cluster_event import ClusterEvent
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod

_TRIMMED_FROM: Final = 1024
Entry = tuple[ClusterEvent, QueuedPod | None]


class InFlightEvents:
    """The events that arrived after the oldest attempt in progress began, in order of arrival."""

    def __init__(self) -> None:
        """Start without pods in flight."""
        self._events: list[Entry] = []
        self._start = 0
        self._since: dict[QueuedPod, int] = {}

    def __bool__(self) -> bool:
        """Return whether any pod is in flight."""
        return bool(self._since)

    def begin(self, queued: QueuedPod) -> None:
        """Start to keep events for `queued`; `end` stops this."""
        self._since[queued] = self._start + len(self._events)

    def end(self, queued: QueuedPod) -> list[ClusterEvent]:
        """Stop keeping events for `queued`.

        Returns the events since `begin` that concern this pod.
        """
        since = self._since.pop(queued, None)
        if since is None:
            return []
        if not self._events:
            return []
        later = self._events[since - self._start :]
        self._trim()
        return [event for event, only in later if only in (None, queued)]

    def _trim(self) -> None:
        """Remove the events before the oldest attempt in progress, if many have accumulated."""
        needed = min(self._since.values(), default=self._start + len(self._events))
        if not self._since or needed - self._start > _TRIMMED_FROM:
            del self._events[: needed - self._start]
            self._start = needed

    def note(self, event: ClusterEvent) -> None:
        """Add an event that may concern any pod."""
        if self._since:
            self._events.append((event, None))

    def note_own(self, queued: QueuedPod, events: list[ClusterEvent]) -> None:
        """Add events that concern only `queued`."""
        if queued in self._since:
            self._events.extend((event, queued) for event in events)
