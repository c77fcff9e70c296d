"""SchedulingQueue: decides which pod is scheduled next, and when other pods may be retried.

    add ──▶ ACTIVE ──pop──▶ IN_FLIGHT ──done──▶ (gone)
              ▲                    │ failed
              ├─flush── ERROR_BACKOFF ◀── with an error
              ├─flush── BACKOFF ◀──┐
              │                    │ woken before its backoff has ended
              └─woken── UNSCHEDULABLE ◀── rejected by plugins

ACTIVE is ordered by the QueueSort plugin. If ACTIVE is empty, the first pod of BACKOFF is popped
immediately: backoff matters only while ACTIVE contains pods (feature SchedulerPopFromBackoffQ). A
pod whose last attempt ended with an error always waits in ERROR_BACKOFF until its backoff ends. A
pod leaves UNSCHEDULABLE if an event may make it schedulable. The plugins that rejected the pod
decide whether an event may make the pod schedulable. The periodic *leftover flush* releases pods
that have been in UNSCHEDULABLE for too long, by default five minutes.

upstream: pkg/scheduler/backend/queue/{scheduling_queue,active_queue,backoff_queue}.go
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Final

from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.status import Status
from fairlead.engine.framework.cluster_event import (
    ClusterEvent,
    EventKind,
    assigned_pod_events,
    is_registered_for,
    wakes,
    wakes_alike,
)
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.equivalence_cache.equivalence_key import equivalence_key
from fairlead.engine.scheduling.queue.backoff import BackoffConfig, backoff_clock
from fairlead.engine.scheduling.queue.entry_queue import EntryQueue
from fairlead.engine.scheduling.queue.in_flight_events import InFlightEvents
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod, QueueName
from fairlead.engine.state.pod_info import PodInfo

_LEFTOVER_FLUSH_PERIOD: Final = seconds(30)
_ACTIVATIONS_PER_INSTANT_MAX: Final = 10
_EQUIVALENCE_CLASSES_MAX: Final = 4_096
IMMEDIATELY: Final[Instant] = 0
# Members that are read often (STYLE.md, rule 19).
_UNSCHEDULABLE: Final = QueueName.UNSCHEDULABLE
_IN_FLIGHT: Final = QueueName.IN_FLIGHT
_GONE: Final = QueueName.GONE
_Group = tuple[str, tuple[str, ...]]


class SchedulingQueue:
    """The active, backoff and unschedulable queues, and the pods in flight."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        config: BackoffConfig,
        start: Instant,
        extra_gate: Callable[[PodInfo], Status | None] | None = None,
    ) -> None:
        """Start without pods.

        Every 30 s after `start`, the queue releases pods that have been in UNSCHEDULABLE for too
        long (`_flush_leftover`).

        `frameworks` maps the names of profiles to their frameworks. If no PreEnqueue plugin rejects
        a pod, `extra_gate` is called, and may reject the pod like a PreEnqueue plugin.
        """
        self._frameworks = frameworks
        self._config = config
        self._clock = backoff_clock(config, start)
        self._start = start
        self._in_flight = InFlightEvents()
        self._extra_gate = extra_gate
        self._pods: dict[str, QueuedPod] = {}
        self._active = EntryQueue(QueueName.ACTIVE)
        self._backoff = EntryQueue(QueueName.BACKOFF)
        self._error_backoff = EntryQueue(QueueName.ERROR_BACKOFF)
        # The pods are grouped by the plugin that gates them and the plugins that rejected them. For
        # each group, one check finds out whether a plugin is registered for an event. The inner
        # dicts keep the order of arrival.
        self._unschedulable: dict[_Group, dict[str, QueuedPod]] = {}
        self._waiting_since: list[tuple[Instant, int, QueuedPod]] = []
        self._sequence = 0
        self._flushed_at: Instant | None = None
        self._wakes_alike: dict[tuple[str, ...], bool] = {}  # by the names of plugins
        self._equivalence_classes: dict[Hashable, int] = {}
        self._registered: dict[tuple[tuple[str, ...], EventKind], bool] = {}

    # --- in and out ------------------------------------------------------------------------

    def add(self, pod: PodInfo, now: Instant) -> None:
        """Add a new pod; it becomes active, or unschedulable if PreEnqueue rejects it."""
        queued = QueuedPod(pod, now, self._next())
        self._pods[pod.key] = queued
        self._enqueue(queued, now)

    def update(self, pod: PodInfo, now: Instant, events: list[ClusterEvent]) -> None:
        """Store a new version of a waiting pod; `events` are the cluster events of the update.

        If the pod is not in the queue, it is added.
        """
        queued = self._pods.get(pod.key)
        if queued is None:
            self.add(pod, now)
            return
        old, queued.info = queued.info, pod
        match queued.place:
            case QueueName.ACTIVE if old.priority != pod.priority:
                self._push_active(queued)
            case QueueName.BACKOFF if old.priority != pod.priority:
                self._push_backoff(queued)
            case QueueName.UNSCHEDULABLE:
                if any(self._is_woken(queued, event) for event in events):
                    self._leave_pool(queued)
                    self._enqueue(queued, now)
            case QueueName.IN_FLIGHT:
                self._in_flight.note_own(queued, events)
            case _:
                pass

    def remove(self, key: str) -> None:
        """Remove the pod `key`, which is bound, finished or deleted."""
        queued = self._pods.pop(key, None)
        if queued is None:
            return
        if queued.place is _UNSCHEDULABLE:
            self._leave_pool(queued)
        queued.place = _GONE

    def find(self, key: str) -> QueuedPod | None:
        """Return the pod with `key` if it waits or is in flight, or else None.

        `key` is the pod's `namespace/name`.
        """
        return self._pods.get(key)

    def counts(self) -> dict[str, int]:
        """Return the number of waiting pods in each queue, keyed by upstream's queue names."""
        counts = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        for queued in self._pods.values():
            match queued.place:
                case QueueName.ACTIVE:
                    counts["active"] += 1
                case QueueName.BACKOFF | QueueName.ERROR_BACKOFF:
                    counts["backoff"] += 1
                case QueueName.UNSCHEDULABLE:
                    counts["gated" if queued.gated_by else "unschedulable"] += 1
                case _:
                    pass
        return counts

    def rejections(self) -> dict[tuple[str, str], int]:
        """Return, for each (plugin, profile), the number of queued pods that the plugin rejected.

        For each pod, only the rejections of the last attempt and later PreEnqueue rejections count.
        """
        counts: dict[tuple[str, str], int] = {}
        for queued in self._pods.values():
            profile = queued.info.pod.spec.scheduler_name
            for plugin in queued.plugins:
                counts[plugin, profile] = counts.get((plugin, profile), 0) + 1
        return counts

    def __len__(self) -> int:
        """Return the number of pods that are waiting or in flight."""
        return len(self._pods)

    def pop(self, now: Instant) -> QueuedPod | None:
        """Remove and return the next pod to schedule, or None; its attempt starts now."""
        self.flush(now)
        queued = self._active.pop()
        if queued is None and self._config.pop_from_backoff:
            queued = self._backoff.pop()
        if queued is not None:
            self._begin_attempt(queued)
        return queued

    def pop_specific(self, key: str) -> QueuedPod | None:
        """Remove and return the waiting pod `key`, even from backoff; its attempt starts now.

        Returns None if the pod is gated, in flight or unknown.
        upstream: PopSpecificPod
        """
        queued = self._pods.get(key)
        if queued is None or queued.gated_by or queued.place is _IN_FLIGHT:
            return None
        if queued.place is _UNSCHEDULABLE:
            self._leave_pool(queued)
        self._begin_attempt(queued)
        return queued

    def _begin_attempt(self, queued: QueuedPod) -> None:
        queued.place = _IN_FLIGHT
        queued.attempts += 1
        queued.plugins = ()
        self._in_flight.begin(queued)

    def done(self, queued: QueuedPod) -> None:
        """End the attempt of a popped pod, and remove the pod."""
        self._in_flight.end(queued)
        found = self._pods.get(queued.info.key)
        if found is not None and found.info.id == queued.info.id:
            del self._pods[queued.info.key]
            found.place = _GONE
        queued.place = _GONE

    def put_back(self, queued: QueuedPod, now: Instant, plugins: tuple[str, ...]) -> None:
        """Requeue a popped pod after a failed attempt.

        `plugins` are the plugins that rejected the pod; () if the attempt failed with an error.

        upstream: AddUnschedulableIfNotPresent
        """
        missed = self._in_flight.end(queued)
        self._pods[queued.info.key] = queued
        queued.timestamp = now
        queued.stamp = self._next()
        queued.plugins = plugins
        if plugins:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        queued.window = self._clock.expiry(now, self._backoff_count(queued))
        if self._has_missed(queued, missed):
            self._enqueue(queued, now)
        else:
            self._join_pool(queued)

    def _has_missed(self, queued: QueuedPod, missed: list[ClusterEvent]) -> bool:
        """Return whether an event in `missed` may make the pod schedulable.

        `missed` are the events that occurred during the pod's attempt. If the attempt failed with
        an error instead of a rejection, the result is True.
        """
        if not queued.plugins:
            return True
        # Usually, there are no such events, and a generator would be created for nothing.
        return bool(missed) and any(self._is_woken(queued, event) for event in missed)

    def _backoff_count(self, queued: QueuedPod) -> int:
        return queued.backoff_count

    # --- waking ----------------------------------------------------------------------------

    def assigned_pod_events(self, old: PodInfo, new: PodInfo) -> Iterator[ClusterEvent]:
        """Return the cluster events for a change of a pod that has a node."""
        return assigned_pod_events(old, new)

    def wake(self, event: ClusterEvent, now: Instant, spare: str = "") -> None:
        """Wake every pod that `event` may make schedulable, except the pod with ID `spare`.

        A gated pod is woken only by events for which the plugin that gates it is registered.

        upstream: movePodsToActiveOrBackoffQueue
        """
        self._in_flight.note(event)
        if not self._unschedulable:
            return
        woken: list[QueuedPod] = []
        for (gate, plugins), pods in self._unschedulable.items():
            if self._any_registered((gate,) if gate else plugins, event.kind):
                woken += self._woken_among(plugins, pods.values(), event)
        woken.sort(key=lambda queued: queued.stamp)
        for queued in woken:
            if queued.info.id != spare:
                self._retry(queued, now)

    @property
    def ignores_events(self) -> bool:
        """Whether events have no effect, because no pod is unschedulable or in flight."""
        return not self._unschedulable and not self._in_flight

    def _woken_among(
        self, plugins: tuple[str, ...], pods: Collection[QueuedPod], event: ClusterEvent
    ) -> list[QueuedPod]:
        """Return the pods in `pods` that `event` may make schedulable.

        `plugins` are the names of the plugins that rejected each of `pods`.
        """
        if len(pods) == 1 or not self._wake_alike(plugins):
            return [queued for queued in pods if self._is_woken(queued, event)]
        results: dict[int, bool] = {}
        woken: list[QueuedPod] = []
        for queued in pods:
            number = self._equivalence_class(queued)
            result = results.get(number)
            if result is None:
                result = results[number] = self._is_woken(queued, event)
            if result:
                woken.append(queued)
        return woken

    def _wake_alike(self, plugins: tuple[str, ...]) -> bool:
        """Return whether pods with equal equivalence keys can be woken together.

        The result is True if `wakes_alike` is True for all `plugins` in every profile. Then every
        event wakes either all or none of the pods with equal keys. `plugins` are the names of the
        plugins that rejected the pods.
        """
        found = self._wakes_alike.get(plugins)
        if found is None:
            found = self._wakes_alike[plugins] = all(
                wakes_alike(framework.find(name))
                for framework in self._frameworks.values()
                for name in plugins
            )
        return found

    def _equivalence_class(self, queued: QueuedPod) -> int:
        """Return a number that is equal for pods of one profile with equal equivalence keys."""
        known = queued.equivalence_class
        if known is not None and known[0] is queued.info:
            return known[1]
        key = queued.info.pod.spec.scheduler_name, equivalence_key(queued.info)
        number = self._equivalence_classes.get(key)
        if number is None:
            if len(self._equivalence_classes) >= _EQUIVALENCE_CLASSES_MAX:
                self._equivalence_classes.clear()
            number = self._equivalence_classes[key] = self._next()
        queued.equivalence_class = queued.info, number
        return number

    def _any_registered(self, plugins: tuple[str, ...], kind: EventKind) -> bool:
        """Return whether one of `plugins` is registered for events of `kind` in any profile."""
        found = self._registered.get((plugins, kind))
        if found is None:
            found = self._registered[plugins, kind] = any(
                is_registered_for(framework.find(name), kind)
                for framework in self._frameworks.values()
                for name in plugins
            )
        return found

    def _is_woken(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        if event.priority_max is not None and queued.info.priority > event.priority_max:
            return False
        framework = self._frameworks[queued.info.pod.spec.scheduler_name]
        for name in queued.plugins:  # noqa: SIM110 - any() with a generator takes twice as long
            if wakes(framework.find(name), queued.info, event):
                return True
        return False

    def wake_after_assignment(self, pod: PodInfo, now: Instant) -> None:
        """Wake every pod that may be schedulable because `pod` has a node now."""
        if not self.ignores_events:
            self.wake(ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, pod), now)

    def wake_after_nomination(self, pod: PodInfo, now: Instant) -> None:
        """Wake pods as if `pod` had left its nominated node.

        Call this method if the nomination of `pod` ended without a binding. Pods of higher priority
        than `pod` are not woken.
        """
        event = ClusterEvent(EventKind.ASSIGNED_POD_DELETE, pod, None, priority_max=pod.priority)
        self.wake(event, now)

    def wake_after_refusal(self, pod: PodInfo, now: Instant, spare: str = "") -> None:
        """Handle the refused binding of `pod`: wake pods as if `pod` had left its node.

        The pod with ID `spare` is not woken.
        """
        self.wake(ClusterEvent(EventKind.ASSIGNED_POD_DELETE, pod, None), now, spare)

    def activate(self, key: str, now: Instant) -> None:
        """Move a preemptor that must be retried to the active queue, even during backoff.

        If PreEnqueue rejects the pod, the pod becomes unschedulable instead. API calls may take
        zero virtual time, so the preemptions for a pod could fail endlessly at the same instant. To
        prevent this, a pod that is activated too often at one instant backs off as after an error.
        """
        queued = self._pods.get(key)
        if queued is None or queued.place in (QueueName.ACTIVE, _IN_FLIGHT):
            return
        if queued.place is _UNSCHEDULABLE:
            self._leave_pool(queued)
        queued.activations = queued.activations + 1 if queued.activated_at == now else 1
        queued.activated_at = now
        if self._is_gated(queued):
            self._join_pool(queued)
        elif queued.activations <= _ACTIVATIONS_PER_INSTANT_MAX:
            self._push_active(queued)
        else:
            queued.plugins = ()
            queued.error_count += 1
            queued.window = self._clock.expiry(now, self._backoff_count(queued))
            self._push_backoff(queued)

    # --- time ------------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """Return the next time at which `pop` may return a pod; IMMEDIATELY if this time has come.

        Returns None if no pod can be popped until something changes.
        """
        if self._active.first() is not None:
            return IMMEDIATELY
        backing_off = self._backoff.first()
        if backing_off is not None and self._config.pop_from_backoff:
            return IMMEDIATELY
        error = self._error_backoff.first()
        heads = (head for head in (backing_off, error) if head is not None)
        due = [self._clock.release_at(head.window) for head in heads]
        leftover = self._next_leftover_flush()
        if leftover is not None:
            due.append(leftover)
        return min(due, default=None)

    def flush(self, now: Instant) -> None:
        """Release pods whose backoff is over or that were unschedulable for too long.

        A second flush at the same time would release nothing: a pod that starts to back off or
        becomes unschedulable at `now` is not released before a later time.
        """
        if now == self._flushed_at:
            return
        self._flushed_at = now
        for entries in (self._backoff, self._error_backoff):
            while (queued := entries.first()) and self._is_released(queued, now):
                entries.pop()
                if self._config.pop_from_backoff or not self._is_gated(queued):
                    self._push_active(queued)
                else:
                    self._join_pool(queued)
        self._flush_leftover(now)

    def _is_released(self, queued: QueuedPod, now: Instant) -> bool:
        """Return whether the backoff queue has been flushed since the pod's backoff ended."""
        return self._clock.release_at(queued.window) <= now

    def _flush_leftover(self, now: Instant) -> None:
        """Wake the pods that were unschedulable for too long (flushUnschedulablePodsLeftover)."""
        heap = self._waiting_since
        if not heap or now <= heap[0][0] + self._config.max_in_unschedulable:
            return  # all other pods have waited less than the first, which may have left the pool
        due = self._next_leftover_flush()
        if due is None or now < due:
            return
        tick = now - (now - self._start) % _LEFTOVER_FLUSH_PERIOD
        event = ClusterEvent(EventKind.FLUSH)
        while (queued := self._oldest()) is not None:
            if tick - queued.timestamp <= self._config.max_in_unschedulable:
                break
            heapq.heappop(self._waiting_since)
            if self._is_woken(queued, event):
                self._leave_pool(queued)
                self._enqueue(queued, now)

    def _oldest(self) -> QueuedPod | None:
        """Return the pod that has waited longest in the unschedulable pool, ignoring gated pods."""
        heap = self._waiting_since
        while heap:
            timestamp, token, queued = heap[0]
            valid = queued.place is _UNSCHEDULABLE and queued.token == token
            if valid and queued.timestamp == timestamp and not queued.gated_by:
                return queued
            heapq.heappop(heap)
        return None

    def _next_leftover_flush(self) -> Instant | None:
        """Return the time of the next leftover flush that can wake a pod, or None."""
        oldest = self._oldest()
        if oldest is None:
            return None
        overdue = oldest.timestamp + self._config.max_in_unschedulable
        ticks = (overdue - self._start) // _LEFTOVER_FLUSH_PERIOD + 1
        return self._start + ticks * _LEFTOVER_FLUSH_PERIOD

    # --- places ----------------------------------------------------------------------------

    def _retry(self, queued: QueuedPod, now: Instant) -> None:
        """Take a pod out of the unschedulable pool, if its gating plugin does not reject it again.

        For example, a preemptor is gated until the deletion of its last victim has been requested.
        If an earlier victim is gone before this request, `_retry` is called for the preemptor, but
        the preemptor stays in the pool.
        """
        before = queued.gated_by
        if not before or not self._config.pop_from_backoff:
            self._leave_pool(queued)
            self._enqueue(queued, now)
            return
        gate = self._gate_of(queued)
        if gate == before:
            return
        self._leave_pool(queued)
        queued.gate(gate)
        self._admit(queued, now, is_gated=bool(gate))

    def _enqueue(self, queued: QueuedPod, now: Instant) -> None:
        """Put a pod into the unschedulable, backoff or active queue.

        PreEnqueue runs before a pod enters a queue from which it can be popped
        (scheduling_queue.go: moveToBackoffQ).
        """
        if not self._config.pop_from_backoff and self._is_backing_off(queued, now):
            queued.gated_by = ""
            self._push_backoff(queued)
        else:
            self._admit(queued, now, is_gated=self._is_gated(queued))

    def _admit(self, queued: QueuedPod, now: Instant, *, is_gated: bool) -> None:
        """Add a gated pod to the unschedulable pool, other pods to the active or backoff queue."""
        if is_gated:
            self._join_pool(queued)
        elif self._is_backing_off(queued, now):
            self._push_backoff(queued)
        else:
            if queued.first_active is None:
                queued.first_active = now
            self._push_active(queued)

    def _is_backing_off(self, queued: QueuedPod, now: Instant) -> bool:
        return queued.attempts > 0 and self._clock.is_on(queued.window, now)

    def _is_gated(self, queued: QueuedPod) -> bool:
        """Run PreEnqueue, update `queued.gated_by`; return whether a plugin rejects the pod."""
        gate = self._gate_of(queued)
        queued.gate(gate)
        return bool(gate)

    def _gate_of(self, queued: QueuedPod) -> str:
        """Return the name of the PreEnqueue plugin that rejects the pod, "" if there is none."""
        framework = self._frameworks[queued.info.pod.spec.scheduler_name]
        status = framework.run_pre_enqueue(queued.info)
        if status is None and self._extra_gate is not None:
            status = self._extra_gate(queued.info)
        return status.plugin if status is not None else ""

    def _join_pool(self, queued: QueuedPod) -> None:
        queued.place = _UNSCHEDULABLE
        queued.token = self._next()
        self._unschedulable.setdefault(self._group(queued), {})[queued.info.key] = queued
        if not queued.gated_by:
            heapq.heappush(self._waiting_since, (queued.timestamp, queued.token, queued))

    def _leave_pool(self, queued: QueuedPod) -> None:
        group = self._unschedulable[self._group(queued)]
        del group[queued.info.key]
        if not group:
            del self._unschedulable[self._group(queued)]

    def _group(self, queued: QueuedPod) -> _Group:
        return queued.gated_by, queued.plugins

    def _push_active(self, queued: QueuedPod) -> None:
        self._active.push(queued, (*self._sort_key(queued), queued.stamp), self._next())

    def _push_backoff(self, queued: QueuedPod) -> None:
        entries = self._backoff if queued.plugins else self._error_backoff
        key = (queued.window, *self._sort_key(queued), queued.stamp)
        entries.push(queued, key, self._next())

    def _sort_key(self, queued: QueuedPod) -> tuple[int, ...]:
        framework = self._frameworks[queued.info.pod.spec.scheduler_name]
        return framework.queue_sort.sort_key(queued.info, queued.timestamp)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence
