"""The annotation `fairlead.dev/run-duration`: the time for which a pod runs."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_duration

RUN_DURATION: Final = "fairlead.dev/run-duration"
FOREVER: Final = "forever"


def run_duration(pod: Pod) -> int | None:
    """Return the time in ns from the pod's start to its success, as the pod's annotation states.

    The annotation `fairlead.dev/run-duration` is a Go duration or `forever`. Returns None for
    `forever`, and if the annotation is absent or invalid.
    """
    text = pod.metadata.annotations.get(RUN_DURATION)
    if text is None or text == FOREVER:
        return None
    try:
        duration = parse_duration(text)
    except ValueError:
        return None  # the simulated kubelets report an invalid annotation
    return duration if duration >= 0 else None
