"""The annotation `fairlead.dev/run-duration`: how long a pod runs, as a Go duration."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_duration

RUN_DURATION: Final = "fairlead.dev/run-duration"


def run_duration(pod: Pod) -> int | None:
    """Nanoseconds from start to success; None if the annotation is missing or invalid."""
    text = pod.metadata.annotations.get(RUN_DURATION)
    if text is None:
        return None
    try:
        duration = parse_duration(text)
    except ValueError:
        return None  # the simulated kubelets report what is wrong with it
    return duration if duration >= 0 else None
