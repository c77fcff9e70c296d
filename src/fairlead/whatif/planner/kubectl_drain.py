"""Sentences about the flags that `kubectl drain` needs for some nodes, and what they lose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.change.kubectl_drain import (
    DELETE_EMPTY_DIR,
    FORCE,
    IGNORE_DAEMON_SETS,
    flags_for,
)
from fairlead.whatif.planner.answer import counted, listed


def needed_flags(pods: Iterable[PodInfo]) -> dict[str, list[str]]:
    """Return the pods that make each flag necessary, by flag."""
    found: dict[str, list[str]] = {IGNORE_DAEMON_SETS: [], DELETE_EMPTY_DIR: [], FORCE: []}
    for pod in pods:
        for flag in flags_for(pod.pod):
            found[flag].append(pod.key)
    return {flag: names for flag, names in found.items() if names}


def flag_findings(flags: dict[str, list[str]]) -> Iterator[str]:
    """Yield a sentence on the flags that are needed, and one on what those flags lose."""
    if flags:
        parts = (f"{flag} ({counted(len(pods), 'pod')})" for flag, pods in flags.items())
        yield f"kubectl drain needs {', '.join(parts)}."
    if lost := flags.get(FORCE):
        verb = "has" if len(lost) == 1 else "have"
        yield f"{listed(lost)} {verb} no controller and will be gone for good."
