"""The table row of a pod, with the word that kubectl shows as the pod's status.

upstream: pkg/printers/internalversion/printers.go:printPod
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json, at, items, name_of, number, text
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.printers.age import age_of, human_duration
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import NONE, has_condition

_NODE_LOST: Final = "NodeLost"
_TERMINAL_PHASES: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Tally(Struct):
    """Counts of a pod's containers, and the word (`reason`) that describes the pod's status."""

    reason: str
    containers: int
    ready: int = 0
    restarts: int = 0
    restarted_at: int = 0
    sidecars: frozenset[str] = field(default_factory=frozenset)

    def count(self, status: Json) -> None:
        """Add the restarts in `status`, the status of one container."""
        self.restarts += number(status, "restartCount")
        finished = at(status, "lastState", "terminated", "finishedAt")
        if finished:
            self.restarted_at = max(self.restarted_at, parse_timestamp(finished))


def _cells(pod: Json, now: int) -> list[Cell]:
    tally = _tally(pod)
    return [
        name_of(pod),
        f"{tally.ready}/{tally.containers}",
        tally.reason,
        _restarts(tally, now),
        age_of(pod, now),
        next((text(ip, "ip") for ip in items(pod, "status", "podIPs")), "") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(pod, "status", "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def _conditions(pod: Json) -> list[Json]:
    """Return a list with the row condition `Completed` for a terminated pod, otherwise []."""
    phase = text(pod, "status", "phase")
    if phase not in _TERMINAL_PHASES:
        return []
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": phase,
        "message": _TERMINAL_PHASES[phase],
    }
    return [condition]


POD: Final = printer(
    # One column for each cell of `_cells`, in its order. `*` marks the columns of `-o wide`; `/`
    # precedes the format of a column (`column.printer`).
    "Name/name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
    _cells,
    conditions=_conditions,
)


def status_word(pod: Json) -> str:
    """Return the word that kubectl shows as the status of `pod`, such as CrashLoopBackOff."""
    return _tally(pod).reason


def _tally(pod: Json) -> _Tally:
    sidecars = frozenset(
        text(container, "name")
        for container in items(pod, "spec", "initContainers")
        if container.get("restartPolicy") == "Always"
    )
    containers = len(items(pod, "spec", "containers")) + len(sidecars)
    tally = _Tally(_reason(pod), containers, sidecars=sidecars)
    is_initializing = _count_init_containers(pod, tally)
    if not is_initializing or has_condition(pod, "Initialized"):
        _recount_sidecars(pod, tally)
        _count_containers(pod, tally)
    if at(pod, "metadata", "deletionTimestamp"):
        tally.reason = _reason_when_deleted(pod, tally.reason)
    return tally


def _reason(pod: Json) -> str:
    for condition in items(pod, "status", "conditions"):
        if (condition.get("type"), condition.get("reason")) == ("PodScheduled", "SchedulingGated"):
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _reason_when_deleted(pod: Json, reason: str) -> str:
    if text(pod, "status", "reason") == _NODE_LOST:
        return "Unknown"
    return reason if text(pod, "status", "phase") in _TERMINAL_PHASES else "Terminating"


def _count_init_containers(pod: Json, tally: _Tally) -> bool:
    """Count the init containers up to and including the first one that blocks the pod's start.

    An init container blocks the start unless it has succeeded or is a started sidecar. The first
    blocking container sets the status word. Return whether an init container blocks the start.
    """
    total = len(items(pod, "spec", "initContainers"))
    for index, status in enumerate(items(pod, "status", "initContainerStatuses")):
        tally.count(status)
        terminated = at(status, "state", "terminated")
        waiting = text(status, "state", "waiting", "reason")
        if terminated is not None and number(terminated, "exitCode") == 0:
            continue
        if status.get("name") in tally.sidecars and status.get("started"):
            tally.ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            tally.reason = f"Init:{_outcome(terminated)}"
        elif waiting and waiting != "PodInitializing":
            tally.reason = f"Init:{waiting}"
        else:
            tally.reason = f"Init:{index}/{total}"
        return True
    return False


def _outcome(terminated: Json) -> str:
    """Return the reason, signal or exit code with which a container terminated."""
    if terminated.get("reason"):
        return text(terminated, "reason")
    if number(terminated, "signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _recount_sidecars(pod: Json, tally: _Tally) -> None:
    """Set the restarts in `tally` to the restarts of the sidecars."""
    tally.restarts, tally.restarted_at = 0, 0
    for status in items(pod, "status", "initContainerStatuses"):
        if status.get("name") in tally.sidecars:
            tally.count(status)


def _count_containers(pod: Json, tally: _Tally) -> None:
    """Add the pod's containers to `tally`, and set `tally.reason`, the text of the column STATUS.

    The first container that waits or has terminated determines the reason. After that, only the
    reason `Completed` is replaced. If a container is running and ready, `Running` or `NotReady`
    replaces `Completed`, depending on the pod's condition Ready. Otherwise, the outcome of the
    first failed container replaces `Completed`, if there is such a container.
    """
    has_running, failure = False, ""
    for status in reversed(items(pod, "status", "containerStatuses")):
        tally.count(status)
        waiting = text(status, "state", "waiting", "reason")
        terminated = at(status, "state", "terminated")
        if waiting:
            tally.reason = waiting
        elif terminated is not None:
            tally.reason = _outcome(terminated)
            failure = tally.reason if number(terminated, "exitCode") else failure
        elif status.get("ready") and at(status, "state", "running") is not None:
            has_running = True
            tally.ready += 1
    if tally.reason == "Completed" and has_running:
        tally.reason = "Running" if has_condition(pod, "Ready") else "NotReady"
    elif tally.reason == "Completed" and failure:
        tally.reason = failure


def _restarts(tally: _Tally, now: int) -> str:
    if tally.restarts and tally.restarted_at:
        return f"{tally.restarts} ({human_duration(now - tally.restarted_at)} ago)"
    return str(tally.restarts)


def _readiness_gates(pod: Json) -> str:
    gates = [text(gate, "conditionType") for gate in items(pod, "spec", "readinessGates")]
    if not gates:
        return NONE
    return f"{sum(has_condition(pod, gate) for gate in gates)}/{len(gates)}"
