"""The four node conditions that kubelets post, with upstream's reasons and messages.

upstream: pkg/kubelet/nodestatus/setters.go:ReadyCondition, MemoryPressureCondition,
DiskPressureCondition, PIDPressureCondition
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.api.nodes.kubelet_behaviour import SIMULATED_RUNTIME, Report
from fairlead.api.nodes.readiness import READY, UNKNOWN, is_starting
from fairlead.api.objects import Node
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    PatchStatus,
    RecordEvent,
    node_ref,
)
from fairlead.engine.core.instant import Instant

HEALTHY: Final[Mapping[str, Condition]] = {
    one.type: one
    for one in (
        Condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        Condition(
            "DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"
        ),
        Condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        Condition(READY, "True", "KubeletReady", "kubelet is posting ready status"),
    )
}
REPORTED: Final[Mapping[Report, Condition]] = {
    Report.READY: HEALTHY[READY],
    Report.NOT_READY: Condition(READY, "False", "KubeletNotReady", "container runtime is down"),
    Report.MEMORY_PRESSURE: Condition(
        "MemoryPressure",
        "True",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
    ),
    Report.DISK_PRESSURE: Condition(
        "DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure"
    ),
    Report.PID_PRESSURE: Condition(
        "PIDPressure",
        "True",
        "KubeletHasInsufficientPID",
        "kubelet has insufficient PID available",
    ),
}

# The reason of the event that the kubelet records when a condition changes to this status.
EVENT_REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("MemoryPressure", "False"): "NodeHasSufficientMemory",
    ("MemoryPressure", "True"): "NodeHasInsufficientMemory",
    ("DiskPressure", "False"): "NodeHasNoDiskPressure",
    ("DiskPressure", "True"): "NodeHasDiskPressure",
    ("PIDPressure", "False"): "NodeHasSufficientPID",
    ("PIDPressure", "True"): "NodeHasInsufficientPID",
    (READY, "True"): "NodeReady",
    (READY, "False"): "NodeNotReady",
}
REPORTING_CONTROLLER: Final = "kubelet"

Conditions = Mapping[str, Condition]


def found_conditions(node: Node, stated: Iterable[Report]) -> Conditions:
    """Return the conditions that the kubelet of a new or loaded node posts by default.

    By default, a kubelet posts the conditions in the node's status, but some are replaced by
    healthy conditions:

    - missing and Unknown conditions
    - the Ready condition of a starting node
    - the conditions in `stated`, because they come from an annotation that a client may remove
    - all conditions of a node that Fairlead created, because their unhealthy values come only from
      the annotation or from the measured usage of pods
    """
    conditions = dict(HEALTHY)
    if node.status.node_info.container_runtime_version == SIMULATED_RUNTIME:
        return conditions
    passing = {REPORTED[one].type for one in stated} | ({READY} if is_starting(node) else set())
    for kind in HEALTHY:
        found = condition(node, kind)
        if kind in passing:
            continue
        if found is not None and found.status != UNKNOWN:
            conditions[kind] = Condition(kind, found.status, found.reason, found.message)
    return conditions


def with_reports(conditions: Conditions, reports: Iterable[Report]) -> Conditions:
    """Return `conditions`, where the conditions in `reports` replace those of the same type."""
    return {**conditions, **{REPORTED[one].type: REPORTED[one] for one in reports}}


def needs_post(node: Node, conditions: Conditions) -> bool:
    """Return whether the conditions of `node` differ in status from `conditions`.

    A pressure condition that is missing on `node` counts as False.
    """
    for kind, wanted in conditions.items():
        found = condition(node, kind)
        if found is None and (kind == READY or wanted.status != HEALTHY[kind].status):
            return True
        if found is not None and found.status != wanted.status:
            return True
    return False


def post(node: Node, conditions: Conditions, now: Instant) -> list[Command]:
    """Return the commands that post `conditions` with `now` as the heartbeat time.

    The result also contains an event for each condition of `node` whose status changes, if
    EVENT_REASONS has a reason for the new status. The first status of a new condition causes no
    event.
    """
    # upstream: pkg/kubelet/kubelet_node_status.go:recordNodeStatusEvent
    commands: list[Command] = []
    for kind, wanted in conditions.items():
        found, reason = condition(node, kind), EVENT_REASONS.get((kind, wanted.status), "")
        if found is None or found.status == wanted.status or not reason:
            continue
        note = f"Node {node.metadata.name} status is now: {reason}"
        event = RecordEvent(node_ref(node), "Normal", reason, "", note, REPORTING_CONTROLLER)
        commands.append(event)
    stamp = format_timestamp(now)
    posted = tuple(
        Condition(one.type, one.status, one.reason, one.message, stamp)
        for one in conditions.values()
    )
    return [*commands, PatchStatus(node_ref(node), conditions=posted)]
