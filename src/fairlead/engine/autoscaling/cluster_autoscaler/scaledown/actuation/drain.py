"""NodeDrain: evicts the pods of one node and waits until they are deleted.

    1. evict all pods of a priority group at the same time; retry a refused eviction every 10 s
    2. check every 5 s whether the pods have left the node; then continue with the next group

Each priority range in --drain-priority-config is a priority group with its own grace period. The
group with the lowest priorities is evicted first. If the flag is not set, all pods are in one
group.

An eviction fails if it is still refused when --max-pod-eviction-time has passed. If an eviction
fails, the drain fails, too, as soon as all evictions of the priority group have ended. The drain
also fails if pods of the group stay on the node for too long. The limit is the group's grace period
plus 30 s. If --drain-priority-config is not set, the drain does not wait for DaemonSet pods, and
ignores failures to evict them.

upstream: core/scaledown/actuation/{drain,priority}.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, WARNING
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    ANNOTATION_PREFIX,
    is_daemon_set_pod,
    is_mirror_pod,
)
from fairlead.engine.core.command import EvictPod, ObjectRef, pod_ref
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import SCALE_DOWN

_RETRY: Final = seconds(10)
_POLL: Final = seconds(5)
_HEADROOM: Final = seconds(30)
_EVICT_DAEMON_SET_POD: Final = f"{ANNOTATION_PREFIX}enable-ds-eviction"


class _Eviction(Struct):
    """The eviction of one pod. If `is_full` is set, the drain fails if the eviction fails."""

    pod: Pod
    is_full: bool
    is_waiting: bool = False  # whether the outcome from the API server is not known yet
    retry_at: Instant | None = None
    is_done: bool = False
    last_error: str = ""
    failure: str = ""


class _PriorityGroup(Struct, frozen=True):
    grace_s: int
    full: tuple[Pod, ...]
    best_effort: tuple[Pod, ...]


class NodeDrain(Struct):
    """The drain of one node. `failure` is the error text of a failed drain, otherwise ""."""

    context: AutoscalingContext
    node: str
    groups: list[_PriorityGroup]
    evictions: list[_Eviction] = field(default_factory=list)
    retry_until: Instant = 0
    poll_at: Instant | None = None
    poll_until: Instant = 0
    is_done: bool = False
    failure: str = ""

    @property
    def due(self) -> Instant | None:
        """The time of the next retry or check by `advance`; None if neither is planned."""
        if self.poll_at is not None:
            return self.poll_at
        return min(
            (one.retry_at for one in self.evictions if one.retry_at is not None), default=None
        )

    def start(self, now: Instant) -> None:
        """Begin the drain: evict the first priority group of pods."""
        self._next_group(now)

    def _next_group(self, now: Instant) -> None:
        while self.groups and not (self.groups[0].full or self.groups[0].best_effort):
            self.groups.pop(0)
        if not self.groups:
            self.is_done = True
            return
        group = self.groups[0]
        self.retry_until = now + self.context.options.max_pod_eviction_time
        self.evictions = [
            *(_Eviction(pod, is_full=True) for pod in group.full),
            *(_Eviction(pod, is_full=False) for pod in group.best_effort),
        ]
        for one in self.evictions:
            message = "deleting pod for node scale down"
            self.context.events.on_pod(one.pod, NORMAL, "ScaleDown", message)
            self._evict(one)

    def _evict(self, one: _Eviction) -> None:
        one.is_waiting, one.retry_at = True, None
        self.context.commands.append(EvictPod(pod_ref(one.pod), SCALE_DOWN))

    def handle_outcome(self, ref: ObjectRef, problem: str | None, now: Instant) -> None:
        """Handle the outcome of the eviction of the pod `ref`.

        `problem` is the error text, None if the pod was evicted or is gone.
        """
        for one in self.evictions:
            if one.is_waiting and pod_ref(one.pod) == ref:
                one.is_waiting = False
                if problem is None:
                    one.is_done = True
                else:
                    one.last_error, one.retry_at = problem, now + _RETRY
        self._after_evictions(now)

    def advance(self, now: Instant) -> None:
        """Do the work that is due at `now`: retry evictions, or check whether the pods are gone."""
        if self.poll_at is not None:
            if self.poll_at <= now:
                self._poll(now)
            return
        for one in self.evictions:
            if one.retry_at is None or one.retry_at > now:
                continue
            if now < self.retry_until:
                self._evict(one)
                continue
            one.retry_at, one.is_done = None, True
            if one.is_full:
                self._give_up(one)
        self._after_evictions(now)

    def _give_up(self, one: _Eviction) -> None:
        message = "failed to delete pod for ScaleDown"
        self.context.events.on_pod(one.pod, WARNING, "ScaleDownFailed", message)
        cause = f"(last error: {one.last_error})"
        one.failure = f"failed to evict pod {one.pod.key} within allowed timeout {cause}"

    def _after_evictions(self, now: Instant) -> None:
        if self.poll_at is not None or self.is_done or self.failure:
            return
        if not all(one.is_done for one in self.evictions):
            return
        failures = [one.failure for one in self.evictions if one.failure]
        if failures:
            shown = " ".join(failures)
            self.failure = f"Failed to drain node /{self.node}, due to following errors: [{shown}]"
            return
        self.poll_until = now + seconds(self.groups[0].grace_s) + _HEADROOM
        self._poll(now)

    def _poll(self, now: Instant) -> None:
        """Check whether the pods of the current priority group have left the node."""
        self.poll_at = None
        if now < self.poll_until:
            if not any(self._is_here(pod) for pod in self.groups[0].full):
                self.groups.pop(0)
                self._next_group(now)
                return
            self.poll_at = now + _POLL
            return
        self.failure = f"Failed to drain node /{self.node}: pods remaining after timeout"

    def _is_here(self, pod: Pod) -> bool:
        found = self.context.listers.any_pod(pod.key)
        return found is not None and found.spec.node_name == self.node


def drain_of(context: AutoscalingContext, node: str, pods: Sequence[Pod]) -> NodeDrain:
    """Return a drain that evicts `pods` from a node, except mirror pods and some DaemonSet pods.

    Of the DaemonSet pods, the drain evicts only those that `daemon_set_pods_to_evict` selects. If
    --drain-priority-config is not set, failures to evict DaemonSet pods are ignored.
    """
    options = context.options
    by_default = options.daemonset_eviction_for_occupied_nodes
    daemons = daemon_set_pods_to_evict(pods, by_default=by_default)
    others = [pod for pod in pods if not is_mirror_pod(pod) and not is_daemon_set_pod(pod)]
    if options.drain_priority_config:
        return NodeDrain(context, node, _priority_groups(options, (*others, *daemons), ()))
    return NodeDrain(context, node, _priority_groups(options, others, daemons))


def _priority_groups(
    options: AutoscalingOptions, full: Sequence[Pod], best_effort: Sequence[Pod]
) -> list[_PriorityGroup]:
    """Return the groups in which pods are evicted, lowest priority first.

    Each range of --drain-priority-config is a group. If the flag is not set, all pods are in one
    group. The drain fails if it cannot evict a pod in `full`. Failures to evict pods in
    `best_effort` are ignored.
    upstream: actuation/drain.go: groupByPriority, SingleRuleDrainConfig
    """
    bounds = options.drain_priority_config or ((0, options.max_graceful_termination_sec),)
    found: list[tuple[list[Pod], list[Pod]]] = [([], []) for _ in bounds]
    for kind, pods in enumerate((full, best_effort)):
        for pod in pods:
            priority = pod.spec.priority or 0
            below = (i for i, (lowest, _) in enumerate(bounds) if lowest <= priority)
            found[max(below, default=0)][kind].append(pod)
    return [
        _PriorityGroup(grace, tuple(whole), tuple(others))
        for (_, grace), (whole, others) in zip(bounds, found, strict=True)
    ]


def daemon_set_eviction_of(
    context: AutoscalingContext, node: str, pods: Sequence[Pod]
) -> NodeDrain:
    """Return a drain that evicts DaemonSet pods from a node whose other pods need no eviction.

    `pods` are the pods of the node. The drain evicts those that `daemon_set_pods_to_evict` selects.
    Failed evictions are ignored.
    """
    by_default = context.options.daemonset_eviction_for_empty_nodes
    daemons = daemon_set_pods_to_evict(pods, by_default=by_default)
    return NodeDrain(context, node, _priority_groups(context.options, (), daemons))


def daemon_set_pods_to_evict(pods: Sequence[Pod], *, by_default: bool) -> list[Pod]:
    """Return the DaemonSet pods to evict.

    The annotation enable-ds-eviction of a pod decides. If a pod does not have this annotation,
    `by_default` decides. Mirror pods are never evicted.
    upstream: utils/daemonset/daemonset.go: PodsToEvict
    """
    found = []
    for pod in pods:
        if is_mirror_pod(pod) or not is_daemon_set_pod(pod):
            continue
        stated = pod.metadata.annotations.get(_EVICT_DAEMON_SET_POD)
        if stated == "true" or (by_default and stated != "false"):
            found.append(pod)
    return found
