"""PodWorkers: what kubelets do to the pods bound to their nodes.

Each bound pod is a tenant waiting for at most one act (`pod_life` says which and when), kept in
one timer queue; a timer that its tenant no longer waits for is dropped when it comes up. So
work follows what changes, never the number of nodes or pods.

A silent node, or one that does not exist, freezes: acts that fall due there are set aside, and
happen at once, in the order in which they were due, when the node is back. Then it also learns of
deletions, and pods that were marked not ready meanwhile become ready again: at once where only the
kubelet had paused, after they were started anew where the machine had been dark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_static, is_terminal, is_terminating
from fairlead.engine.core.command import Command, DeleteObject, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.kubelet import pod_status
from fairlead.engine.kubelet.annotation import annotation_problems
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_lifecycle import (
    Act,
    Due,
    grace_period,
    is_ready,
    next_act,
    ready_delay_of,
    start_time,
)
from fairlead.engine.kubelet.readiness import is_held_by_gates, readiness
from fairlead.engine.kubelet.usage import usage_problem

REPORTING_CONTROLLER: Final = "kubelet"
RETRY_AFTER: Final = seconds(1)
WHY_REMOVED: Final = "terminated"
GONE: Final = (FailureReason.NOT_FOUND, FailureReason.CONFLICT)


@dataclass(slots=True)
class _Tenant:
    """A bound pod; `pending` is the act it waits for, `sent` the one whose effect is not seen.

    `ready_at` is since when it is ready or when it will be, None for one that was found unready.
    """

    ref: ObjectRef
    node: str
    pod: Pod
    bound_at: Instant
    started_at: Instant
    asked_at: Instant
    ready_at: Instant | None = None
    pending: Due | None = None
    sent: Due | None = None


@dataclass(frozen=True, slots=True)
class _Timer:
    tenant: _Tenant
    due: Due


@dataclass(slots=True)
class PodWorkers:
    """All bound pods; `is_heard` says whether the kubelet of a node is at work."""

    config: KubeletConfig
    is_heard: Callable[[str], bool]
    _tenants: dict[str, _Tenant] = field(default_factory=dict)  # by pod key
    _by_node: dict[str, dict[str, _Tenant]] = field(default_factory=dict)
    _timers: TimerQueue[_Timer] = field(default_factory=TimerQueue)
    _ripe: deque[_Timer] = field(default_factory=deque)  # due, not yet acted upon
    _set_aside: dict[str, list[_Timer]] = field(default_factory=dict)  # by frozen node

    # --- time ----------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """When the next pod starts, ends or goes away."""
        return self._ripe[0].due.at if self._ripe else self._timers.next_due()

    def act(self, now: Instant) -> list[Command]:
        """Do the next act that is due: one pod at a time, so that its effects settle first."""
        for timer in self._due_timers(now):
            if timer.due is not timer.tenant.pending:
                continue
            if self.is_heard(timer.tenant.node):
                return [*_farewell(timer), self._act(timer.tenant, now)]
            self._set_aside.setdefault(timer.tenant.node, []).append(timer)
        return []

    # --- learning ------------------------------------------------------------------------------

    def see(self, pod: Pod, now: Instant, asked_at: Instant) -> list[Command]:
        """Take note of `pod`; `asked_at` is when it was asked to stop, should it be terminating."""
        if not pod.spec.node_name or not self.config.tends_pods:
            return []
        tenant = self._tenants.get(pod.key)
        if tenant is not None and tenant.ref.uid == pod.metadata.uid:
            _update(tenant, pod, now)
            self._plan(tenant)
            return []
        self._leave(pod.key)
        tenant = self._tenants[pod.key] = _tenant(pod, now, asked_at)
        self._by_node.setdefault(tenant.node, {})[pod.key] = tenant
        self._plan(tenant)
        return _warnings(tenant)

    def resume(self, node: str) -> None:
        """The kubelet of `node` is at work: what was set aside is due."""
        self._ripe.extend(self._set_aside.pop(node, ()))

    def welcome(self, node: str, now: Instant, *, was_dark: bool) -> None:
        """The kubelet of `node` is back: pods become ready again, and it learns of deletions."""
        self.resume(node)
        for tenant in [*self._by_node.get(node, {}).values()]:
            if is_terminating(tenant.pod) and not was_dark:
                tenant.asked_at, tenant.pending = now, None
                self._plan(tenant)
            elif was_dark and tenant.pod.status.phase == "Running" and _was_ready(tenant):
                delay = ready_delay_of(tenant.pod, self.config)
                tenant.ready_at = now + self.config.start_delay + delay
                self._plan(tenant)

    def forget(self, gone: Pod) -> None:
        """The pod is gone."""
        tenant = self._tenants.get(gone.key)
        if tenant is not None and tenant.ref.uid == gone.metadata.uid:
            self._leave(gone.key)

    def see_refused(
        self, command: PatchStatus | DeleteObject, reason: FailureReason, now: Instant
    ) -> None:
        """Try again what the world refused for reasons of its own."""
        tenant = self._tenants.get(command.target.key)
        if tenant is None or tenant.ref != command.target or reason in GONE:
            return
        if tenant.sent is not None and _is_by_kubelet(command, tenant.sent):
            again = Due(tenant.sent.act, now + RETRY_AFTER, tenant.sent.why)
            tenant.sent, tenant.pending = None, again
            self._timers.add(again.at, _Timer(tenant, again))

    def _plan(self, tenant: _Tenant) -> None:
        """Let the timers know what the pod waits for now."""
        due = next_act(
            tenant.pod,
            bound_at=tenant.bound_at,
            started_at=tenant.started_at,
            asked_at=tenant.asked_at,
            ready_at=tenant.ready_at,
            config=self.config,
        )
        if due is not None and tenant.sent is not None and due.act is tenant.sent.act:
            tenant.pending = None
            return
        tenant.sent = None
        if due is None:
            tenant.pending = None
        elif not _is_no_news(due, tenant.pending):
            tenant.pending = due
            self._timers.add(due.at, _Timer(tenant, due))

    def _leave(self, key: str) -> None:
        """Let whatever the pod waited for come to nothing."""
        tenant = self._tenants.pop(key, None)
        if tenant is not None:
            tenant.pending = None
            there = self._by_node[tenant.node]
            del there[key]
            if not there:
                del self._by_node[tenant.node]

    # --- acting --------------------------------------------------------------------------------

    def _due_timers(self, now: Instant) -> Iterator[_Timer]:
        if not self._ripe:
            self._ripe.extend(self._timers.pop_due(now))
        while self._ripe:
            yield self._ripe.popleft()

    def _act(self, tenant: _Tenant, now: Instant) -> Command:
        due = tenant.pending
        assert due is not None
        tenant.pending, tenant.sent = None, due
        ready = readiness(tenant.pod, heeds_gates=self.config.heeds_gates)
        match due.act:
            case Act.ACCEPT:
                return pod_status.accepted(tenant.ref, tenant.pod, now)
            case Act.START:
                delay = ready_delay_of(tenant.pod, self.config)
                tenant.started_at, tenant.ready_at = now, now + delay
                return pod_status.running(tenant.ref, tenant.pod, now, None if delay else ready)
            case Act.READY:
                return pod_status.made_ready(tenant.ref, ready)
            case Act.OBSERVE:
                is_up = tenant.ready_at is not None and tenant.ready_at <= now
                return pod_status.observed(tenant.ref, tenant.pod, ready if is_up else None)
            case Act.END if due.why == "completed":
                return pod_status.succeeded(tenant.ref)
            case Act.END:
                return pod_status.deadline_exceeded(tenant.ref)
            case Act.REMOVE:
                return DeleteObject(tenant.ref, grace_period_s=0, why=WHY_REMOVED)


def _tenant(pod: Pod, now: Instant, asked_at: Instant) -> _Tenant:
    meta = pod.metadata
    started_at = start_time(pod)
    return _Tenant(
        ref=ObjectRef("Pod", meta.namespace, meta.name, meta.uid),
        node=pod.spec.node_name,
        pod=pod,
        bound_at=now,
        started_at=now if started_at is None else started_at,
        asked_at=asked_at,
        ready_at=now if is_ready(pod) or is_held_by_gates(pod) else None,
    )


def _farewell(timer: _Timer) -> list[Command]:
    """How a pod has ended that goes now, for those who hold it to see that."""
    # upstream: pkg/kubelet/status/status_manager.go:TerminatePod
    pod = timer.tenant.pod
    is_over = is_terminal(pod) or is_static(pod)
    if timer.due.act is not Act.REMOVE or is_over or not pod.metadata.finalizers:
        return []
    return [pod_status.stopped(timer.tenant.ref)]


def _update(tenant: _Tenant, pod: Pod, now: Instant) -> None:
    """Replace what is known of the pod; asking again with less grace counts from then."""
    before, tenant.pod = tenant.pod, pod
    if tenant.ready_at is None and is_ready(pod):
        tenant.ready_at = now
    if is_terminating(pod) and (
        not is_terminating(before) or grace_period(pod) < grace_period(before)
    ):
        tenant.asked_at = now


def _was_ready(tenant: _Tenant) -> bool:
    """Whether the pod is ready, or was before others marked it, which leaves it without reason."""
    if tenant.ready_at is not None:
        return True
    found = condition(tenant.pod, "Ready")
    return found is not None and not found.reason


def _is_no_news(due: Due, pending: Due | None) -> bool:
    """Whether the pod waits for this already; a removal is never put off."""
    # upstream: pkg/kubelet/pod_workers.go:calculateEffectiveGracePeriod only takes shorter ones
    if pending is None or due.act is not pending.act:
        return False
    return due.at == pending.at or (due.act is Act.REMOVE and due.at > pending.at)


def _is_by_kubelet(command: PatchStatus | DeleteObject, sent: Due) -> bool:
    return isinstance(command, DeleteObject) == (sent.act is Act.REMOVE)


def _warnings(tenant: _Tenant) -> list[Command]:
    return [
        RecordEvent(
            regarding=tenant.ref,
            type="Warning",
            reason="InvalidAnnotation",
            action="Starting",
            note=problem,
            reporting_controller=REPORTING_CONTROLLER,
        )
        for problem in (*annotation_problems(tenant.pod), usage_problem(tenant.pod))
        if problem
    ]
