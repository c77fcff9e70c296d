"""Checks that new objects name existing PriorityClasses; yields notes about changed classes.

Pods of a dump keep their priority, and their replacements get the same priority, even if the dump
lacks the PriorityClass. Admission needs the classes of new pods, so a missing class is reported
here, before the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.pod_spec import pod_spec_of


def refuse_absent_classes(
    new: Iterable[Manifest], inventory: Inventory, deleted: Iterable[Manifest] = ()
) -> None:
    """Raise InputError if a pod or pod template names a PriorityClass not in `inventory`.

    An API server accepts a workload whose class is missing, and refuses its pods. But probably the
    name is wrong, or the dump lacks the class. A PriorityClass in `deleted`, the objects that a
    change deletes, is no error: the run shows that pods with this class are refused.

    upstream: plugin/pkg/admission/priority/admission.go: Admit, which handles only pods
    """
    gone = {one.ref.name for one in deleted if one.kind is PRIORITY_CLASS}
    for manifest in new:
        field, spec = pod_spec_of(manifest)
        name = spec.get("priorityClassName")
        if not name or name in SYSTEM_CLASSES or inventory.get(PRIORITY_CLASS, "", name):
            continue
        if name in gone:
            continue
        known = [each.ref.name for each in inventory.of_kind(PRIORITY_CLASS)]
        if known:
            hint = f"; {known_names(str(name), known)}"
        elif _have_classes(inventory):
            hint = inventory.remedy(PRIORITY_CLASS)
        else:
            hint = f" ({inventory.absence(PRIORITY_CLASS)})"
        raise manifest.refuse(
            f"no PriorityClass with name {name} was found{hint}", field=f"{field}.priorityClassName"
        )


def _have_classes(inventory: Inventory) -> bool:
    """Return whether a pod of a cluster has a PriorityClass that Kubernetes does not create.

    Pods without a uid do not count, because they are hand-written.
    """
    pods = (one.pod for one in inventory.of_kind(POD) if one.ref.uid)
    names = (pod.spec.priority_class_name for pod in pods)
    return any(name and name not in SYSTEM_CLASSES for name in names)


def priority_class_notes(before: Mapping[str, Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield notes about the PriorityClasses that a change edits, replaces or deletes.

    Existing pods keep the priority and preemptionPolicy that admission gave them, so such a change
    affects only new pods. `before` contains the PriorityClasses before the change, by name;
    `inventory` contains the objects after the change. A new class that is not the default has no
    note.

    upstream: plugin/pkg/admission/priority/admission.go: admitPod
    """
    after = {one.ref.name: one for one in inventory.of_kind(PRIORITY_CLASS)}
    if {name: one.value for name, one in before.items()} == {
        name: one.value for name, one in after.items()
    }:
        return
    pods = _PodsByClass(inventory)
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield from _deletion(old, pods, inventory)
        else:
            yield from _new_values(old, new, pods)
    was, default = _default_of(before.values()), _default_of(after.values())
    if default is not None and (was is None or was.ref.name != default.ref.name):
        yield _new_default(default, pods)
    elif default is None and was is not None:
        yield (
            f"{was.title} is no longer the default: new pods without a class get "
            f"priority 0.{_kept(pods.of(was.ref.name))}"
        )


class _PodsByClass:
    """The pods of a dump that have not ended, by the name of their PriorityClass."""

    def __init__(self, inventory: Inventory) -> None:
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for manifest in inventory.of_kind(POD):
            if not is_terminal(pod := manifest.pod):
                self._pods[pod.spec.priority_class_name].append(pod)

    def of(self, name: str) -> list[Pod]:
        """Return the pods with the class `name`; the pods without a class if `name` is ""."""
        return self._pods.get(name, [])


def _default_of(classes: Iterable[Manifest]) -> Manifest | None:
    """Return the default class; if there are several, the class with the lowest value."""
    # upstream: plugin/pkg/admission/priority/admission.go: getDefaultPriorityClass
    marked = [one for one in classes if one.value.get("globalDefault")]
    return min(marked, key=lambda one: one.value.get("value", 0), default=None)


def _policy_of(one: Manifest) -> str:
    return str(one.value.get("preemptionPolicy") or "PreemptLowerPriority")


def _new_values(old: Manifest, new: Manifest, pods: _PodsByClass) -> Iterator[str]:
    """Yield a note if the value of a class changes, and a note if its preemptionPolicy changes."""
    own = pods.of(old.ref.name)
    before, after = old.value.get("value", 0), new.value.get("value", 0)
    if before != after:
        head = f"{old.title}: {before} becomes {after}. "
        if own:
            yield (
                f"{head}{_pods_keep(own)} priority {_priorities(own)}, because the priority of an "
                f"existing pod does not change. New pods get {after}."
            )
        else:
            default = " without a class" if old.value.get("globalDefault") else " of this class"
            yield f"{head}No pod of the dump names it; pods{default} created from now on get it."
    if _policy_of(old) != _policy_of(new):
        kept = f" {_pods_keep(own)} {_policy_of(old)}." if own else ""
        yield (
            f"{old.title}: the preemptionPolicy {_policy_of(old)} becomes {_policy_of(new)} for "
            f"new pods.{kept}"
        )


def _deletion(old: Manifest, pods: _PodsByClass, inventory: Inventory) -> Iterator[str]:
    """Yield a note if pods or workloads name the deleted class `old`."""
    name = old.ref.name
    naming = [
        one.title
        for kind in inventory.kinds
        if kind not in (POD, PRIORITY_CLASS)
        for one in inventory.of_kind(kind)
        if one.controller is None and pod_spec_of(one)[1].get("priorityClassName") == name
    ]
    if naming:
        name_it = "names it" if len(naming) == 1 else "name it"
        yield (
            f"{old.title} is deleted, but {listed(naming)} still {name_it}: new pods, including "
            f"replacements, are refused.{_kept(pods.of(name))}"
        )
    elif pods.of(name):
        yield f"{old.title} is deleted.{_kept(pods.of(name))}"


def _new_default(new: Manifest, pods: _PodsByClass) -> str:
    without = pods.of("")
    keeps = counted(len(without), "present pod keeps", "present pods keep")
    present = f" {keeps} priority {_priorities(without)} until replaced." if without else ""
    preempts = _policy_of(new) != "Never"
    effect = " and may preempt pods of lower priority" if preempts else ""
    return (
        f"{new.title} becomes the default: new pods without a class get priority "
        f"{new.value.get('value', 0)}{effect}.{present}"
    )


def _kept(own: Sequence[Pod]) -> str:
    """Return a sentence about the priority of `own`, the existing pods of a class.

    A space precedes the sentence. Return "" if there are no such pods.
    """
    if not own:
        return ""
    return f" {_pods_keep(own)} priority {_priorities(own)}."


def _pods_keep(own: Sequence[Pod]) -> str:
    return counted(len(own), "pod has it and keeps", "pods have it and keep")


def _priorities(pods: Iterable[Pod]) -> str:
    return listed([str(one) for one in sorted({pod.spec.priority or 0 for pod in pods})])
