"""The run times that the pods of tasks declare.

A pod declares its run time by the annotation `fairlead.dev/run-duration` (set when traces are
converted) or by spec.activeDeadlineSeconds. A pod that declares no run time may run forever.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.run_duration import run_duration
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.state.pod_info import NEVER_STARTED, PodInfo

# Controllers of these kinds replace a pod that ends. Static pods have a Node as controller.
_KEEPING_PODS: Final = ("DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet")


def never_ends(pod: PodInfo) -> bool:
    """Return whether `pod` declares no run time, and its controller replaces it when it ends."""
    owner = controller_of(pod.pod.metadata)
    return owner is not None and owner.kind in _KEEPING_PODS and runtime_of(pod) is None


def runtime_of(pod: PodInfo) -> DurationNs | None:
    """Return the maximum run time of `pod` (ns), or None if the pod declares no run time.

    If the pod declares two run times, the shorter one counts.
    """
    known = [d for d in (run_duration(pod.pod), _deadline(pod)) if d is not None]
    return min(known, default=None)


def _deadline(pod: PodInfo) -> DurationNs | None:
    allowed = pod.pod.spec.active_deadline_seconds
    return None if allowed is None else seconds(allowed)


def expected_end(pod: PodInfo, now: Instant) -> Instant | None:
    """Return the time at which a placed pod will end, or None if its run time is unknown.

    If the pod has not started yet, its run time begins at `now`.
    """
    runtime = runtime_of(pod)
    if runtime is None:
        return None
    started = now if pod.start == NEVER_STARTED else pod.start
    return max(started + runtime, now)
