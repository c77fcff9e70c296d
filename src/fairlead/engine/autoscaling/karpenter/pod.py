"""Predicates for pods: whether Karpenter creates nodes for a pod, moves it, or is blocked by it.

upstream: pkg/utils/pod/scheduling.go
"""

from __future__ import annotations

from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.nodes.taint import tolerates
from fairlead.api.objects import Pod, Taint
from fairlead.api.pods.facts import (
    MIRROR_ANNOTATION,
    condition,
    is_terminal,
    is_terminating,
)
from fairlead.api.timestamp import parse_duration, parse_timestamp
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT
from fairlead.engine.core.instant import DurationNs, Instant

_DISRUPTED = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")


def is_provisionable(pod: Pod) -> bool:
    """Return whether Karpenter creates a node for the pod.

    The pod must be marked as unschedulable, and be neither bound nor nominated to a node. Pods that
    are owned by a DaemonSet or a Node are excluded.
    """
    return (
        is_unschedulable(pod) and not is_owned_by(pod, "DaemonSet") and not is_owned_by(pod, "Node")
    )


def is_unschedulable(pod: Pod) -> bool:
    """Return whether the scheduler found no node for the pod, and nominated none."""
    found = condition(pod, "PodScheduled")
    return (
        found is not None
        and found.reason == "Unschedulable"
        and not pod.spec.node_name
        and not pod.status.nominated_node_name
    )


def is_owned_by(pod: Pod, kind: str) -> bool:
    """Return whether any owner of the pod is of `kind`."""
    return any(owner.kind == kind for owner in pod.metadata.owner_references)


def is_active(pod: Pod) -> bool:
    """Return whether the pod is neither terminated nor terminating."""
    return not is_terminal(pod) and not is_terminating(pod)


def is_reschedulable(pod: Pod) -> bool:
    """Return whether the pod must be rescheduled when its node is removed."""
    moves = is_active(pod) or (is_owned_by(pod, "StatefulSet") and is_terminating(pod))
    return moves and not is_owned_by(pod, "DaemonSet") and not is_owned_by(pod, "Node")


def has_do_not_disrupt(pod: Pod, now: Instant) -> bool:
    """Return whether the annotation `do-not-disrupt` protects the pod at `now`.

    The value `true` always protects the pod. A positive duration protects the pod until this
    duration has passed since the start of the pod. Any other value does not protect the pod.
    """
    text = pod.metadata.annotations.get(DO_NOT_DISRUPT)
    if text is None:
        return False
    if text == "true":
        return True
    duration = _positive_duration(text)
    if duration is None:
        return False
    start = pod.status.start_time
    return not start or now < parse_timestamp(start) + duration


def do_not_disrupt_ends(pod: Pod) -> Instant | None:
    """Return the time at which the annotation `do-not-disrupt` stops protecting the pod.

    Returns None if the annotation does not state a duration, or the pod has not started.
    """
    duration = _positive_duration(pod.metadata.annotations.get(DO_NOT_DISRUPT, ""))
    start = pod.status.start_time
    return None if duration is None or not start else parse_timestamp(start) + duration


def _positive_duration(text: str) -> DurationNs | None:
    try:
        duration = parse_duration(text)
    except ValueError:
        return None
    return duration if duration > 0 else None


def is_disruptable(pod: Pod, now: Instant) -> bool:
    """Return False if the pod's annotation `do-not-disrupt` blocks the disruption of its node."""
    return not (is_active(pod) and has_do_not_disrupt(pod, now))


def is_evictable(pod: Pod, now: Instant) -> bool:
    """Return whether a drain would evict the pod. If so, disruption budgets apply to the pod."""
    return (
        is_active(pod)
        and not tolerates_disruption(pod)
        and not is_mirror(pod)
        and not has_do_not_disrupt(pod, now)
    )


def tolerates_disruption(pod: Pod) -> bool:
    """Return whether the pod tolerates the disruption taint, so that a drain does not evict it."""
    return any(tolerates(one, _DISRUPTED) for one in pod.spec.tolerations)


def must_leave(pod: Pod) -> bool:
    """Return whether the removal of the pod's node normally waits until the pod is gone.

    This function ignores one exception: the module `termination` does not wait for pods that should
    have ended more than a minute ago.
    """
    # upstream: pkg/utils/pod/scheduling.go:IsWaitingEviction
    return not (is_terminal(pod) or is_mirror(pod) or tolerates_disruption(pod))


def is_mirror(pod: Pod) -> bool:
    """Return whether the pod is the mirror of a static pod, or is owned by a Node."""
    return is_owned_by(pod, "Node") or MIRROR_ANNOTATION in pod.metadata.annotations


def has_required_anti_affinity(pod: Pod) -> bool:
    """Return whether the pod has required anti-affinity to other pods."""
    affinity = pod.spec.affinity
    return (
        affinity is not None
        and affinity.pod_anti_affinity is not None
        and bool(affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution)
    )


def has_resource_claims(pod: Pod) -> bool:
    """Return whether a container uses a ResourceClaim."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(one.resources.claims for one in containers)
