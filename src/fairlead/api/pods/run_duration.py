"""How long a pod says that it runs: the annotation `fairlead.dev/run-duration`, as Go writes it."""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_duration

RUN_DURATION: Final = "fairlead.dev/run-duration"


def run_duration(pod: Pod) -> int | None:
    """Nanoseconds from its start until it succeeds; None where nothing, or nonsense, is said."""
    text = pod.metadata.annotations.get(RUN_DURATION)
    if text is None:
        return None
    try:
        duration = parse_duration(text)
    except ValueError:
        return None  # the simulated kubelets say what is wrong with it
    return duration if duration >= 0 else None
