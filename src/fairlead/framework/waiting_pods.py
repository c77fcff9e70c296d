"""WaitingPods: placed pods that a Permit plugin keeps from being bound for now.

A pod waits until every plugin that asked it to has allowed it, any one rejects it, or the shortest
of their timeouts is over. Plugins reach the others' pods here, as a gang plugin must; what they
decide is acted on by the scheduler before it does anything else.
upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.core.instant import DurationNs, Instant
from fairlead.core.status import Status, unschedulable
from fairlead.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Wait:
    """A Permit answer: wait at most `timeout` (ns) for this plugin's `allow`."""

    timeout: DurationNs


@dataclass(slots=True)
class WaitingPod:
    """`pending` are the plugins that have not allowed it yet; `rejection` ends the wait."""

    pod: PodInfo
    node: str
    pending: dict[str, None]
    deadline: Instant
    expiring: str
    rejection: Status | None = field(default=None)


class WaitingPods:
    """By `PodInfo.id`, in order of their placement."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        """How many pods wait."""
        return len(self._pods)

    def all(self) -> list[WaitingPod]:
        """Whoever waits, earliest placement first."""
        return list(self._pods.values())

    def find(self, pod_id: str) -> WaitingPod | None:
        """The waiting pod with that id."""
        return self._pods.get(pod_id)

    def add(self, waiting: WaitingPod) -> None:
        """Let a pod wait; ended by `remove`."""
        self._pods[waiting.pod.id] = waiting

    def remove(self, pod_id: str) -> None:
        """The pod waits no more."""
        self._pods.pop(pod_id, None)

    def allow(self, pod_id: str, plugin: str) -> None:
        """`plugin` has nothing against binding the pod any more."""
        waiting = self._pods.get(pod_id)
        if waiting is not None:
            waiting.pending.pop(plugin, None)

    def reject(self, pod_id: str, plugin: str, reason: str) -> None:
        """`plugin` gives the pod up."""
        waiting = self._pods.get(pod_id)
        if waiting is not None and waiting.rejection is None:
            waiting.rejection = unschedulable(reason).by(plugin)

    def next_deadline(self) -> Instant | None:
        """When the first wait is over; 0 where one has been decided."""
        if any(_is_decided(waiting) for waiting in self._pods.values()):
            return 0
        return min((waiting.deadline for waiting in self._pods.values()), default=None)

    def decided(self, now: Instant) -> WaitingPod | None:
        """The first pod whose wait is over, one way or the other."""
        for waiting in self._pods.values():
            if waiting.rejection is None and waiting.pending and waiting.deadline <= now:
                reason = f"rejected due to timeout after waiting at plugin {waiting.expiring}"
                waiting.rejection = unschedulable(reason).by(waiting.expiring)
            if _is_decided(waiting):
                return waiting
        return None


def _is_decided(waiting: WaitingPod) -> bool:
    return waiting.rejection is not None or not waiting.pending
