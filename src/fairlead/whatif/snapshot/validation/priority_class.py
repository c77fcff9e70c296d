"""PriorityClasses of new objects: checks that they exist, and notes about a new default.

Pods of a dump and their replacements keep their priority, whether or not the dump contains their
class. Admission needs the classes of new pods, so a missing class is reported here, before the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.pods.facts import is_terminal
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
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


def default_class_notes(applied: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield a note for each PriorityClass of `applied` that becomes the default of new pods.

    `inventory` contains the objects before the change.
    """
    for new in applied:
        if new.kind is not PRIORITY_CLASS or not new.value.get("globalDefault"):
            continue
        old = inventory.get(PRIORITY_CLASS, "", new.ref.name)
        if old is not None and old.value.get("globalDefault"):
            continue
        value = new.value.get("value", 0)
        pods = [
            pod
            for manifest in inventory.of_kind(POD)
            if not (pod := manifest.pod).spec.priority_class_name and not is_terminal(pod)
        ]
        values = listed([str(one) for one in sorted({pod.spec.priority or 0 for pod in pods})])
        without = "1 present pod keeps" if len(pods) == 1 else f"{len(pods):,} present pods keep"
        present = f" {without} priority {values} until replaced." if pods else ""
        preempts = new.value.get("preemptionPolicy") != "Never"
        effect = " and may preempt pods of lower priority" if preempts else ""
        yield (
            f"PriorityClass {new.ref.name} becomes the default: new pods without a class get "
            f"priority {value}{effect}.{present}"
        )
