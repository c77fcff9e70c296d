"""WaitingPods: placed pods that a Permit plugin does not yet allow to be bound.

A pod waits until every plugin that returned `Wait` has allowed it. The wait also ends if any plugin
rejects the pod, or if one of the timeouts expires. A plugin can also allow or reject other waiting
pods, as gang plugins do.
upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

from msgspec import Struct, field

from fairlead.api.timestamp import format_duration
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.status import Status, error, unschedulable
from fairlead.engine.state.pod_info import PodInfo


class Wait(Struct, frozen=True):
    """A Permit result that makes the pod wait until the plugin that returned it allows the pod.

    The pod is rejected after `timeout` (ns) or 15 minutes, whichever is shorter.
    """

    timeout: DurationNs


class WaitingPod(Struct):
    """A pod that Permit holds.

    `since` is the start of the wait. `pending` maps each plugin that has not yet allowed the pod to
    its timeout (ns, from `since`).
    """

    pod: PodInfo
    node: str
    since: Instant
    pending: dict[str, DurationNs]
    rejection: Status | None = field(default=None)

    @property
    def deadline(self) -> Instant:
        """The time at which the first of the pending timeouts expires."""
        return self.since + min(self.pending.values())

    @property
    def is_decided(self) -> bool:
        """Whether the wait is over: the pod was allowed by all plugins, or rejected."""
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
    """The waiting pods; `pods` maps `PodInfo.id` to each pod, in order of placement."""

    def __init__(self) -> None:
        self.pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self.pods)

    def all(self) -> list[WaitingPod]:
        """Return all waiting pods, earliest placement first."""
        return list(self.pods.values())

    def find(self, pod_id: str) -> WaitingPod | None:
        """Return the waiting pod with the ID `pod_id`, or None."""
        return self.pods.get(pod_id)

    def add(self, waiting: WaitingPod) -> None:
        """Add a waiting pod; `remove` undoes this."""
        self.pods[waiting.pod.id] = waiting

    def remove(self, pod_id: str) -> None:
        """Remove a pod that was allowed, rejected or deleted."""
        self.pods.pop(pod_id, None)

    def allow(self, pod_id: str, plugin: str) -> None:
        """Record that `plugin` allows the binding of the pod."""
        waiting = self.pods.get(pod_id)
        if waiting is not None:
            waiting.pending.pop(plugin, None)

    def reject(self, pod_id: str, plugin: str, reason: str) -> None:
        """Record that `plugin` rejects the pod for `reason`; an earlier rejection stays."""
        waiting = self.pods.get(pod_id)
        if waiting is not None and waiting.rejection is None:
            waiting.rejection = unschedulable(reason).by(plugin)

    def preempt(self, pod_id: str, plugin: str, reason: str) -> bool:
        """Record that `plugin` preempts the pod; return whether the pod was waiting.

        A preempted pod is retried after its backoff. A rejected pod would be unschedulable instead.

        upstream: waiting_pods_map.go: Preempt; framework.go: WaitOnPermit
        """
        waiting = self.pods.get(pod_id)
        if waiting is None:
            return False
        if waiting.rejection is None:
            waiting.rejection = error(f"waiting on permit for pod: {reason}").by(plugin)
        return True

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next pod times out; 0 if a wait is already over.

        Returns None if no pod waits.
        """
        if any(waiting.is_decided for waiting in self.pods.values()):
            return 0
        return min((waiting.deadline for waiting in self.pods.values()), default=None)

    def decided(self, now: Instant) -> WaitingPod | None:
        """Return the first pod whose wait is over: it was allowed or rejected, or has timed out.

        Returns None if no pod's wait is over at `now`.
        """
        for waiting in self.pods.values():
            waiting.expire(now)
            if waiting.is_decided:
                return waiting
        return None
