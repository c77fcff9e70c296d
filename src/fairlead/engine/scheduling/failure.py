"""FailureHandler: handles the failure of an attempt to schedule or bind a pod.

    report the failure ──▶ requeue the pod ──▶ update its nomination ──▶ event and status patch

upstream: schedule_one.go: handleSchedulingFailure, handleBindingCycleError
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.pods.facts import condition
from fairlead.engine.core.command import (
    Command,
    Condition,
    PatchStatus,
    RecordEvent,
    observed,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodUnschedulable, Reporter
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.scheduling.binding_cycle import BindingRefused
from fairlead.engine.scheduling.decision import Failure, refusal
from fairlead.engine.scheduling.queue.event_handlers import nomination_of
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


class FailureHandler:
    """Requeues pods after failed attempts, and reports why the attempts failed."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        nominator: Nominator,
        reporter: Reporter,
        *,
        observes_generation: bool = True,
    ) -> None:
        """Use the scheduler's `queue` and `nominator`; `reporter` receives the failures.

        If `observes_generation` is set, the condition PodScheduled contains observedGeneration,
        which is the pod's metadata.generation. If the pod has no generation, the condition has no
        observedGeneration.
        """
        self._cluster = cluster
        self._queue = queue
        self._nominator = nominator
        self._reporter = reporter
        self._observes_generation = observes_generation

    def handle(
        self,
        queued: QueuedPod,
        tried: PodInfo,
        failure: Failure,
        started: Instant,
        now: Instant,
        *,
        is_binding: bool = False,
    ) -> list[Command]:
        """Report the failure, and requeue the pod if it still exists and has no node.

        `tried` is the pod as it was when its attempt began at `started`. `is_binding` means that
        the binding cycle has failed. Returns the event and the status patch. If the pod already has
        a node, returns only the event. If another pod with the same name has replaced the pod,
        returns [].

        upstream: schedule_one.go: handleSchedulingFailure
        """
        self._report(queued, tried, failure, started, now, is_binding=is_binding)
        known = self._cluster.pods.get(tried.key)
        if known is not None and (known.id != tried.id or known.pod.spec.node_name):
            self._queue.done(queued)  # bound by another scheduler, or replaced
            # Upstream also writes PodScheduled=False, which the kubelet soon replaces.
            return [failure_event(tried, failure.message)] if known.id == tried.id else []
        pod = known or tried
        if known is None:
            self._queue.done(queued)
        else:
            queued.info = known
            self._queue.put_back(queued, now, failure.plugins)
            self._nominate(pod, failure.nominated_node)
        patch = failure_patch(pod, failure, observes_generation=self._observes_generation)
        return [failure_event(pod, failure.message), *patch]

    def handle_refusal(self, refused: BindingRefused, now: Instant) -> list[Command]:
        """Requeue the pod of a refused binding, and wake pods that wait for the released resources.

        If the binding was refused within the scheduling cycle (`refused.in_cycle`), no pods are
        woken. If an error caused the refusal, the refused pod itself may be woken too. If a plugin
        rejected the pod, the pod itself is not woken: the same plugin would reject it again.
        Returns the commands that undo the writes of PreBind plugins, followed by the commands that
        `handle` returns.

        upstream: schedule_one.go: handleBindingCycleError
        """
        binding, status = refused.binding, refused.status
        if not status.is_rejected and not refused.in_cycle:
            self._queue.wake_after_refusal(binding.pod, now)
        commands = self.handle(
            binding.queued, binding.pod, refusal(status), binding.started, now, is_binding=True
        )
        if status.is_rejected and not refused.in_cycle:
            self._queue.wake_after_refusal(binding.pod, now, spare=binding.pod.id)
        return [*refused.commands, *commands]

    def _report(
        self,
        queued: QueuedPod,
        pod: PodInfo,
        failure: Failure,
        started: Instant,
        now: Instant,
        *,
        is_binding: bool,
    ) -> None:
        self._reporter.report(
            PodUnschedulable(
                pod=pod.ref,
                at=now,
                message=failure.message,
                plugins=failure.plugins,
                nominated_node=failure.nominated_node,
                is_error=failure.is_error,
                is_binding=is_binding,
                started=started,
                attempt=queued.attempts,
                profile=pod.pod.spec.scheduler_name,
                post_filter=failure.post_filter,
                post_filter_failed=failure.post_filter_failed,
            )
        )

    def _nominate(self, pod: PodInfo, node: str | None) -> None:
        """Nominate `pod` to `node`; if `node` is "", withdraw the nomination of `pod`.

        If `node` is None, `pod` is nominated to the node in its status (nominatedNodeName). If the
        status names no node, the nomination is withdrawn.
        """
        wanted = nomination_of(pod) if node is None else node
        if wanted:
            self._nominator.nominate(pod, wanted)
        else:
            self._nominator.withdraw(pod.uid)


def failure_event(pod: PodInfo, message: str) -> RecordEvent:
    """Return the FailedScheduling event with `message`."""
    return RecordEvent(
        regarding=pod.ref,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=message,
        reporting_controller=pod.pod.spec.scheduler_name,
    )


def failure_patch(
    pod: PodInfo, failure: Failure, *, observes_generation: bool = False
) -> list[Command]:
    """Return the status patch after `failure`; [] if nothing changes.

    The patch writes the condition PodScheduled and nominatedNodeName. The condition is left out if
    only its observedGeneration would change. If `failure.nominated_node` is None, nominatedNodeName
    stays unchanged; "" removes it.

    upstream: schedule_one.go: updatePod
    """
    reason = SCHEDULER_ERROR if failure.is_error else UNSCHEDULABLE
    found, node = condition(pod.pod, POD_SCHEDULED), failure.nominated_node
    same = (
        found is not None
        and found.message == failure.message
        and found.reason == reason
        and found.status == "False"
    )
    renominates = node is not None and node != pod.pod.status.nominated_node_name
    if same and not renominates:
        return []
    fields: dict[str, Any] = {"nominatedNodeName": node or None} if renominates else {}
    if same:
        return [PatchStatus(pod.ref, fields=fields)]
    wanted = Condition(POD_SCHEDULED, "False", reason, failure.message)
    if observes_generation:
        wanted = observed(wanted, pod.pod.metadata.generation)
    return [PatchStatus(pod.ref, fields=fields, conditions=(wanted,))]
