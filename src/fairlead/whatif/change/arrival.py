"""The order of objects that a change creates or changes at one instant.

A cluster handles them in an order that depends on timing and can decide which pods get the last
room. A simulation handles them in the order of their steps; another order of the steps gives
another possible outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeGuard

from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject
from fairlead.whatif.change.step import ScriptedStep

_WITH_PODS: Final = frozenset(
    {
        "Pod", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job",
        "PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.incubator.k8s.io", "PodGroup",
    }
)  # fmt: skip


def arriving_together(steps: Sequence[ScriptedStep]) -> list[list[list[int]]]:
    """Return the positions of the steps that bring pods, grouped by their instant and object.

    Steps about one object keep their order: it is created before it is scaled. Instants with a
    single object are left out, as they have one order only.
    """
    by_instant: dict[int, dict[ObjectRef, list[int]]] = defaultdict(dict)
    for at, step in enumerate(steps):
        target = next((one.target for one in step.commands if _brings_pods(one)), None)
        if target is not None:
            ref = ObjectRef(target.kind, target.namespace, target.name)
            by_instant[step.after].setdefault(ref, []).append(at)
    return [list(objects.values()) for objects in by_instant.values() if len(objects) > 1]


def rearranged(
    steps: Sequence[ScriptedStep], order: Callable[[list[list[int]]], Sequence[list[int]]]
) -> tuple[ScriptedStep, ...]:
    """Return `steps` with the objects that arrive together in another `order`."""
    arranged = list(steps)
    for objects in arriving_together(steps):
        places = sorted(at for positions in objects for at in positions)
        origins = [at for positions in order(objects) for at in positions]
        for at, origin in zip(places, origins, strict=True):
            arranged[at] = steps[origin]
    return tuple(arranged)


def _brings_pods(command: Command) -> TypeGuard[CreateObject | PatchObject]:
    return isinstance(command, CreateObject | PatchObject) and command.target.kind in _WITH_PODS
