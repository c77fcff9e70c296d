"""Termination: drains the nodes of NodeClaims that are being deleted, then removes these nodes.

Pods are evicted within their disruption budgets, in four groups: ordinary pods, ordinary DaemonSet
pods, critical pods, critical DaemonSet pods. A group waits until the pods of the groups before it
are gone. Pods with the annotation `do-not-disrupt` are not evicted. The drain waits until these
pods are gone. If the NodeClaim has a termination grace period, each remaining pod is deleted early
enough to stop before this period ends. The pod's group, budgets and annotations then do not matter.

A drain ignores terminated pods, mirror pods, and pods that tolerate the disruption taint. A drain
also ignores pods that should have ended more than a minute ago.

upstream: pkg/controllers/node/termination/{controller,terminator/terminator}.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.facts import default_of
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration, parse_timestamp
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.pod import has_do_not_disrupt, is_owned_by
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.command import Command, DeleteObject, EvictPod, pod_ref
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import KARPENTER_DEADLINE, KARPENTER_DRAIN

RETRY_NS: Final[DurationNs] = seconds(5)
_STUCK_NS: Final[DurationNs] = seconds(60)
_CRITICAL: Final = ("system-cluster-critical", "system-node-critical")
_DEFAULT_GRACE_S: Final[int] = default_of("core.v1.PodSpec", "terminationGracePeriodSeconds")


class DrainStep(Struct, frozen=True):
    """The next commands of a drain. `remains` is False if the drain is complete."""

    commands: tuple[Command, ...]
    remains: bool


def drain_step(claim: NodeClaim, on_node: PodsOnNode, now: Instant) -> DrainStep:
    """Return the next step of a drain: the evictions of the first group that still has pods.

    Pods that are protected by `do-not-disrupt` are not evicted. The step also deletes each pod, of
    any group, that could otherwise run past the NodeClaim's deadline.
    """
    # upstream: terminator.go:Drain
    waiting = [pod for pod in on_node.leaving if not _is_stuck(pod, now)]
    if not waiting:
        return DrainStep((), remains=False)
    deadline = _deadline(claim)
    overdue = [] if deadline is None else [one for one in waiting if _is_late(one, deadline, now)]
    commands: list[Command] = [_forced_deletion(pod, deadline or now, now) for pod in overdue]
    first, forced = min(map(_group, waiting)), {pod.key for pod in overdue}
    commands += [
        EvictPod(pod_ref(pod), why=KARPENTER_DRAIN)
        for pod in waiting
        if _group(pod) == first
        and pod.key not in forced
        and not is_terminating(pod)
        and not has_do_not_disrupt(pod, now)
    ]
    return DrainStep(tuple(commands), remains=True)


def _group(pod: Pod) -> tuple[bool, bool]:
    """Return the pod's eviction group: whether it is critical, and whether a DaemonSet owns it.

    The groups are evicted in ascending order.
    """
    # upstream: terminator.go:groupPodsByPriority
    return pod.spec.priority_class_name in _CRITICAL, is_owned_by(pod, "DaemonSet")


def _is_stuck(pod: Pod, now: Instant) -> bool:
    """Return whether the pod should have ended more than a minute ago."""
    # upstream: pkg/utils/pod/scheduling.go:IsStuckTerminating
    ends = pod.metadata.deletion_timestamp
    return bool(ends) and now - parse_timestamp(ends) > _STUCK_NS


def _is_late(pod: Pod, deadline: Instant, now: Instant) -> bool:
    """Return whether the time until `deadline` is at most the pod's grace period.

    The result is False if the pod is terminating and will end by `deadline`.
    """
    # upstream: terminator.go:podDeleteTimeWithGracePeriod, IsPodEligibleForForcedEviction
    if now < deadline - _grace(pod):
        return False
    ends = pod.metadata.deletion_timestamp
    return not ends or parse_timestamp(ends) > deadline


def _forced_deletion(pod: Pod, deadline: Instant, now: Instant) -> DeleteObject:
    """Return a command that deletes the pod; the grace period is the time until `deadline`."""
    left = (deadline - now) // NANOSECONDS_PER_SECOND
    # The API server reads a negative grace period as one second.
    grace = left if left >= 0 else 1
    return DeleteObject(pod_ref(pod), grace_period_s=grace, why=KARPENTER_DEADLINE)


def _deadline(claim: NodeClaim) -> Instant | None:
    period = claim.spec.termination_grace_period
    if period is None or not claim.metadata.deletion_timestamp:
        return None
    return parse_timestamp(claim.metadata.deletion_timestamp) + parse_duration(period)


def _grace(pod: Pod) -> DurationNs:
    grace = pod.spec.termination_grace_period_seconds
    return seconds(_DEFAULT_GRACE_S if grace is None else grace)
