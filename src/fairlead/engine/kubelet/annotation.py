"""What people tell the simulated kubelets through annotations.

On a Pod, `fairlead.dev/run-duration` is how long it runs before it succeeds,
`fairlead.dev/ready-delay` how long after its start it becomes ready, and
`fairlead.dev/stop-duration` how long it takes to stop when asked; all as Go writes durations.
What `fairlead.dev/kubelet` on a Node means stands in `fairlead.api.kubelet_behaviour`.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.instant import DurationNs

STOP_DURATION: Final = "fairlead.dev/stop-duration"
READY_DELAY: Final = "fairlead.dev/ready-delay"


def stop_duration(pod: Pod) -> DurationNs | None:
    """How long the pod takes to stop; None when the configuration says it."""
    return _duration(pod, STOP_DURATION)


def ready_delay(pod: Pod) -> DurationNs | None:
    """How long after its start the pod becomes ready; None when the configuration says it."""
    return _duration(pod, READY_DELAY)


def annotation_problems(pod: Pod) -> tuple[str, ...]:
    """What is wrong with the pod's annotations; such an annotation counts as absent."""
    return tuple(
        f"metadata.annotations[{key}]: {problem}"
        for key in (RUN_DURATION, READY_DELAY, STOP_DURATION)
        if (problem := _problem(pod.metadata.annotations.get(key)))
    )


def _duration(pod: Pod, key: str) -> DurationNs | None:
    text = pod.metadata.annotations.get(key)
    return None if text is None or _problem(text) else parse_duration(text)


def _problem(text: str | None) -> str:
    if text is None:
        return ""
    try:
        return f"{text!r} is negative" if parse_duration(text) < 0 else ""
    except ValueError as cause:
        return str(cause)
