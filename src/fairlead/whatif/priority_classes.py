"""PriorityClasses that a dump does not hold, and those that nothing holds.

A dump of nodes and pods alone has no classes, yet the successors of its pods need them: a class
is inferred from the stored pods that name it, and one is made up for stored pods that have a
priority but name no class. Only successors of what is stored profit: a new object that names a
class which was not given is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from fairlead.apiserver.admission.priority import (
    DEFAULT_PRIORITY,
    PREEMPT_LOWER_PRIORITY,
    SYSTEM_CLASSES,
)
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
from fairlead.apiserver.validation.policy import USER_PRIORITY_MAX
from fairlead.core.command import Json, ObjectRef
from fairlead.whatif.input_error import known_names
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.manifest import Manifest

INFERRED: Final = "fairlead.dev/inferred"

_Meaning = tuple[int, str]  # value and preemption policy


def with_inferred_classes(manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Stored `manifests` and the classes that their pods need, as far as they tell of them."""
    classes = [manifest for manifest in manifests if manifest.kind is PRIORITY_CLASS]
    given = {manifest.ref.name for manifest in classes} | set(SYSTEM_CLASSES)
    default = _default(classes)
    votes: dict[str, Counter[_Meaning]] = defaultdict(Counter)
    complete: list[Manifest] = []
    for each in manifests:
        manifest, meaning = each, _meaning(each)
        if meaning is not None:
            manifest = _with_class(manifest, meaning, default)
            name = manifest.value["spec"].get("priorityClassName")
            if name and name not in given and meaning[0] <= USER_PRIORITY_MAX:
                votes[name][meaning] += 1
        complete.append(manifest)
    return (*complete, *(_class(name, votes[name]) for name in sorted(votes)))


def refuse_absent_classes(new: Iterable[Manifest], inventory: Inventory) -> None:
    """Raise InputError for a pod, or a template of pods, whose class is not in `inventory`."""
    for manifest in new:
        field, spec = _pod_spec(manifest)
        name = spec.get("priorityClassName")
        if not name or name in SYSTEM_CLASSES or inventory.get(PRIORITY_CLASS, "", name):
            continue
        known = [each.ref.name for each in inventory.of_kind(PRIORITY_CLASS)]
        hint = f"; {known_names(str(name), known)}" if known else " (the cluster has none at all)"
        raise manifest.refuse(
            f"no PriorityClass with name {name} was found{hint}", field=f"{field}.priorityClassName"
        )


def _pod_spec(manifest: Manifest) -> tuple[str, Json]:
    """Where the pod spec of a pod or a workload stands, and what it says; {} for other kinds."""
    spec = manifest.value.get("spec")
    if manifest.kind is POD:
        return "spec", spec if isinstance(spec, dict) else {}
    for step in ("template", "spec"):
        spec = spec.get(step) if isinstance(spec, dict) else None
    return "spec.template.spec", spec if isinstance(spec, dict) else {}


def _default(classes: Iterable[Manifest]) -> _Meaning:
    """What a pod without a class would get."""
    for manifest in classes:
        if manifest.value.get("globalDefault") is True:
            value, policy = manifest.value.get("value", 0), manifest.value.get("preemptionPolicy")
            return value, policy or PREEMPT_LOWER_PRIORITY
    return DEFAULT_PRIORITY, PREEMPT_LOWER_PRIORITY


def _meaning(manifest: Manifest) -> _Meaning | None:
    """The resolved priority of a stored pod; None for anything else."""
    if manifest.kind is not POD:
        return None
    spec: Any = manifest.value.get("spec")
    if not isinstance(spec, dict) or type(spec.get("priority")) is not int:
        return None
    return spec["priority"], str(spec.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY)


def _with_class(manifest: Manifest, meaning: _Meaning, default: _Meaning) -> Manifest:
    """The pod with a class of its own where it names none and would not get the default."""
    spec = manifest.value["spec"]
    if spec.get("priorityClassName") or meaning == default or meaning[0] > USER_PRIORITY_MAX:
        return manifest
    named = {**spec, "priorityClassName": _made_up_name(meaning)}
    return replace(manifest, value={**manifest.value, "spec": named})


def _made_up_name(meaning: _Meaning) -> str:
    value, policy = meaning
    size = f"minus-{-value}" if value < 0 else f"{value}"
    return f"priority-{size}" if policy == PREEMPT_LOWER_PRIORITY else f"priority-{size}-never"


def _class(name: str, votes: Counter[_Meaning]) -> Manifest:
    """The class that most pods mean by `name`; of equally many, the most important."""
    value, policy = max(votes, key=lambda meaning: (votes[meaning], meaning))
    manifest = {
        "apiVersion": PRIORITY_CLASS.api_version,
        "kind": PRIORITY_CLASS.kind,
        "metadata": {"name": name, "annotations": {INFERRED: "true"}},
        "value": value,
        "preemptionPolicy": policy,
    }
    return Manifest("inferred", PRIORITY_CLASS, ObjectRef(PRIORITY_CLASS.kind, "", name), manifest)
