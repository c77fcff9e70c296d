"""NodePressure: kubelets report pressure and evict pods when their nodes run short of a resource.

A kubelet checks its node every ten seconds, if something has changed. While a threshold is crossed,
and for some minutes after that, the kubelet reports a node condition (such as MemoryPressure). The
kubelet evicts one pod if a hard threshold is crossed, or if a soft threshold has been crossed for
its grace period. After this pod has ended, a check may still find too little of the resource. The
kubelet then evicts another pod.

The pods to evict are ordered by three criteria:

    1 pods that use more than they request come before pods within their requests
    2 pods with a lower priority come first
    3 pods whose usage exceeds their request by a larger amount come first

Process ids cannot be requested, so for them, the order depends only on priority and usage.

upstream: pkg/kubelet/eviction/eviction_manager.go:synchronize, helpers.go:rankMemoryPressure,
rankDiskPressureFunc, rankPIDPressure, evictionMessage;
pkg/kubelet/types/pod_update.go:IsCriticalPod
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final
from zlib import crc32

from msgspec import Struct, field

from fairlead.api.nodes.kubelet_behaviour import Report
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_terminating, pod_priority
from fairlead.api.pods.requests import pod_requests
from fairlead.api.pods.usage import NOTHING, usage_of
from fairlead.api.quantity import Format, QuantityError, canonical, parse_quantity, whole_value
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent, node_ref, pod_ref
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import PodEvicted, Reporter
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.kubelet import pod_status
from fairlead.engine.kubelet.eviction_config import (
    REPORT_OF,
    RESOURCE_OF,
    SYNC_PERIOD,
    EvictionConfig,
    Signal,
    Threshold,
)
from fairlead.engine.kubelet.pod_admission import is_critical
from fairlead.engine.kubelet.pod_lifecycle import GRACE_MIN, granted_grace

REPORTING_CONTROLLER: Final = "kubelet"
CHECK_AGAIN: Final = seconds(1)  # upstream: waitForPodsCleanup polls every second

FindNode = Callable[[str], Node | None]
Measure = Callable[[str, tuple[Report, ...], Instant], list[Command]]


class _NodeState(Struct, eq=False):
    """A node with the pods that use its resources, and the state of its eviction manager."""

    name: str
    node: Node | None = None
    users: dict[str, Pod] = field(default_factory=dict)  # the pods that use resources, by pod key
    # The time of the check that first found each crossed threshold crossed.
    since: dict[Threshold, Instant] = field(default_factory=dict)
    # The time at which each reported pressure was last observed.
    seen: dict[Report, Instant] = field(default_factory=dict)
    # The pressures whose thresholds were crossed at the last check.
    crossed: tuple[Report, ...] = ()
    # {key of an evicted pod: (end of its grace period, eviction message)}
    leaving: dict[str, tuple[Instant, str]] = field(default_factory=dict)
    checks_at: Instant | None = None


class NodePressure:
    """Finds pressure on nodes and evicts pods from them.

    `report_pressures` passes the pressures of a node to its heartbeats. `is_reporting` returns
    whether the kubelet of a node works.
    """

    def __init__(
        self,
        config: EvictionConfig,
        report_pressures: Measure,
        is_reporting: Callable[[str], bool],
        reporter: Reporter,
    ) -> None:
        self._config = config
        self._measure = report_pressures
        self._is_reporting = is_reporting
        self._reporter = reporter
        self._states: dict[str, _NodeState] = {}
        self._where: dict[str, str] = {}  # key of a pod that uses resources -> its node
        self._timers: TimerQueue[_NodeState] = TimerQueue()

    # --- observations --------------------------------------------------------------------------

    def observe_node(self, node: Node, now: Instant) -> None:
        """Store `node`; schedule a check if the node's capacity or system usage changed."""
        name = node.metadata.name
        state = self._states.get(name)
        if state is None:
            if usage_of(node) is NOTHING:
                return
            state = self._states[name] = _NodeState(name)
        before, state.node = state.node, node
        if before is None or _supply(before) != _supply(node):
            self._wake(state, now)

    def kubelet_resumed(self, name: str, now: Instant) -> None:
        """Check the node `name` again after its kubelet has resumed."""
        state = self._states.get(name)
        if state is not None:
            self._wake(state, now)

    def observe_pod(self, pod: Pod, find: FindNode, now: Instant) -> None:
        """Record the resource usage of `pod` if the pod is running; otherwise drop its usage."""
        if pod.status.phase != "Running" or not usage_of(pod):
            self.forget_pod(pod, now)
            return
        name = pod.spec.node_name
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = _NodeState(name, find(name))
        before = state.users.get(pod.key)
        state.users[pod.key], self._where[pod.key] = pod, name
        if before is None or usage_of(before) != usage_of(pod):
            self._wake(state, now)

    def forget_pod(self, pod: Pod, now: Instant) -> None:
        """Drop the resource usage of `pod`."""
        name = self._where.pop(pod.key, None) if self._where else None
        if name is not None:
            state = self._states[name]
            del state.users[pod.key]
            state.leaving.pop(pod.key, None)
            self._wake(state, now)

    def forget_node(self, name: str) -> None:
        """Record that the node `name` was deleted. Its pods may still exist and are kept."""
        state = self._states.get(name)
        if state is not None:
            state.node = None

    def _wake(self, state: _NodeState, now: Instant) -> None:
        phase = crc32(state.name.encode()) * SYNC_PERIOD >> 32
        self._schedule(state, now + SYNC_PERIOD - (now - phase) % SYNC_PERIOD)

    def _schedule(self, state: _NodeState, due: Instant) -> None:
        if state.checks_at is None or due < state.checks_at:
            state.checks_at = due
            self._timers.add(due, state)

    # --- checks --------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """Return the time of the next check of a node by its kubelet.

        Returns None if no check is scheduled.
        """
        return self._timers.next_due()

    def act(self, now: Instant) -> list[Command]:
        """Run the checks that are due; return their commands."""
        commands: list[Command] = []
        for state in self._timers.pop_due(now):
            if state.checks_at is not None and state.checks_at <= now:
                state.checks_at = None
                commands += self._check(state, now)
        return commands

    def _check(self, state: _NodeState, now: Instant) -> list[Command]:
        node = state.node
        if node is None or not self._is_reporting(state.name):
            return []
        commands = self._end(state, now)
        if commands:
            self._schedule(state, now + CHECK_AGAIN)
            return commands
        thresholds = self._config.thresholds
        # A crossed threshold stays crossed until enough of the resource has been reclaimed.
        crossed = shortages(thresholds, node, state.users.values(), state.since)
        state.since = {threshold: state.since.get(threshold, now) for threshold in crossed}
        commands += self._measure(state.name, self._pressures(state, crossed, now), now)
        return commands + self._reclaim(state, node, crossed, now)

    def _end(self, state: _NodeState, now: Instant) -> list[Command]:
        """Return the commands that end the evicted pods whose grace period is over."""
        ended = [(key, why) for key, (due, why) in state.leaving.items() if due <= now]
        for key, _ in ended:
            del state.leaving[key]
        return [pod_status.evicted(pod_ref(state.users[key]), why) for key, why in ended]

    def _pressures(
        self, state: _NodeState, short: dict[Threshold, Shortage], now: Instant
    ) -> tuple[Report, ...]:
        """Return the pressures that the kubelet reports.

        The result contains the pressures of the crossed thresholds in `short`, and the pressures
        that ended less than `pressure_transition` ago.
        """
        crossed = {REPORT_OF[threshold.signal] for threshold in short}
        for report in Report:
            if report in crossed:
                state.seen[report] = now
            elif report in state.crossed:  # the checks that were skipped would have observed it
                state.seen[report] = max(state.seen[report], now - SYNC_PERIOD)
        state.crossed = tuple(report for report in Report if report in crossed)
        period = self._config.pressure_transition
        for report, seen in [*state.seen.items()]:
            if report in crossed:
                continue
            if now - seen >= period:
                del state.seen[report]
            else:
                self._schedule(state, seen + period)
        return tuple(report for report in Report if report in state.seen)

    def _reclaim(
        self, state: _NodeState, node: Node, short: dict[Threshold, Shortage], now: Instant
    ) -> list[Command]:
        """Evict one pod if a threshold has been crossed for at least its `grace`.

        If there are several such thresholds, the first one by `_urgency` determines the order of
        eviction, and is named as the cause. While a previously evicted pod is still ending, no
        other pod is evicted.
        """
        if state.leaving:
            self._schedule(state, min(due for due, _ in state.leaving.values()))
            return []
        for threshold, shortage in sorted(short.items(), key=_urgency):
            due = state.since[threshold] + threshold.grace
            if due <= now:
                what = f"Attempting to reclaim {shortage.resource}"
                event = _event(node_ref(node), "EvictionThresholdMet", what)
                return [event, *self._evict(state, threshold, shortage, now)]
            self._schedule(state, due)
        return []

    def _evict(
        self, state: _NodeState, threshold: Threshold, shortage: Shortage, now: Instant
    ) -> list[Command]:
        for pod in ranked(state.users.values(), shortage.resource):
            if is_terminating(pod) or not may_be_evicted(pod):
                continue
            why, ref, grace = message(pod, shortage), pod_ref(pod), self._grace(pod, threshold)
            low = f"low on {shortage.resource}"
            self._reporter.report(PodEvicted(ref, state.name, low, now))
            self._schedule(state, now + grace)
            event = _event(ref, "Evicted", why)
            state.leaving[pod.key] = now + grace, why
            return [event]
        return []

    def _grace(self, pod: Pod, threshold: Threshold) -> DurationNs:
        """Return the grace period in ns for evicting `pod`.

        If a hard threshold is crossed, the grace period is one second. If a soft threshold is
        crossed, it is the grace period in the pod's spec, but at most `max_pod_grace_s` and at
        least one second.
        """
        # upstream: immediateEvictionGracePeriodSeconds,
        # pkg/kubelet/pod_workers.go:calculateEffectiveGracePeriod
        if not threshold.grace:
            return GRACE_MIN
        return max(GRACE_MIN, min(granted_grace(pod), seconds(self._config.max_pod_grace_s)))


def _urgency(crossed: tuple[Threshold, Shortage]) -> int:
    """Return the sort key of a crossed threshold; thresholds for memory come first."""
    return list(Signal).index(crossed[0].signal)


def _supply(node: Node) -> tuple[object, ...]:
    """Return the fields of `node` that determine whether it runs short of a resource."""
    return node.status.capacity, usage_of(node)


def _event(regarding: ObjectRef, reason: str, note: str) -> RecordEvent:
    return RecordEvent(
        regarding=regarding,
        type="Warning",
        reason=reason,
        action="",
        note=note,
        reporting_controller=REPORTING_CONTROLLER,
    )


def ranked(pods: Iterable[Pod], resource: str) -> list[Pod]:
    """Return `pods` in the order of eviction for a shortage of `resource`.

    Ties are broken by namespace and name.
    """
    return sorted(pods, key=lambda pod: _rank(pod, resource))


def may_be_evicted(pod: Pod) -> bool:
    """Return False for static and critical pods, which must not be evicted, else True."""
    return not is_critical(pod)


def _rank(pod: Pod, resource: str) -> tuple[bool, int, int, str]:
    # upstream: pkg/kubelet/eviction/helpers.go: rankMemoryPressure; rankPIDPressure has no requests
    used, requested = usage_of(pod).get(resource, 0), _requested(pod, resource)
    is_within = resource != "pids" and used <= requested
    return is_within, pod_priority(pod), requested - used, pod.key


def _requested(pod: Pod, resource: str) -> int:
    return 0 if resource == "pids" else pod_requests(pod).get(resource, 0)


def message(pod: Pod, shortage: Shortage) -> str:
    """Return the eviction message.

    If the pod has a single container and uses more than it requests, the message also states the
    container's usage and request.
    """
    resource = shortage.resource
    text = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {_written(shortage.threshold)}, "
        f"available: {_written(shortage.available)}. "
    )
    used, requested = usage_of(pod).get(resource, 0), _requested(pod, resource)
    if used > requested and len(pod.spec.containers) == 1:
        text += (
            f"Container {pod.spec.containers[0].name} was using {_written(used)}, "
            f"request is {_written(requested)}, has larger consumption of {resource}. "
        )
    return text


def _written(amount: int) -> str:
    return canonical(parse_quantity(amount), Format.BINARY_SI)


class Shortage(Struct, frozen=True):
    """A crossed threshold: `available` is the available amount, and `threshold` is the limit.

    `available` and `threshold` are numbers of bytes or of process ids. `available` may be above the
    limit (see `Threshold.reclaim`).
    """

    signal: Signal
    threshold: int
    available: int

    @property
    def resource(self) -> str:
        """The name of the resource that is short."""
        return RESOURCE_OF[self.signal]


def shortages(
    thresholds: Iterable[Threshold], node: Node, users: Collection[Pod], were: Collection[Threshold]
) -> dict[Threshold, Shortage]:
    """Return {crossed threshold: shortage} for `node`.

    `users` are the pods that use the node's resources. `were` contains the thresholds that were
    crossed before. Each of these stays crossed until the sum of its limit and its `reclaim` amount
    is available. A resource that is missing in the node's capacity is never short.
    """
    found: dict[Threshold, Shortage] = {}
    for threshold in thresholds:
        capacity = _capacity(node, threshold.signal)
        if capacity is None:
            continue
        resource = RESOURCE_OF[threshold.signal]
        used = usage_of(node).get(resource, 0)
        used += sum(usage_of(pod).get(resource, 0) for pod in users)
        available, value = capacity - used, threshold.value(capacity)
        if available < value + (threshold.reclaim if threshold in were else 0):
            found[threshold] = Shortage(threshold.signal, value, available)
    return found


def _capacity(node: Node, signal: Signal) -> int | None:
    text = node.status.capacity.get(RESOURCE_OF[signal])
    if text is None:
        return None
    try:
        return whole_value(text)
    except QuantityError:
        return None
