"""Marks the pods on not-ready nodes as not ready.

The status of the Ready condition of these pods is set to False. The reason and the message of the
condition do not change. Pods whose Ready condition is missing or already False are left out.

NotReadyMarker marks the pods of a node once, when the controller sets the node to Unknown.
LateBoundPods marks pods that are bound after their node became not ready. Only the kubelet sets a
pod to ready again.

upstream: pkg/controller/util/node/controller_utils.go:MarkPodsNotReady,
pkg/controller/nodelifecycle/node_lifecycle_controller.go:podUpdated, processPod
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.nodes.readiness import FALSE, READY, TRUE
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.engine.core.command import (
    Command,
    Condition,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    pod_ref,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.nodelifecycle.health.node_health_map import NodeHealthMap
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.well_known import NODE_CONTROLLER

EVENT_REASON: Final = "NodeNotReady"
EVENT_NOTE: Final = "Node is not ready"


class NotReadyMarker:
    """Sets the Ready condition of pods to False."""

    def __init__(self, *, reports: bool) -> None:
        """`reports` states whether an event is also recorded for each marked pod."""
        self._reports = reports
        self._sent: dict[ObjectRef, tuple[PatchStatus, str]] = {}  # pod -> (patch, node name)
        self.nodes_to_retry: dict[
            str, None
        ] = {}  # names of nodes with pods that could not be marked

    def mark(self, pods: Iterable[Pod]) -> list[Command]:
        """Return commands that set Ready of `pods` to False.

        A pod whose Ready condition is False or missing is left out.
        """
        marks: list[Command] = []
        for pod in pods:
            ready = condition(pod, READY)
            if ready is None or ready.status == FALSE:
                continue
            marked = Condition(READY, FALSE, ready.reason, ready.message)
            mark = PatchStatus(pod_ref(pod), conditions=(marked,))
            self._sent[mark.target] = mark, pod.spec.node_name
            marks.append(mark)
        return marks

    def on_outcome(self, outcome: CommandSucceeded | CommandFailed) -> list[Command]:
        """Return the NodeNotReady event for a pod, given the outcome of a command of `mark`.

        Returns [] in three cases: `mark` did not return the command of `outcome`, the pod no longer
        exists, or the constructor's `reports` is False. If the command failed although the pod
        exists, the event is still returned, and the pod's node is added to `nodes_to_retry`.
        """
        command = outcome.command
        if not isinstance(command, PatchStatus):
            return []
        sent, node = self._sent.get(command.target, (None, ""))
        if sent != command:
            return []
        del self._sent[command.target]
        if type(outcome) is CommandFailed:
            if outcome.reason in (FailureReason.NOT_FOUND, FailureReason.CONFLICT):
                return []  # the pod no longer exists
            self.nodes_to_retry[node] = None
        if not self._reports:
            return []
        target = command.target
        return [RecordEvent(target, "Warning", EVENT_REASON, "", EVENT_NOTE, NODE_CONTROLLER)]


# upstream: client-go/util/workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter
WAIT_INITIAL: Final[DurationNs] = seconds(0.005)
WAIT_MAX: Final[DurationNs] = seconds(1_000)
DOUBLINGS_MAX: Final = WAIT_MAX.bit_length()


class LateBoundPods:
    """Marks pods that are bound after their node became not ready.

    Uses the node health that the last monitor pass saved. Pods on nodes that no monitor pass has
    examined are ignored. A pod on a deleted node is checked again with exponential backoff, in case
    the node is created again.
    """

    def __init__(
        self, nodes: NodeHealthMap, pods: NodePods, not_ready_marker: NotReadyMarker
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._marking = not_ready_marker
        self._retries: TimerQueue[tuple[str, int]] = TimerQueue()  # (pod key, retries so far)

    def observe(self, pod: Pod, now: Instant, retries: int = 0) -> list[Command]:
        """Mark `pod`, which was just bound, as not ready if its node is not ready.

        If the Node object is missing, the pod is checked again later. `retries` is the number of
        earlier checks of the pod.
        """
        node = pod.spec.node_name
        health = self._nodes.health_of(node)
        if health is None:
            return []
        if self._nodes.find(node) is None:
            wait = min(WAIT_INITIAL << min(retries, DOUBLINGS_MAX), WAIT_MAX)
            self._retries.add(now + wait, (pod.key, retries + 1))
            return []
        return self._marking.mark([pod]) if health.ready not in ("", TRUE) else []

    def next_due(self) -> Instant | None:
        """Return the time of the next retry; None if no retry is pending."""
        return self._retries.next_due()

    def retry(self, now: Instant) -> list[Command]:
        """Check the pods whose backoff has expired; return the commands that mark pods not ready.

        A pod is marked if its node exists but is not ready. If the node does not exist, the pod
        waits again.
        """
        commands: list[Command] = []
        for key, retries in self._retries.pop_due(now):
            pod = self._pods.get(key)
            if pod is not None:
                commands += self.observe(pod, now, retries)
        return commands
