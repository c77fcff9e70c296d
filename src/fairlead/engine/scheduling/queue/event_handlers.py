"""EventHandlers: applies cluster changes to the queue and to nominations.

upstream: pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

from collections.abc import Callable, Container

from msgspec import Struct

from fairlead.engine.core.instant import Instant
from fairlead.engine.framework.cluster_event import (
    ClusterEvent,
    EventKind,
    node_events,
    storage_event,
    waiting_pod_events,
)
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.cluster import (
    Change,
    Cluster,
    NodeChange,
    PodChange,
    PodGroupChange,
    PodsLoaded,
    StorageChange,
)
from fairlead.engine.state.pod_info import PodInfo


class EventHandlers(Struct, frozen=True):
    """Moves pods in `queue` and updates nominations when `cluster` changes.

    Only pods whose schedulerName is in `profiles` are queued. `is_binding` returns whether a pod is
    being bound. If `pod_groups` is set, a new PodGroup or a new member of a gang may make the
    gang's waiting members schedulable.
    """

    cluster: Cluster
    queue: SchedulingQueue
    nominator: Nominator
    waiting_pods: WaitingPods
    profiles: Container[str]
    is_binding: Callable[[PodInfo], bool]
    pod_groups: bool = False

    def handle(self, changes: list[Change], now: Instant) -> None:
        """Apply all changes of one stimulus to the queue."""
        for change in changes:
            if type(change) is PodChange:  # by far the most frequent
                self._handle_pod(change, now)
                continue
            if type(change) is NodeChange:
                for event in node_events(change.old, change.new):
                    self.queue.wake(event, now)
                continue
            match change:
                case PodsLoaded():
                    self._load(change, now)
                case StorageChange(old=before, new=after):
                    self.queue.wake(storage_event(before, after), now)
                case PodGroupChange(old=None, new=group) if self.pod_groups:
                    self.queue.wake(ClusterEvent(EventKind.POD_GROUP_ADD, None, group), now)
                case _:  # a PodGroup that changed or was deleted makes no pod schedulable
                    pass

    def _load(self, loaded: PodsLoaded, now: Instant) -> None:
        """Handle pods that were loaded in bulk, all of which have a node.

        The pods are new to the cluster, so none of them is queued or nominated.
        """
        if not self.queue.ignores_events:
            for change in loaded.changes():
                self._handle_pod(change, now)
            return
        self.queue.wake_after_assignment(loaded.pods[loaded.replicas.keys[0]], now)

    def _handle_pod(self, change: PodChange, now: Instant) -> None:
        old, new = change.old, change.new
        was_assigned = old is not None and bool(old.pod.spec.node_name)
        if new is not None and new.pod.spec.node_name:
            self._assigned(old if was_assigned else None, new, now)
        elif was_assigned:
            self.queue.wake(ClusterEvent(EventKind.ASSIGNED_POD_DELETE, old, None), now)
        elif new is not None:
            self._waiting(old, new, now)
        else:
            assert old is not None
            self._waiting_gone(old, now)

    def _assigned(self, old: PodInfo | None, new: PodInfo, now: Instant) -> None:
        """Handle a changed pod that has a node; any scheduler may have bound it.

        `old` is the previous version, None if the pod is new or had no node.
        """
        if old is not None:
            for event in self.queue.assigned_pod_events(old, new):
                self.queue.wake(event, now)
            return
        if not self.is_binding(new):
            self.queue.remove(new.key)
        self.nominator.withdraw(new.uid)
        self.queue.wake_after_assignment(new, now)

    def _waiting(self, old: PodInfo | None, new: PodInfo, now: Instant) -> None:
        """Handle a new pod (`old` is None) or changed pod that has no node."""
        if self.cluster.is_assumed(new) or not self._is_ours(new):
            return
        if old is None:
            if nomination_of(new):
                self.nominator.nominate(new, nomination_of(new))
            self.queue.add(new, now)
            if self.pod_groups:
                self.queue.wake(ClusterEvent(EventKind.UNSCHEDULED_POD_ADD, None, new), now)
            return
        self._renominate(old, new)
        self.queue.update(new, now, list(waiting_pod_events(old, new)))
        if nomination_of(old) not in ("", nomination_of(new)):
            self.queue.wake_after_nomination(old, now)

    def _is_ours(self, pod: PodInfo) -> bool:
        return pod.pod.spec.scheduler_name in self.profiles

    def _waiting_gone(self, old: PodInfo, now: Instant) -> None:
        if not self._is_ours(old):
            return
        self.queue.remove(old.key)
        self.nominator.withdraw(old.uid)
        self.waiting_pods.reject(old.id, "", "removed")
        if self.is_binding(old):
            self.queue.wake_after_refusal(old, now)
        elif nomination_of(old):
            self.queue.wake_after_nomination(old, now)

    def _renominate(self, old: PodInfo, new: PodInfo) -> None:
        """Update the pod's nomination from its new status (nominator.go: UpdateNominatedPod)."""
        before = nomination_of(old)
        after = nomination_of(new)
        if after:
            self.nominator.nominate(new, after)
        elif before:
            self.nominator.withdraw(new.uid)


def nomination_of(pod: PodInfo) -> str:
    """Return status.nominatedNodeName of `pod`."""
    return pod.pod.status.nominated_node_name
