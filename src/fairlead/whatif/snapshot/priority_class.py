"""Checks that the PriorityClasses of new objects exist.

Pods of a dump and their replacements keep their priority, whether or not the dump contains their
class. Admission resolves the classes of new pods. A missing class is reported here, before the run.
This includes the classes of pod templates, because their pods could never be created.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.json import Json
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest


def refuse_absent_classes(new: Iterable[Manifest], inventory: Inventory) -> None:
    """Raise InputError for a pod or pod template whose class is not in `inventory`."""
    for manifest in new:
        field, spec = _pod_spec(manifest)
        name = spec.get("priorityClassName")
        if not name or name in SYSTEM_CLASSES or inventory.get(PRIORITY_CLASS, "", name):
            continue
        known = [each.ref.name for each in inventory.of_kind(PRIORITY_CLASS)]
        hint = (
            f"; {known_names(str(name), known)}"
            if known
            else f" ({inventory.absence(PRIORITY_CLASS)})"
        )
        raise manifest.refuse(
            f"no PriorityClass with name {name} was found{hint}", field=f"{field}.priorityClassName"
        )


def _pod_spec(manifest: Manifest) -> tuple[str, Json]:
    """Return (path, pod spec) of a pod or workload; the pod spec of other kinds is {}."""
    spec = manifest.value.get("spec")
    if manifest.kind is POD:
        return "spec", spec if isinstance(spec, dict) else {}
    for step in ("template", "spec"):
        spec = spec.get(step) if isinstance(spec, dict) else None
    return "spec.template.spec", spec if isinstance(spec, dict) else {}
