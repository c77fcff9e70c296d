"""The pod statuses that a kubelet writes.

A running pod is ready when its containers are ready and all readiness gates are true. Gates are
conditions that other controllers write. A client can write that a container has stopped. A
simulation without such controllers and clients sets `applies_readiness_gates` to False. Gates and
stopped containers are then ignored. Container statuses are written only in these cases:

- the containers were lost because their machine went down
- the containers stopped in a deleted pod (in a simulation, only if a finalizer keeps the pod)
- the containers stopped because a client set the phase of their pod to Failed
- a resize of the pod was carried out

upstream: pkg/kubelet/kubelet_pods.go:generateAPIPodStatus,
pkg/kubelet/status/generate.go:GeneratePodReadyCondition
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.objects import Container, ContainerState, ContainerStatus, Pod
from fairlead.api.pods.facts import condition, is_sidecar
from fairlead.api.pods.requests import RESIZE_PENDING
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.pod_admission import EVICTED, PodRejection

GATES_NOT_READY: Final = "ReadinessGatesNotReady"
# Reasons of waiting containers that start as usual.
# upstream: pkg/kubelet/kubelet_pods.go: ContainerCreating, PodInitializing
STARTING: Final = frozenset(("", "ContainerCreating", "PodInitializing"))
Readiness = tuple[Condition, ...]

_CONTAINERS_READY: Final = Condition("ContainersReady", "True")
COMPLETED: Final = "PodCompleted"
FAILED: Final = "PodFailed"
PREEMPTING: Final = "Preempting"
PREEMPTED_MESSAGE: Final = "Preempted in order to admit critical pod"
# The exit code and reason of a container that containerd no longer finds after a reboot.
# upstream: containerd's internal/cri/server/helpers.go:unknownExitCode, unknownExitReason
LOST_EXIT_CODE: Final = 255
LOST_REASON: Final = "Unknown"
# The exit codes of a container that SIGTERM or SIGKILL has ended: 128 plus the signal.
TERMINATED_EXIT_CODE: Final = 143
KILLED_EXIT_CODE: Final = 137
# upstream: pkg/kubelet/container/runtime.go: containerd reports this reason for exit codes above 0
ERROR_REASON: Final = "Error"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
# messages of upstream's pkg/kubelet/active_deadline.go
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"

_LOST: Final[Json] = {"terminated": {"exitCode": LOST_EXIT_CODE, "reason": LOST_REASON}}

_STARTED: Final = (
    Condition("PodReadyToStartContainers", "True"),
    Condition("Initialized", "True"),
)


def readiness(pod: Pod, *, applies_readiness_gates: bool) -> Readiness:
    """Return the conditions Ready and ContainersReady that `pod` has once its containers are ready.

    If `applies_readiness_gates` is set, a stopped container makes both conditions False, and a
    readiness gate that is not true makes Ready False. Otherwise, both conditions are True.
    """
    stopped = stopped_containers(pod) if applies_readiness_gates else []
    if stopped:
        return _not_ready(stopped)
    closed = ", ".join(_closed_gates(pod)) if applies_readiness_gates else ""
    ready = Condition("Ready", "True")
    if closed:
        ready = Condition("Ready", "False", GATES_NOT_READY, closed)
    return ready, _CONTAINERS_READY


def is_readiness_current(pod: Pod, *, applies_readiness_gates: bool) -> bool:
    """Return whether the status of `pod` already has the conditions that `readiness` returns.

    ContainersReady is not compared if Ready is True both in the status and in the result of
    `readiness`.
    """
    ready = condition(pod, "Ready")
    if ready is None:
        return False
    if not applies_readiness_gates:  # then `readiness` returns True for both conditions
        return ready.status == "True"
    wanted, of_containers = readiness(pod, applies_readiness_gates=True)
    if ready.status != wanted.status:
        return False
    if wanted.status == "True":
        return True
    containers = condition(pod, "ContainersReady")
    is_current = containers is not None and containers.status == of_containers.status
    return is_current and ready.message == wanted.message


def _has_stopped(state: ContainerState) -> bool:
    """Return whether a container in `state` has ended, or waits although it had started."""
    return state.terminated is not None or (
        state.waiting is not None and state.waiting.reason not in STARTING
    )


def stopped_containers(pod: Pod) -> list[Container]:
    """Return the containers of `pod` that should run, but have stopped according to its status.

    A kubelet never writes such a status for a running pod, so a client must have changed the state.
    """
    spec, status = pod.spec, pod.status
    rows = (*status.init_container_statuses, *status.container_statuses)
    stopped = {row.name for row in rows if _has_stopped(row.state)}  # never iterated
    if not stopped:
        return []
    lasting = (*filter(is_sidecar, spec.init_containers), *spec.containers)
    return [one for one in lasting if one.name in stopped]


def _closed_gates(pod: Pod) -> Iterator[str]:
    for gate in pod.spec.readiness_gates:
        found, name = condition(pod, gate.condition_type), gate.condition_type
        if found is None:
            yield f'corresponding condition of pod readiness gate "{name}" does not exist.'
        elif found.status != "True":
            yield f'the status of pod readiness gate "{name}" is not "True", but {found.status}'


def accepted(ref: ObjectRef, pod: Pod, now: Instant) -> PatchStatus:
    """Return the status patch of the accepted `pod`, whose containers are not created yet."""
    # upstream: pkg/kubelet/status/generate.go:GeneratePodInitializedCondition
    fields = {"phase": "Pending", "startTime": format_timestamp(now)}
    initialized = Condition("Initialized", "True")
    if pod.spec.init_containers:
        names = " ".join(container.name for container in pod.spec.init_containers)
        message = f"containers with incomplete status: [{names}]"
        initialized = Condition("Initialized", "False", "ContainersNotInitialized", message)
    making = Condition("PodReadyToStartContainers", "False")
    unready = (*filter(is_sidecar, pod.spec.init_containers), *pod.spec.containers)
    return PatchStatus(ref, fields, (making, initialized, *_not_ready(unready)))


def running(ref: ObjectRef, pod: Pod, accepted_at: Instant, ready: Readiness | None) -> PatchStatus:
    """Return the status patch of a running pod.

    startTime becomes `accepted_at` if it is not set. `ready` are the readiness conditions, or None
    if the containers are not ready.
    """
    # upstream: pkg/kubelet/status/status_manager.go:updateStatusInternal
    start_time = pod.status.start_time or format_timestamp(accepted_at)
    conditions = (*_STARTED, *(ready or _not_ready(pod.spec.containers)))
    return PatchStatus(ref, {"phase": "Running", "startTime": start_time}, conditions)


def made_ready(ref: ObjectRef, ready: Readiness, deferral: Condition | None) -> PatchStatus:
    """Return the status patch of a pod whose containers have all become ready.

    `deferral` is the condition of the pod's deferred resize, or None.
    """
    return PatchStatus(ref, conditions=(*ready, *_present(deferral)))


def observed(
    ref: ObjectRef, pod: Pod, ready: Readiness | None, deferral: Condition | None
) -> PatchStatus:
    """Return the status patch after a change of the running `pod`.

    `ready` are the readiness conditions, or None if the containers are not ready. `deferral` is the
    condition of the pod's deferred resize, or None.
    """
    readiness_now = ready or _not_ready(pod.spec.containers)
    conditions = (*_STARTED, *readiness_now, *_present(deferral))
    return PatchStatus(ref, {"phase": "Running"}, conditions)


def resized(ref: ObjectRef, pod: Pod) -> PatchStatus:
    """Return the status patch of the running `pod` after its kubelet has carried out a resize.

    The containers have the resources of the spec, and no resize is pending any more.
    """
    spec, status = pod.spec, pod.status
    kept = [one for one in status.conditions if one.type != RESIZE_PENDING]
    fields: dict[str, Any] = {"conditions": msgspec.to_builtins(kept)}
    for name, containers, statuses in (
        ("containerStatuses", spec.containers, status.container_statuses),
        ("initContainerStatuses", spec.init_containers, status.init_container_statuses),
    ):
        if statuses:
            fields[name] = [_resized_row(*one) for one in _with_statuses(containers, statuses)]
    return PatchStatus(ref, fields)


def _resized_row(container: Container, before: ContainerStatus) -> Json:
    """Return the status `before` of `container` as JSON, but with the resources of the spec."""
    row = _kept_row(container, before)
    if before.resources is None:  # the kubelet reports no resources
        return row
    requests = msgspec.to_builtins(container.resources.requests)
    return row | {
        "allocatedResources": requests,
        "resources": msgspec.to_builtins(container.resources),
    }


def _present(one: Condition | None) -> tuple[Condition, ...]:
    return () if one is None else (one,)


def _not_ready(unready: Iterable[Container]) -> Readiness:
    # upstream: pkg/kubelet/status/generate.go:GenerateContainersReadyCondition
    names = " ".join(container.name for container in unready)
    reason, message = "ContainersNotReady", f"containers with unready status: [{names}]"
    return (
        Condition("Ready", "False", reason, message),
        Condition("ContainersReady", "False", reason, message),
    )


def interrupted(ref: ObjectRef, pod: Pod) -> PatchStatus:
    """Return the status patch after all containers of `pod` were lost; they will start again."""
    return PatchStatus(ref, conditions=_not_ready(pod.spec.containers))


def restarted(ref: ObjectRef, pod: Pod, ready: Readiness | None) -> PatchStatus:
    """Return the patch for the status of `pod` whose lost containers have just started again.

    `ready` are the readiness conditions to write. If the pod was not ready before, `ready` is None.
    The pod's conditions then stay as they are.
    """
    # upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go:startContainer
    return PatchStatus(ref, _container_lists(pod, is_restarted=True), ready or ())


def lost(ref: ObjectRef, pod: Pod) -> PatchStatus:
    """Return the status patch after all containers of `pod` were lost; they do not start again."""
    fields = {"phase": "Failed", **_container_lists(pod, is_restarted=False)}
    return PatchStatus(ref, fields, _ended(FAILED))


def stopped(ref: ObjectRef, pod: Pod, exit_code: int) -> PatchStatus:
    """Return the status patch of `pod`, which was stopped and does not start again.

    Containers that had not ended by themselves have ended with `exit_code`.
    """
    # upstream: pkg/kubelet/status/status_manager.go:TerminatePod
    ending: Json = {"terminated": {"exitCode": exit_code, "reason": ERROR_REASON}}
    spec, status = pod.spec, pod.status
    main = [
        _row(one, before, ending)
        for one, before in _with_statuses(spec.containers, status.container_statuses)
    ]
    known = {one.name for one in status.init_container_statuses}
    initial = [
        _row(one, before, ending)
        for one, before in _with_statuses(spec.init_containers, status.init_container_statuses)
        if one.name in known or is_sidecar(one)
    ]
    fields: dict[str, Any] = {"phase": "Failed", "containerStatuses": main}
    if initial:
        fields["initContainerStatuses"] = initial
    return PatchStatus(ref, fields, _ended(FAILED))


def _container_lists(pod: Pod, *, is_restarted: bool) -> dict[str, Any]:
    """Return the lists of container statuses of `pod`, whose machine went down.

    If `is_restarted` is False, no container runs again. Otherwise all init containers run again in
    a new sandbox, even those that had completed. Main containers run again. But a completed main
    container stays completed if restartPolicy is not Always.
    """
    # upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go:computePodActions
    spec, status = pod.spec, pod.status
    runs_again = is_restarted and spec.restart_policy == "Always"
    main = [
        _row(
            one,
            before,
            _LOST,
            is_restarted=is_restarted and (runs_again or not _is_completed(before)),
        )
        for one, before in _with_statuses(spec.containers, status.container_statuses)
    ]
    initial = [
        _row(one, before, _LOST, is_restarted=is_restarted)
        for one, before in _with_statuses(spec.init_containers, status.init_container_statuses)
    ]
    lists = {"containerStatuses": main}
    return lists | {"initContainerStatuses": initial} if initial else lists


def _with_statuses(
    containers: Iterable[Container], statuses: Iterable[ContainerStatus]
) -> list[tuple[Container, ContainerStatus]]:
    known = {one.name: one for one in statuses}
    return [(one, known.get(one.name) or ContainerStatus(name=one.name)) for one in containers]


def _is_completed(status: ContainerStatus) -> bool:
    ended = status.state.terminated
    return ended is not None and ended.exit_code == 0


def _row(
    container: Container, before: ContainerStatus, ending: Json, *, is_restarted: bool = False
) -> Json:
    """Return the new status of `container`, whose previous status is `before`.

    If `is_restarted` is set, the container runs again, and its lastState is `ending`. Otherwise its
    state is `ending`. A container that had already ended in `before` keeps that state.
    """
    row = _kept_row(container, before)
    if is_restarted:
        row["restartCount"] += 1
        return row | {"ready": True, "state": {"running": {}}, "lastState": ending}
    if before.state.terminated is None:
        row["state"] = ending
    return row | {"ready": False}


def _kept_row(container: Container, before: ContainerStatus) -> Json:
    """Return the status `before` of `container` as JSON, with all fields that the API requires."""
    row: Json = msgspec.to_builtins(before)
    return row | {"image": container.image, "imageID": "", "restartCount": before.restart_count}


def succeeded(ref: ObjectRef) -> PatchStatus:
    """Return the status patch of a pod whose containers have all succeeded."""
    conditions = (Condition("Initialized", "True", COMPLETED), *_ended(COMPLETED))
    return PatchStatus(ref, {"phase": "Succeeded"}, conditions)


def deadline_exceeded(ref: ObjectRef) -> PatchStatus:
    """Return the status patch of a pod that was stopped by spec.activeDeadlineSeconds."""
    fields = {"phase": "Failed", "reason": DEADLINE_EXCEEDED, "message": DEADLINE_MESSAGE}
    return PatchStatus(ref, fields, _ended(FAILED))


def rejected(ref: ObjectRef, why: PodRejection, now: Instant) -> PatchStatus:
    """Return the status patch of a pod that the kubelet does not admit."""
    # upstream: pkg/kubelet/kubelet.go:rejectPod
    fields = {
        "phase": "Failed",
        "reason": why.reason,
        "message": f"Pod was rejected: {why.message}",
        "startTime": format_timestamp(now),
    }
    return PatchStatus(ref, fields, why=why.message)


def preempted(ref: ObjectRef) -> PatchStatus:
    """Return the status patch of a pod that was stopped to make room for a critical pod."""
    # upstream: pkg/kubelet/preemption/preemption.go:evictPodsToFreeRequests
    fields = {"phase": "Failed", "reason": PREEMPTING, "message": PREEMPTED_MESSAGE}
    why = "Pod was preempted by Kubelet to accommodate a critical pod."
    disrupted = Condition("DisruptionTarget", "True", "TerminationByKubelet", why)
    return PatchStatus(ref, fields, (disrupted, *_ended(FAILED)), why=why)


def evicted(ref: ObjectRef, why: str) -> PatchStatus:
    """Return the status patch of a pod evicted under node pressure; `why` is the message."""
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
