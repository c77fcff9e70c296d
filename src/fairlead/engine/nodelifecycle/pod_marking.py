"""PodMarking: pods of a node that is no longer ready are marked not ready.

It happens once, when the controller itself finds the node silent; a pod that reaches such a node
later is marked when it gets there. Nothing here ever makes a pod ready again: its kubelet will.

    Ready condition present and not False  ⇒  False, with reason and message as they were

upstream: pkg/controller/util/node/controller_utils.go:MarkPodsNotReady,
pkg/controller/nodelifecycle/node_lifecycle_controller.go:processPod
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pod import condition
from fairlead.engine.core.command import Command, Condition, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.pod_ref import pod_ref
from fairlead.engine.nodelifecycle.well_known import FALSE, NODE_CONTROLLER, READY

EVENT_REASON: Final = "NodeNotReady"
EVENT_NOTE: Final = "Node is not ready"


class PodMarking:
    """Marks, and the events that follow once a mark was written."""

    def __init__(self, *, reports: bool) -> None:
        """`reports`: marked pods get an event."""
        self._reports = reports
        self._sent: dict[ObjectRef, tuple[PatchStatus, str]] = {}  # -> the mark, the node
        self.to_repeat: dict[str, None] = {}  # nodes some of whose pods could not be marked

    def mark(self, pods: Iterable[Pod]) -> list[Command]:
        """Mark those of `pods` that are not marked yet."""
        return [command for pod in pods for command in self._mark(pod)]

    def _mark(self, pod: Pod) -> list[Command]:
        ready = condition(pod, READY)
        if ready is None or ready.status == FALSE:
            return []
        marked = Condition(READY, FALSE, ready.reason, ready.message)
        mark = PatchStatus(pod_ref(pod), conditions=(marked,))
        self._sent[mark.target] = mark, pod.spec.node_name
        return [mark]

    def settle(self, outcome: CommandSucceeded | CommandFailed) -> list[Command]:
        """Report a mark once it was written; the node is to be repeated when it could not be."""
        command = outcome.command
        if not isinstance(command, PatchStatus):
            return []
        sent, node = self._sent.get(command.target, (None, ""))
        if sent != command:
            return []
        del self._sent[command.target]
        if isinstance(outcome, CommandFailed):
            if outcome.reason in (FailureReason.NOT_FOUND, FailureReason.CONFLICT):
                return []  # that pod is gone
            self.to_repeat[node] = None
        if not self._reports:
            return []
        target = command.target
        return [RecordEvent(target, "Warning", EVENT_REASON, "", EVENT_NOTE, NODE_CONTROLLER)]
