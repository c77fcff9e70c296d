"""The steps of the options that edit objects: --set, --set-resources and others."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.change import commands
from fairlead.whatif.change.change_steps import ChangeSteps
from fairlead.whatif.change.changed_object import change_to, refuse_invalid_queues
from fairlead.whatif.change.edit.edited_field import EditedFields
from fairlead.whatif.change.edit.object_edit import (
    PRIORITY,
    SET,
    SET_RESOURCES,
    with_field,
    with_priority,
    with_resources,
)
from fairlead.whatif.change.edit.pod_resize import resize_notes, resize_of
from fairlead.whatif.change.edit.vertical_pod_autoscaler import OPTION as APPLY_VPA
from fairlead.whatif.change.edit.vertical_pod_autoscaler import recommended_edits
from fairlead.whatif.change.note.unsimulated_workload import unsimulated_notes
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import unknown_annotations
from fairlead.whatif.snapshot.validation.invalid_object import refuse_invalid_change
from fairlead.whatif.snapshot.validation.priority_class import refuse_absent_classes
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import refuse_wrong_types


def add_edits(collected: ChangeSteps) -> None:
    """Add the steps of the options that edit objects, and notes about them. Raises InputError."""
    change, inventory = collected.change, collected.inventory
    valued = set[str]()
    for text in change.priority_class:
        before, after = with_priority(text, inventory)
        if before.ref.name in valued:
            raise InputError(PRIORITY, f"{before.title} gets a value twice")
        valued.add(before.ref.name)
        inventory.add(after)
        actions = (commands.delete(before.ref), commands.create(after))
        collected.add(before.title, PRIORITY, *actions)
    fields = collected.fields = EditedFields()
    if change.apply_vpa:
        _apply_recommendations(collected, fields)
    if change.set or change.set_resources:
        _set_fields(collected, fields)


def _set_fields(collected: ChangeSteps, fields: EditedFields) -> None:
    """Add the steps of --set and --set-resources, and record the edited fields in `fields`.

    Raises InputError for an edit that is malformed, or that the API server would refuse.
    """
    change, inventory = collected.change, collected.inventory
    originals: dict[ObjectRef, Manifest] = {}
    edited: dict[ObjectRef, Manifest] = {}
    for option, texts, edit_of in (
        (SET, change.set, with_field),
        (SET_RESOURCES, change.set_resources, with_resources),
    ):
        for text in texts:
            edit = edit_of(text, inventory, change.namespace)
            fields.add(option, edit.target, edit.places)
            collected.notes += edit.notes
            add_change = _resize if edit.is_resize else change_to
            changed = add_change(collected, edit.target, edit.content, option)
            refuse_absent_classes([changed], inventory, collected.deleted)
            refuse_excess([changed])
            originals.setdefault(changed.ref, edit.target)
            edited[changed.ref] = changed
            known = set(unknown_annotations([edit.target]))
            collected.notes += [
                note for note in unknown_annotations([changed]) if note not in known
            ]
    # Only now, because two edits of an object may be valid together, but not one by one.
    for ref, changed in edited.items():
        refuse_invalid_change(originals[ref], changed)
    refuse_invalid_queues(collected)
    unsimulated = [one for one in edited.values() if one.identity not in collected.resumed]
    collected.notes += [
        note for note in unsimulated_notes(unsimulated, edited) if note not in collected.notes
    ]


def _resize(collected: ChangeSteps, pod: Manifest, result: Json, source: str) -> Manifest:
    """Add the step that gives the containers of `pod` the resources that they have in `result`.

    Returns the changed manifest. Raises InputError that names `source` if a field of `result` is
    malformed, or if the pod has completed.
    """
    changed = replace(pod, content=result, source=source)
    refuse_wrong_types(changed, pod)
    notes = resize_notes(pod, result, source)
    collected.notes += [note for note in notes if note not in collected.notes]
    collected.inventory.add(replace(changed, source=pod.source))
    collected.add(changed.title, source, resize_of(pod.ref, result))
    return changed


def _apply_recommendations(collected: ChangeSteps, fields: EditedFields) -> None:
    """Add the steps of --apply-vpa, and record the edited fields in `fields`. Raises InputError."""
    for edit in recommended_edits(collected.inventory, collected.change.namespace):
        collected.notes.append(edit.note)
        if edit.target is not None:
            fields.add(APPLY_VPA, edit.target, edit.places)
            changed = change_to(collected, edit.target, edit.content, APPLY_VPA)
            refuse_excess([changed])
