"""The order in which objects arrive that a change creates or changes at one instant.

A cluster handles them in an order that depends on timing, and that order can decide which pods get
the last room. A simulation handles them in the order of their steps, so another order of the steps
is another possible outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from fairlead.engine.core.command import CreateObject, PatchObject
from fairlead.whatif.change.step import ScriptedStep

_WITH_PODS: Final = frozenset(
    {
        "Pod", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job",
        "PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.incubator.k8s.io", "PodGroup",
    }
)  # fmt: skip


def arriving_together(steps: Sequence[ScriptedStep]) -> list[list[int]]:
    """Return the positions of the steps that bring pods, grouped by their instant.

    Groups of a single step are left out, as they have one order only.
    """
    by_instant: dict[int, list[int]] = defaultdict(list)
    for at, step in enumerate(steps):
        if any(_brings_pods(command) for command in step.commands):
            by_instant[step.after].append(at)
    return [group for group in by_instant.values() if len(group) > 1]


def rearranged(
    steps: Sequence[ScriptedStep], order: Callable[[list[int]], Sequence[int]]
) -> tuple[ScriptedStep, ...]:
    """Return `steps` with those that arrive together in the `order` of their positions."""
    arranged = list(steps)
    for group in arriving_together(steps):
        for at, origin in zip(group, order(group), strict=True):
            arranged[at] = steps[origin]
    return tuple(arranged)


def _brings_pods(command: object) -> bool:
    return isinstance(command, CreateObject | PatchObject) and command.target.kind in _WITH_PODS
