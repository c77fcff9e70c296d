"""Annotations of pods that set durations for simulated kubelets.

    fairlead.dev/run-duration     the time for which the pod runs before it succeeds, or `forever`
    fairlead.dev/ready-delay      the time from the start of the pod until it is ready
    fairlead.dev/stop-duration    the time that the pod takes to stop

Times are Go durations. `fairlead.api.nodes.kubelet_behaviour` documents the annotation
`fairlead.dev/kubelet` of nodes.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.run_duration import FOREVER, RUN_DURATION
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.instant import DurationNs

STOP_DURATION: Final = "fairlead.dev/stop-duration"
READY_DELAY: Final = "fairlead.dev/ready-delay"
_DURATIONS: Final = (RUN_DURATION, READY_DELAY, STOP_DURATION)


def stop_duration(pod: Pod) -> DurationNs | None:
    """Return the time in ns that `pod` takes to stop; None if the configuration determines it."""
    return _duration(pod, STOP_DURATION)


def ready_delay(pod: Pod) -> DurationNs | None:
    """Return the time in ns from the pod's start until it is ready, as the annotation states it.

    Returns None if the annotation is missing or invalid; then the configuration states the time.
    """
    return _duration(pod, READY_DELAY)


def annotation_problems(pod: Pod) -> tuple[str, ...]:
    """Return the problems of the pod's annotations.

    Each problem is a text for users. Invalid annotations are ignored, with one exception. A pod
    with an invalid run duration runs forever, whatever the configuration says.
    """
    annotations = pod.metadata.annotations
    if annotations.keys().isdisjoint(_DURATIONS):
        return ()
    return tuple(
        f"metadata.annotations[{key}]: {problem}"
        for key in _DURATIONS
        if (problem := _problem(annotations.get(key)))
        if (key, annotations[key]) != (RUN_DURATION, FOREVER)
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
