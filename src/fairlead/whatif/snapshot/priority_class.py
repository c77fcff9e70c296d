"""Checks that the PriorityClasses of new objects exist.

Pods of a dump and their replacements keep their priority, whether or not the dump contains their
class. Admission needs the classes of new pods, so a missing class is reported here, before the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.apiserver.kind import PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.pod_spec import pod_spec_of


def refuse_absent_classes(new: Iterable[Manifest], inventory: Inventory) -> None:
    """Raise InputError if a pod or pod template names a PriorityClass not in `inventory`."""
    for manifest in new:
        field, spec = pod_spec_of(manifest)
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
