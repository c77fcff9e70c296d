"""The pod statuses that a kubelet writes.

upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus, pkg/kubelet/status/generate.go.
Addresses and container statuses are not simulated.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.readiness import Readiness

COMPLETED: Final = "PodCompleted"
FAILED: Final = "PodFailed"
EVICTED: Final = "Evicted"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
# The words of upstream's pkg/kubelet/active_deadline.go:
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"

_STARTED: Final = (
    Condition("PodReadyToStartContainers", "True"),
    Condition("Initialized", "True"),
)


def accepted(ref: ObjectRef, pod: Pod, now: Instant) -> PatchStatus:
    """The containers of `pod` are being created; startTime is `now`, cut to whole seconds."""
    # upstream: pkg/kubelet/status/generate.go:GeneratePodInitializedCondition
    fields = {"phase": "Pending", "startTime": format_timestamp(now)}
    initialized = Condition("Initialized", "True")
    if pod.spec.init_containers:
        names = " ".join(container.name for container in pod.spec.init_containers)
        message = f"containers with incomplete status: [{names}]"
        initialized = Condition("Initialized", "False", "ContainersNotInitialized", message)
    making = Condition("PodReadyToStartContainers", "False")
    return PatchStatus(ref, fields, (making, initialized, *_not_ready(pod)))


def running(ref: ObjectRef, pod: Pod, now: Instant, ready: Readiness | None) -> PatchStatus:
    """All containers of `pod` run; startTime is `now`, cut to whole seconds.

    `ready` is what to say where they are ready, too, else None.
    """
    start_time = pod.status.start_time or format_timestamp(now)
    conditions = (*_STARTED, *(ready or _not_ready(pod)))
    return PatchStatus(ref, {"phase": "Running", "startTime": start_time}, conditions)


def made_ready(ref: ObjectRef, ready: Readiness) -> PatchStatus:
    """All containers are ready."""
    return PatchStatus(ref, conditions=ready)


def observed(ref: ObjectRef, pod: Pod, ready: Readiness | None) -> PatchStatus:
    """The changed specification of the running `pod` was observed; `ready` as for `running`."""
    conditions = (*_STARTED, *(ready or _not_ready(pod)))
    return PatchStatus(ref, {"phase": "Running"}, conditions)


def _not_ready(pod: Pod) -> tuple[Condition, ...]:
    names = " ".join(container.name for container in pod.spec.containers)
    reason, message = "ContainersNotReady", f"containers with unready status: [{names}]"
    return (
        Condition("Ready", "False", reason, message),
        Condition("ContainersReady", "False", reason, message),
    )


def succeeded(ref: ObjectRef) -> PatchStatus:
    """All containers have succeeded."""
    conditions = (Condition("Initialized", "True", COMPLETED), *_ended(COMPLETED))
    return PatchStatus(ref, {"phase": "Succeeded"}, conditions)


def stopped(ref: ObjectRef) -> PatchStatus:
    """The pod has ended because it was asked to."""
    return PatchStatus(ref, {"phase": "Failed"}, _ended(FAILED))


def deadline_exceeded(ref: ObjectRef) -> PatchStatus:
    """The pod was stopped because spec.activeDeadlineSeconds are over."""
    fields = {"phase": "Failed", "reason": DEADLINE_EXCEEDED, "message": DEADLINE_MESSAGE}
    return PatchStatus(ref, fields, _ended(FAILED))


def evicted(ref: ObjectRef, why: str) -> PatchStatus:
    """The pod was evicted under node pressure; `why` is the message."""
    # upstream: pkg/kubelet/eviction/eviction_manager.go:evictPod
    fields = {"phase": "Failed", "reason": EVICTED, "message": why}
    disrupted = Condition("DisruptionTarget", "True", "TerminationByKubelet", why)
    return PatchStatus(ref, fields, (disrupted, *_ended(FAILED)), why=why)


def _ended(reason: str) -> tuple[Condition, ...]:
    return (
        Condition("PodReadyToStartContainers", "False"),
        Condition("Ready", "False", reason),
        Condition("ContainersReady", "False", reason),
    )
