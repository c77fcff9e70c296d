"""How long tasks run, as far as anybody said so.

A pod says it with the annotation `fairlead.dev/run-duration` (which traces are turned into) or with
spec.activeDeadlineSeconds, after which it is ended. Who says nothing may run for ever.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import parse_duration
from fairlead.core.instant import DurationNs, Instant, seconds
from fairlead.state.pod_info import NEVER_STARTED, PodInfo

RUN_DURATION: Final = "fairlead.dev/run-duration"


def runtime_of(pod: PodInfo) -> DurationNs | None:
    """The longest that `pod` runs once it is started; None if nobody knows."""
    known = [d for d in (_said(pod), _deadline(pod)) if d is not None]
    return min(known, default=None)


def _said(pod: PodInfo) -> DurationNs | None:
    text = pod.pod.metadata.annotations.get(RUN_DURATION)
    if text is None:
        return None
    try:
        duration = parse_duration(text)
    except ValueError:
        return None  # the simulated kubelets say what is wrong with it
    return duration if duration >= 0 else None


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
