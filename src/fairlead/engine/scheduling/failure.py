"""The events and status patches that the scheduler writes for a pod.

After every failed attempt, an event is recorded. The status is patched only if it changes.
upstream: schedule_one.go: handleSchedulingFailure
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.pods.facts import condition
from fairlead.engine.core.command import Command, Condition, PatchStatus, RecordEvent
from fairlead.engine.state.pod_info import PodInfo

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


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
    pod: PodInfo, reason: str, message: str, nominated_node: str | None
) -> list[Command]:
    """Return the patch of the condition PodScheduled and the nomination, [] if nothing changes.

    If `nominated_node` is None, nominatedNodeName stays unchanged; "" removes it.
    """
    wanted = Condition(POD_SCHEDULED, "False", reason, message)
    found = condition(pod.pod, POD_SCHEDULED)
    same = found is not None and (found.status, found.reason, found.message) == (
        wanted.status,
        wanted.reason,
        wanted.message,
    )
    fields: dict[str, Any] = {}
    if nominated_node is not None and nominated_node != pod.pod.status.nominated_node_name:
        fields["nominatedNodeName"] = nominated_node or None
    if same and not fields:
        return []
    return [PatchStatus(pod.ref, fields=fields, conditions=() if same else (wanted,))]


def bound_event(pod: PodInfo, node: str) -> RecordEvent:
    """Return the Scheduled event for `node`."""
    return RecordEvent(
        regarding=pod.ref,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.key} to {node}",
        reporting_controller=pod.pod.spec.scheduler_name,
    )
