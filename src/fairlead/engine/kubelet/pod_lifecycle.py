"""Computes when a bound pod starts, ends and is removed.

    Pending ──START──▶ Running ──END, STOP──▶ Succeeded | Failed
       │                ↺ READY, OBSERVE, RESTART
       └───────────┬──────┘
              terminating ──REMOVE──▶ gone

If `accepts_pods` is configured, a kubelet makes three additional writes. It reports that it has
accepted a pod (ACCEPT). It updates the status if the spec has changed or the status lacks the list
of containers (OBSERVE). It writes the last status of a pod before it removes the pod (REMOVE). A
pod becomes ready some time after its start (READY). A pod becomes ready again after another
controller has marked it not ready. If a client writes that a container of a running pod has
stopped, the pod is not ready until a client writes that the container runs again. After the pod's
machine was down, the containers start again (RESTART, `pod_workers`). A pod that is not admitted
fails instead of starting (REJECT, `pod_admission`). A loaded pod never starts if its status shows
that one of its containers failed to start. If `accepts_pods` is configured, a client can set the
phase of a running pod to Failed or Succeeded. The kubelet then stops the pod's containers and
completes the status (STOP).

Each pod waits for at most one act at a time. `next_act` computes this act from the pod. The module
`pod_workers` adds the acts REJECT and RESTART. It also adds STOP if the kubelet itself ends the
pod, and OBSERVE if the pod is resized. Containers that have ended by themselves are not restarted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.facts import default_of
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_static, is_terminal, is_terminating
from fairlead.api.pods.run_duration import RUN_DURATION, run_duration
from fairlead.api.pods.usage import USAGE
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.annotation import (
    READY_DELAY,
    STOP_DURATION,
    ready_delay,
    stop_duration,
)
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter, StopAfterShare
from fairlead.engine.kubelet.pod_status import (
    KILLED_EXIT_CODE,
    STARTING,
    TERMINATED_EXIT_CODE,
    is_readiness_current,
)

GRACE_DEFAULT_S: Final[int] = default_of("core.v1.PodSpec", "terminationGracePeriodSeconds")
GRACE_MIN: Final[DurationNs] = seconds(1)
# The time in which a kubelet observes that its mirror pod is being deleted, and removes it.
MIRROR_REMOVAL: Final[DurationNs] = seconds(1)
STARTABLE_PHASES: Final = ("", "Pending")
_ANNOTATIONS_READ: Final = frozenset((RUN_DURATION, READY_DELAY, STOP_DURATION, USAGE))


class Act(StrEnum):
    """An action of a kubelet on a pod."""

    ACCEPT = "accept"
    START = "start"
    READY = "ready"
    OBSERVE = "observe"
    RESTART = "restart"
    REJECT = "reject"
    END = "end"
    STOP = "stop"
    REMOVE = "remove"


class NextAct(Struct, frozen=True):
    """A kubelet's next act on a pod, and its time.

    If the act is END, `why` states why the pod ends: completed or deadline.
    """

    act: Act
    at: Instant
    why: str = ""


def next_act(
    pod: Pod,
    *,
    bound_at: Instant,
    started_at: Instant,
    terminating_at: Instant,
    config: KubeletConfig,
    ready_at: Instant | None = None,
) -> NextAct | None:
    """Return the next act of the kubelet on `pod`; None if the kubelet has nothing to do.

    `bound_at` is the time at which the kubelet observed the binding. `terminating_at` is the time
    at which the kubelet observed the deletion request, or that the pod is Failed or Succeeded.
    `started_at` is the time at which the pod began to run. `ready_at` is the time at which the pod
    becomes ready (None: never). A time that does not apply to the pod's state is ignored.
    """
    if is_terminating(pod):
        return NextAct(Act.REMOVE, removal_due(pod, terminating_at, config))
    if pod.status.phase in STARTABLE_PHASES:
        if config.accepts_pods and not pod.status.start_time:
            return NextAct(Act.ACCEPT, bound_at)
        if fails_to_start(pod) or (config.never_starts is not None and config.never_starts(pod)):
            return deadline_due(pod, bound_at, config)
        start = NextAct(Act.START, bound_at + start_delay_of(pod, config))
        return earlier(start, deadline_due(pod, bound_at, config))
    if pod.status.phase != "Running":
        if config.accepts_pods and runs_after_end(pod):
            return NextAct(Act.STOP, terminating_at + stopping_time(pod, config))
        return None
    due = earlier(end_due(pod, started_at, config), ready_due(pod, ready_at, config))
    if config.accepts_pods and not _is_observed(pod):
        return earlier(due, NextAct(Act.OBSERVE, started_at))
    return due


def _is_observed(pod: Pod) -> bool:
    """Return whether the status of `pod` describes its current spec and lists its containers.

    `pod` is running. The status of hand-written pods often lacks the list.
    """
    if pod.spec.containers and not pod.status.container_statuses:
        return False
    return pod.status.observed_generation >= pod.metadata.generation


def fails_to_start(pod: Pod) -> bool:
    """Return whether a container of `pod` failed to start and waits, as in ImagePullBackOff.

    upstream: pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go
    """
    return start_failure(pod) != ""


def start_failure(pod: Pod) -> str:
    """Return why a container of `pod` failed to start and waits, such as ImagePullBackOff.

    Returns "" if no container failed to start.
    """
    status = pod.status
    for one in (*status.init_container_statuses, *status.container_statuses):
        if one.state.waiting is not None and one.state.waiting.reason not in STARTING:
            return one.state.waiting.reason
    return ""


def is_settled(pod: Pod, config: KubeletConfig) -> bool:
    """Return whether a fast test shows that the kubelet has nothing to do for `pod`.

    `pod` is a loaded pod. If the result is False, the kubelet may still have nothing to do.
    """
    spec, status = pod.spec, pod.status
    if status.phase != "Running" or pod.metadata.deletion_timestamp:
        return False
    if spec.restart_policy != "Always" or spec.active_deadline_seconds is not None:
        return False
    if spec.readiness_gates or not _ANNOTATIONS_READ.isdisjoint(pod.metadata.annotations):
        return False
    if config.accepts_pods or (
        config.run_durations is not None and config.run_durations(pod) is not None
    ):
        return False
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def earlier(first: NextAct | None, second: NextAct | None) -> NextAct | None:
    """Return the act that is due earlier; `first` if both are due at the same time."""
    if first is None or second is None:
        return first or second
    return second if second.at < first.at else first


def ready_due(pod: Pod, ready_at: Instant | None, config: KubeletConfig) -> NextAct | None:
    """Return the kubelet's act that reports the containers of the running `pod` as ready.

    `ready_at` is the time at which the containers become ready (None: never). Returns None if
    nothing needs to be reported, or if the status has no Ready condition.
    """
    if ready_at is None or condition(pod, "Ready") is None:
        return None
    if is_readiness_current(pod, applies_readiness_gates=config.applies_readiness_gates):
        return None
    return NextAct(Act.READY, ready_at)


def runs_after_end(pod: Pod) -> bool:
    """Return whether `pod` is Failed or Succeeded, but its conditions say that it still runs.

    A kubelet never writes such a status, so a client must have changed the phase.
    """
    # upstream: pkg/kubelet/pod_workers.go:UpdatePod (a terminal phase begins the teardown)
    if not is_terminal(pod):
        return False
    sandbox = condition(pod, "PodReadyToStartContainers")
    return has_ready_containers(pod) or (sandbox is not None and sandbox.status == "True")


def end_due(pod: Pod, started_at: Instant, config: KubeletConfig) -> NextAct | None:
    """Return the act that ends `pod`, which began to run at `started_at`.

    Returns None if the pod runs until it is deleted.
    """
    completed: NextAct | None = None
    duration = run_duration(pod)
    if duration is None and RUN_DURATION not in pod.metadata.annotations:
        duration = config.input_duration if reads_to_the_end(pod) else None
        if duration is None and config.run_durations is not None:
            duration = config.run_durations(pod)
        if duration is None and pod.spec.restart_policy != "Always":
            duration = config.job_duration
    if duration is not None:
        completed = NextAct(Act.END, started_at + duration, "completed")
    return earlier(completed, deadline_due(pod, started_at, config))


def deadline_due(pod: Pod, accepted_at: Instant, config: KubeletConfig) -> NextAct | None:
    """Return the act that ends `pod` at its deadline; None if it has no deadline.

    The deadline is spec.activeDeadlineSeconds after status.startTime. If the start time is missing,
    `accepted_at` replaces it. Also returns None if `config.ignores_deadline` returns True.
    """
    # upstream: pkg/kubelet/active_deadline.go:pastActiveDeadline
    if pod.spec.active_deadline_seconds is None:
        return None
    if config.ignores_deadline is not None and config.ignores_deadline(pod):
        return None
    since = start_time(pod)
    counted_from = accepted_at if since is None else since
    return NextAct(Act.END, counted_from + seconds(pod.spec.active_deadline_seconds), "deadline")


def reads_to_the_end(pod: Pod) -> bool:
    """Return whether `pod` ends when its stdin ends, as with `kubectl run -i`."""
    spec = pod.spec
    if spec.restart_policy == "Always":
        return False
    return bool(spec.containers) and all(one.stdin_once for one in spec.containers)


def removal_due(pod: Pod, terminating_at: Instant, config: KubeletConfig) -> Instant:
    """Return the time at which the terminating `pod` is removed.

    `terminating_at` is the time at which the kubelet observed the deletion request.
    """
    if is_terminal(pod):
        return terminating_at
    if is_static(pod):
        return terminating_at + MIRROR_REMOVAL
    grace = grace_period(pod)
    if grace == 0:
        return terminating_at
    own = None if config.removal_delays is None else config.removal_delays(pod)
    if own is not None:
        return terminating_at + own
    return terminating_at + min(grace, _stop_time(pod, grace, config)) + config.removal_delay


def is_killed(pod: Pod, config: KubeletConfig) -> bool:
    """Return whether the terminating `pod` uses up its grace period, so that SIGKILL ends it."""
    # upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go:killContainer
    grace = grace_period(pod)
    own = None if config.removal_delays is None else config.removal_delays(pod)
    return (_stop_time(pod, grace, config) if own is None else own) >= grace


def stop_exit_code(pod: Pod, config: KubeletConfig) -> int:
    """Return the exit code of the containers of the terminating `pod`.

    The exit code is 143 (SIGTERM) if the pod runs and stops within its grace period. Otherwise, it
    is 137 (SIGKILL).
    """
    is_stopped = pod.status.phase == "Running" and not is_killed(pod, config)
    return TERMINATED_EXIT_CODE if is_stopped else KILLED_EXIT_CODE


def stopping_time(pod: Pod, config: KubeletConfig) -> DurationNs:
    """Return the time in ns that `pod` takes to stop when the kubelet itself stops it.

    The result is at most the grace period in the pod's spec. A grace period of less than one second
    counts as one second.
    """
    # upstream: pkg/kubelet/pod_workers.go:calculateEffectiveGracePeriod
    grace = max(GRACE_MIN, granted_grace(pod))
    return min(grace, _stop_time(pod, grace, config))


def own_stop_exit_code(pod: Pod, config: KubeletConfig) -> int:
    """Return the exit code of the containers of `pod` when the kubelet itself stops it.

    The exit code is 143 (SIGTERM) if the pod stops within the grace period in its spec. Otherwise,
    it is 137 (SIGKILL).
    """
    is_ended_by_kill = stopping_time(pod, config) >= max(GRACE_MIN, granted_grace(pod))
    return KILLED_EXIT_CODE if is_ended_by_kill else TERMINATED_EXIT_CODE


def grace_period(pod: Pod) -> DurationNs:
    """Return the grace period of the terminating `pod` in ns."""
    grace_s = pod.metadata.deletion_grace_period_seconds
    return seconds(GRACE_DEFAULT_S if grace_s is None else max(0, grace_s))


def granted_grace(pod: Pod) -> DurationNs:
    """Return the grace period in the specification of `pod`, in ns."""
    grace_s = pod.spec.termination_grace_period_seconds
    return seconds(GRACE_DEFAULT_S if grace_s is None else max(0, grace_s))


def deletion_requested_at(pod: Pod) -> Instant:
    """Return the time of the deletion request: deletionTimestamp minus the grace period."""
    return parse_timestamp(pod.metadata.deletion_timestamp) - grace_period(pod)


def is_ready(pod: Pod) -> bool:
    """Return whether the status states that `pod` is ready."""
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def has_ready_containers(pod: Pod) -> bool:
    """Return whether the status states that `pod` or all its containers are ready.

    If a node fails, the node controller sets the condition Ready of its pods to False, but not
    ContainersReady. Readiness gates do not change ContainersReady, either.
    upstream: pkg/controller/util/node/controller_utils.go:MarkPodsNotReady
    """
    if is_ready(pod):
        return True
    found = condition(pod, "ContainersReady")
    return found is not None and found.status == "True"


def start_delay_of(pod: Pod, config: KubeletConfig) -> DurationNs:
    """Return the time in ns from the binding of `pod` until it is Running."""
    own = None if config.start_delays is None else config.start_delays(pod)
    return config.start_delay if own is None else own


def ready_delay_of(pod: Pod, config: KubeletConfig) -> DurationNs:
    """Return the time in ns from the start of `pod` until it becomes ready."""
    own = ready_delay(pod)
    return config.ready_delay if own is None else own


def start_time(pod: Pod) -> Instant | None:
    """Return status.startTime; None if it is missing."""
    return parse_timestamp(pod.status.start_time) if pod.status.start_time else None


def _stop_time(pod: Pod, grace: DurationNs, config: KubeletConfig) -> DurationNs:
    own = stop_duration(pod)
    if own is not None:
        return own
    match config.stop:
        case StopAfter(duration):
            return duration
        case StopAfterShare(share):
            return round(grace * share)
