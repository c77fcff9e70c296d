"""Priority classes that a new object names must be there.

Stored pods keep the priority they have, and their successors with them, whatever classes a dump
holds. Only what is new is resolved, and what would be refused then is refused beforehand, the
templates of workloads included: their pods would never come.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.json import Json
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.input_error import known_names
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.manifest import Manifest


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
