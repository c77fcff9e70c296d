"""MoveRequestQueue: the scheduling queue of versions without queueing hints, such as 1.19.

An event that may make pods schedulable is a *move request*. A move request moves all unschedulable
pods to the active or backoff queue, whichever plugin rejected them. But if the event is about a pod
with a node, the request moves only the unschedulable pods that have a required pod affinity term
that matches the pod of the event. If there was a move request since the last pop, a failed pod goes
to the backoff queue. If there was no move request, a failed pod goes to the unschedulable pool,
even if it failed with an error. An updated pod becomes active immediately if it was backing off or
in flight, or if more than its status changed.

upstream: v1.19 internal/queue/scheduling_queue.go, eventhandlers.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import structs

from fairlead.api.objects import ObjectMeta, PodSpec, StorageClass
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import Instant
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod, QueueName
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.pod_info import PodInfo

MOVE_ALL: Final = frozenset(
    {
        EventKind.NODE_ADD,
        EventKind.NODE_ALLOCATABLE,
        EventKind.NODE_LABEL,
        EventKind.NODE_TAINT,
        EventKind.NODE_CONDITION,
        EventKind.ASSIGNED_POD_DELETE,
        EventKind.VOLUME_ADD,
        EventKind.VOLUME_UPDATE,
        EventKind.VOLUME_CLAIM_ADD,
        EventKind.VOLUME_CLAIM_UPDATE,
        EventKind.CSI_NODE_ADD,
        EventKind.CSI_NODE_UPDATE,
    }
)
_MOVE_MATCHING: Final = frozenset({EventKind.ASSIGNED_POD_ADD, EventKind.ASSIGNED_POD_LABEL})
_LATE_BINDING: Final = "WaitForFirstConsumer"


class MoveRequestQueue(SchedulingQueue):
    """A queue in which an event wakes unschedulable pods, whichever plugins rejected them."""

    _cycle = 0
    _moved_in = -1

    def pop(self, now: Instant) -> QueuedPod | None:
        """Remove and return the next pod to schedule, or None; its attempt starts now."""
        queued = super().pop(now)
        self._cycle += queued is not None
        return queued

    def assigned_pod_events(self, old: PodInfo, new: PodInfo) -> Iterator[ClusterEvent]:
        """Yield one event for a changed pod that has a node, regardless of what changed.

        upstream: eventhandlers.go: updatePodInCache
        """
        yield ClusterEvent(EventKind.ASSIGNED_POD_LABEL, old, new)

    def wake(self, event: ClusterEvent, now: Instant, spare: str = "") -> None:
        """Move the unschedulable pods to the active or backoff queue if `event` is a move request.

        The pod with the ID `spare` is not moved. If a pod with a node was added or changed, only
        the unschedulable pods with a required affinity term that matches the changed pod are moved.
        """
        if _moves_all(event) or event.kind in _MOVE_MATCHING:
            super().wake(event, now, spare)
            self._moved_in = self._cycle

    def wake_after_assignment(self, pod: PodInfo, now: Instant) -> None:
        """Call `wake`, even if no pod is waiting, because `wake` records the move request."""
        self.wake(ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, pod), now)

    def wake_after_nomination(self, pod: PodInfo, now: Instant) -> None:
        """Do nothing, because the end of a nomination is not a move request."""

    def wake_after_refusal(self, pod: PodInfo, now: Instant, spare: str = "") -> None:
        """Do nothing, because a refused binding is not a move request."""

    def _any_registered(self, plugins: tuple[str, ...], kind: EventKind) -> bool:
        return True

    def _is_woken(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        if event.kind is EventKind.FLUSH or _moves_all(event):
            return True
        return isinstance(event.new, PodInfo) and _is_attracted(queued.info, event.new)

    def _has_missed(self, queued: QueuedPod, missed: list[ClusterEvent]) -> bool:
        return self._moved_in >= self._cycle

    def _backoff_count(self, queued: QueuedPod) -> int:
        """Return the number of attempts of the pod, because a backoff follows every attempt.

        upstream: scheduling_queue.go: calculateBackoffDuration
        """
        return queued.attempts

    def put_back(self, queued: QueuedPod, now: Instant, plugins: tuple[str, ...]) -> None:
        """Requeue a popped pod whose attempt failed, if no update has requeued the pod already."""
        if self._pods.get(queued.info.key) in (None, queued):
            super().put_back(queued, now, plugins)

    def update(self, pod: PodInfo, now: Instant, events: list[ClusterEvent]) -> None:
        """Store a new version of a waiting or in-flight pod, and ignore `events`.

        A pod that is backing off or in flight becomes active. An unschedulable pod becomes active
        if more than its status changed.
        """
        queued = self._pods.get(pod.key)
        if queued is None or queued.place is QueueName.IN_FLIGHT:
            self.add(pod, now)
            return
        is_retried = queued.place in (QueueName.BACKOFF, QueueName.ERROR_BACKOFF)
        if queued.place is QueueName.UNSCHEDULABLE and _is_updated(queued.info, pod):
            self._leave_pool(queued)
            is_retried = True
        super().update(pod, now, [])
        if is_retried:
            self._push_active(queued)


def _moves_all(event: ClusterEvent) -> bool:
    if event.kind is EventKind.STORAGE_CLASS_ADD:
        added = event.new
        return isinstance(added, StorageClass) and added.volume_binding_mode == _LATE_BINDING
    return event.kind in MOVE_ALL


def _is_attracted(pod: PodInfo, other: PodInfo) -> bool:
    """Return whether `other` matches a required pod affinity term of `pod`.

    upstream: v1.19 internal/queue/scheduling_queue.go: getUnschedulablePodsWithMatchingAffinityTerm
    """
    affinity = pod.shape.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    if near is None:
        return False
    return any(
        other.namespace in (term.namespaces or (pod.namespace,))
        and selector_matches(term.label_selector, other.labels)
        for term in near.required_during_scheduling_ignored_during_execution
    )


def _is_updated(old: PodInfo, new: PodInfo) -> bool:
    """Return whether more than the status differs between `old` and `new` (isPodUpdated)."""
    return _without_status(old) != _without_status(new)


def _without_status(pod: PodInfo) -> tuple[PodSpec, ObjectMeta]:
    metadata = structs.replace(pod.pod.metadata, resource_version="", generation=0)
    return pod.pod.spec, metadata
