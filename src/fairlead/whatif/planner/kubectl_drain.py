"""Which flags `kubectl drain` needs for some nodes, and which pods make them necessary.

upstream: staging/src/k8s.io/kubectl/pkg/drain/filters.go: daemonSetFilter, localStorageFilter,
unreplicatedFilter
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.pods.facts import controller_of, is_daemon_pod, is_static, is_terminal
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.answer import counted, listed

IGNORE_DAEMON_SETS: Final = "--ignore-daemonsets"
DELETE_LOCAL_DATA: Final = "--delete-emptydir-data"
FORCE: Final = "--force"


def needed_flags(pods: Iterable[PodInfo]) -> dict[str, list[str]]:
    """Return the pods that make each flag necessary, by flag."""
    found: dict[str, list[str]] = {IGNORE_DAEMON_SETS: [], DELETE_LOCAL_DATA: [], FORCE: []}
    for pod in pods:
        if is_static(pod.pod) or is_terminal(pod.pod):
            continue
        if is_daemon_pod(pod.pod):
            found[IGNORE_DAEMON_SETS].append(pod.key)
            continue
        if any(volume.empty_dir is not None for volume in pod.pod.spec.volumes):
            found[DELETE_LOCAL_DATA].append(pod.key)
        if controller_of(pod.pod.metadata) is None:
            found[FORCE].append(pod.key)
    return {flag: names for flag, names in found.items() if names}


def flag_findings(flags: dict[str, list[str]]) -> Iterator[str]:
    """Yield a sentence on the flags that are needed, and one on what those flags lose."""
    if flags:
        parts = (f"{flag} ({counted(len(pods), 'pod')})" for flag, pods in flags.items())
        yield f"kubectl drain needs {', '.join(parts)}."
    if lost := flags.get(FORCE):
        verb = "has" if len(lost) == 1 else "have"
        yield f"{listed(lost)} {verb} no controller and will be gone for good."
