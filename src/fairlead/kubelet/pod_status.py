"""What a kubelet writes into the status of its pods.

upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus, pkg/kubelet/status/generate.go.
Addresses and container statuses are not simulated.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.core.command import Condition, ObjectRef, PatchStatus
from fairlead.core.instant import Instant

COMPLETED: Final = "PodCompleted"
FAILED: Final = "PodFailed"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
# The words of upstream's pkg/kubelet/active_deadline.go:
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"

_RUNNING: Final = (
    Condition("PodReadyToStartContainers", "True"),
    Condition("Initialized", "True"),
    Condition("Ready", "True"),
    Condition("ContainersReady", "True"),
)


def running(ref: ObjectRef, pod: Pod, now: Instant) -> PatchStatus:
    """All containers of `pod` run and are ready; startTime is `now`, cut to whole seconds."""
    start_time = pod.status.start_time or format_timestamp(now)
    return PatchStatus(ref, {"phase": "Running", "startTime": start_time}, _RUNNING)


def succeeded(ref: ObjectRef) -> PatchStatus:
    """All containers have ended well."""
    conditions = (Condition("Initialized", "True", COMPLETED), *_ended(COMPLETED))
    return PatchStatus(ref, {"phase": "Succeeded"}, conditions)


def deadline_exceeded(ref: ObjectRef) -> PatchStatus:
    """The pod was stopped because spec.activeDeadlineSeconds are over."""
    fields = {"phase": "Failed", "reason": DEADLINE_EXCEEDED, "message": DEADLINE_MESSAGE}
    return PatchStatus(ref, fields, _ended(FAILED))


def _ended(reason: str) -> tuple[Condition, ...]:
    return (
        Condition("PodReadyToStartContainers", "False"),
        Condition("Ready", "False", reason),
        Condition("ContainersReady", "False", reason),
    )
