"""Readiness: a running pod is ready when its containers are and all readiness gates are true.

Gates are conditions that other controllers write; the kubelet checks again when one changes. A
simulation has no such controllers, so gates are ignored there.

upstream: pkg/kubelet/status/generate.go:GeneratePodReadyCondition
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.engine.core.command import Condition

GATES_NOT_READY: Final = "ReadinessGatesNotReady"
Readiness = tuple[Condition, ...]

_CONTAINERS_READY: Final = Condition("ContainersReady", "True")


def readiness(pod: Pod, *, heeds_gates: bool) -> Readiness:
    """The readiness conditions of `pod` when all its containers are ready."""
    closed = ", ".join(_closed_gates(pod)) if heeds_gates else ""
    ready = Condition("Ready", "True")
    if closed:
        ready = Condition("Ready", "False", GATES_NOT_READY, closed)
    return ready, _CONTAINERS_READY


def says_ready(pod: Pod, *, heeds_gates: bool) -> bool:
    """Whether the status of `pod` has these conditions already."""
    ready, containers = condition(pod, "Ready"), condition(pod, "ContainersReady")
    wanted = readiness(pod, heeds_gates=heeds_gates)[0]
    if ready is None or ready.status != wanted.status:
        return False
    if wanted.status == "True":
        return True
    has_containers = containers is not None and containers.status == "True"
    return has_containers and ready.message == wanted.message


def is_held_by_gates(pod: Pod) -> bool:
    """Whether only readiness gates keep `pod` from being ready."""
    containers = condition(pod, "ContainersReady")
    is_up = containers is not None and containers.status == "True"
    return is_up and bool(pod.spec.readiness_gates)


def _closed_gates(pod: Pod) -> Iterator[str]:
    for gate in pod.spec.readiness_gates:
        found, name = condition(pod, gate.condition_type), gate.condition_type
        if found is None:
            yield f'corresponding condition of pod readiness gate "{name}" does not exist.'
        elif found.status != "True":
            yield f'the status of pod readiness gate "{name}" is not "True", but {found.status}'
