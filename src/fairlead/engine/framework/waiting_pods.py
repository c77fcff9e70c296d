"""WaitingPods: placed pods that a Permit plugin keeps from being bound for now.

A pod waits until every plugin that asked it to has allowed it, any one rejects it, or the time of
one that has not allowed it yet is over. Plugins reach the others' pods here, as a gang plugin must;
what they decide is acted on by the scheduler before it does anything else.
upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.api.timestamp import format_duration
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.status import Status, unschedulable
from fairlead.engine.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Wait:
    """A Permit answer: wait up to `timeout` (ns, 15 minutes at most) for this plugin's `allow`."""

    timeout: DurationNs


@dataclass(slots=True)
class WaitingPod:
    """`pending` are the plugins that have not allowed it yet, each with how long it may take.

    The pod waits since `since`; `rejection` ends the wait.
    """

    pod: PodInfo
    node: str
    since: Instant
    pending: dict[str, DurationNs]
    rejection: Status | None = field(default=None)

    @property
    def deadline(self) -> Instant:
        """When the first of the pending plugins has taken too long."""
        return self.since + min(self.pending.values())

    @property
    def is_decided(self) -> bool:
        """Whether the wait is over, one way or the other."""
        return self.rejection is not None or not self.pending

    def expire(self, now: Instant) -> None:
        """Reject the pod if its deadline has passed."""
        if self.is_decided or self.deadline > now:
            return
        plugin = min(self.pending, key=lambda name: (self.pending[name], name))
        waited = format_duration(self.pending[plugin])
        reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
        self.rejection = unschedulable(reason).by(plugin)


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
        if any(waiting.is_decided for waiting in self._pods.values()):
            return 0
        return min((waiting.deadline for waiting in self._pods.values()), default=None)

    def decided(self, now: Instant) -> WaitingPod | None:
        """The first pod whose wait is over, one way or the other."""
        for waiting in self._pods.values():
            waiting.expire(now)
            if waiting.is_decided:
                return waiting
        return None
