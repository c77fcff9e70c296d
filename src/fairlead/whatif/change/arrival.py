"""The order of the objects that a change creates or updates at one instant.

In a real cluster, the order in which controllers handle these objects depends on timing. The order
can decide which pods get the last free resources. A simulation handles the objects in the order of
the steps. Another order of the steps shows what else could happen.
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
    """Return the indices in `steps` of steps that can add pods, grouped by instant and by object.

    A step can add pods if it creates or changes a pod, a workload or a PodGroup. The result has one
    item for each instant at which such steps create or change two or more objects. An item contains
    one list for each of these objects: the indices of the object's steps, in ascending order.
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
    """Return `steps` with the objects of each instant in the order that `order` returns.

    `order` is called for each instant. Its argument contains a list for each object: the indices in
    `steps` of the object's steps (see `arriving_together`). `order` returns these lists in a new
    order.
    """
    arranged = list(steps)
    for objects in arriving_together(steps):
        places = sorted(at for positions in objects for at in positions)
        origins = [at for positions in order(objects) for at in positions]
        for at, origin in zip(places, origins, strict=True):
            arranged[at] = steps[origin]
    return tuple(arranged)


def _brings_pods(command: Command) -> TypeGuard[CreateObject | PatchObject]:
    return isinstance(command, CreateObject | PatchObject) and command.target.kind in _WITH_PODS
