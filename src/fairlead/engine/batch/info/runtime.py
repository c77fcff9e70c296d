"""How long tasks run, as far as anybody said so.

A pod says it with the annotation `fairlead.dev/run-duration` (which traces are turned into) or with
spec.activeDeadlineSeconds, after which it is ended. Who says nothing may run for ever.
"""

from __future__ import annotations

from fairlead.api.pods.run_duration import run_duration
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.state.pod_info import NEVER_STARTED, PodInfo


def runtime_of(pod: PodInfo) -> DurationNs | None:
    """The longest that `pod` runs once it is started; None if nobody knows."""
    known = [d for d in (run_duration(pod.pod), _deadline(pod)) if d is not None]
    return min(known, default=None)


def _deadline(pod: PodInfo) -> DurationNs | None:
    allowed = pod.pod.spec.active_deadline_seconds
    return None if allowed is None else seconds(allowed)


def expected_end(pod: PodInfo, now: Instant) -> Instant | None:
    """When a placed pod will be gone; one that has not started yet counts from now."""
    runtime = runtime_of(pod)
    if runtime is None:
        return None
    started = now if pod.start == NEVER_STARTED else pod.start
    return max(started + runtime, now)
