"""Predicates for the kinds of pods that the autoscaler's rules distinguish.

upstream: utils/pod/pod.go, utils/drain/drain.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.facts import default_of
from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import MIRROR_ANNOTATION, SOURCE_ANNOTATION, SOURCE_API, controller_of
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant, seconds

ANNOTATION_PREFIX: Final = "cluster-autoscaler.kubernetes.io/"
_DAEMON_SET_POD: Final = f"{ANNOTATION_PREFIX}daemonset-pod"
_DEFAULT_GRACE_S: Final[int] = default_of("core.v1.PodSpec", "terminationGracePeriodSeconds")
_EXTRA_GRACE_S: Final = 30


def controller(pod: Pod) -> OwnerReference | None:
    """Return the controlling owner reference of `pod`; None if no owner controls it."""
    return controller_of(pod.metadata)


def is_daemon_set_pod(pod: Pod) -> bool:
    """Return whether a DaemonSet controls the pod, or an annotation marks it as a DaemonSet pod."""
    owner = controller(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(_DAEMON_SET_POD) == "true"


def is_mirror_pod(pod: Pod) -> bool:
    """Return True if the pod is the mirror of a static pod."""
    return MIRROR_ANNOTATION in pod.metadata.annotations


def is_recreatable(pod: Pod) -> bool:
    """Return whether the pod is neither a static pod nor a mirror pod nor a DaemonSet pod.

    Upstream assumes that a recreatable pod is created again on another node.
    """
    source = pod.metadata.annotations.get(SOURCE_ANNOTATION, SOURCE_API)
    return source == SOURCE_API and not is_mirror_pod(pod) and not is_daemon_set_pod(pod)


def is_long_terminating(pod: Pod, now: Instant) -> bool:
    """Return whether deletionTimestamp plus the grace period plus 30 s is in the past.

    upstream: utils/drain/drain.go: IsPodLongTerminating
    """
    deleted = pod.metadata.deletion_timestamp
    if not deleted:
        return False
    grace = pod.spec.termination_grace_period_seconds
    grace_s = _DEFAULT_GRACE_S if grace is None else grace
    return parse_timestamp(deleted) + seconds(grace_s + _EXTRA_GRACE_S) < now


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Return True if the pod's priority is set and below `cutoff`."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff


def created_at(pod: Pod) -> Instant:
    """Return the time of creation of `pod`; 0 if it has no creationTimestamp."""
    text = pod.metadata.creation_timestamp
    return parse_timestamp(text) if text else 0
