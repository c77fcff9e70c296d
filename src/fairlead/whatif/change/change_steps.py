"""ChangeSteps: collects the steps of a change and the notes about it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.whatif.change import commands
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

if TYPE_CHECKING:
    from fairlead.whatif.change.edit.edited_field import EditedFields
    from fairlead.whatif.snapshot.validation.custom_resource_check import CustomResourceCheck


class ChangeSteps(Struct, dict=True):
    """Collects the steps of a change; `inventory` contains the objects after these steps."""

    change: ClusterChange
    start: Instant
    inventory: Inventory
    steps: list[ScriptedStep] = field(default_factory=list)
    new_nodes: list[ScriptedStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    written: dict[ObjectRef, Manifest] = field(default_factory=dict)
    deleted: list[Manifest] = field(default_factory=list)
    awaited: dict[ObjectRef, None] = field(default_factory=dict)  # an ordered set of pods
    # Deletions of pods of workloads. They follow the edits, so that new pods have the new template.
    replaced_pods: list[ScriptedStep] = field(default_factory=list)
    fields: EditedFields | None = None  # None if --set and --set-resources are not given
    # the identities of JobSets that suspend or resume Jobs, and of these Jobs
    resumed: set[tuple[str, str, str]] = field(default_factory=set)
    # {written object: (number of its step, the object before the change)}
    _writes: dict[ObjectRef, tuple[int, Manifest | None]] = field(default_factory=dict)

    @cached_property
    def custom_resources(self) -> CustomResourceCheck:
        """The check of the custom resources that the change writes."""
        from fairlead.whatif.snapshot.validation.custom_resource_check import (  # noqa: PLC0415
            CustomResourceCheck,
        )

        return CustomResourceCheck(self.inventory)

    def add(self, what: str, source: str, *commands: Command) -> None:
        """Add the step that issues `commands`; `what` and `source` are as in ScriptedStep."""
        self.steps.append(ScriptedStep(0, commands, source, what))

    def refuse_edited(self, option: str, target: Manifest, name: str) -> None:
        """Raise InputError if an edit sets a field in the spec of `target` that `option` also sets.

        `name` is the name of this field.
        """
        if self.fields is not None:
            self.fields.refuse_replaced(option, target, {("spec", name): f"spec.{name}"})

    def before(self, written: Manifest) -> Manifest | None:
        """Return the version of `written` before the change; None if the change creates it."""
        return self._writes.get(written.ref, (0, written))[1]

    def write(self, before: Manifest | None, after: Manifest, source: str) -> None:
        """Add the step that changes `before` to `after`, or creates `after` if `before` is None.

        If an earlier step already writes the object, the new step replaces that step and makes both
        changes. If there were two steps, a controller would act on the first step before the second
        step runs.
        """
        number, first = self._writes.setdefault(after.ref, (len(self.steps), before))
        if number < len(self.steps):
            source = self.steps[number].source
        step = ScriptedStep(0, _write_of(first, after), source, after.title)
        self.steps[number : number + 1] = [step]


def _write_of(before: Manifest | None, after: Manifest) -> tuple[Command, ...]:
    """Return the commands that change `before` to `after`.

    If `before` is None, the command creates `after`.
    """
    if before is None:
        return (commands.create(after),)
    from fairlead.whatif.change.kubectl_apply import merge_patch_between  # noqa: PLC0415

    return tuple(commands.patch(before.ref, merge_patch_between(before.value, after.value)))


def add_created(inventory: Inventory, manifest: Manifest) -> None:
    """Add the object `manifest`, which the change creates, to `inventory`."""
    if manifest.kind is NODE:
        inventory.add_new_node(manifest)
    else:
        inventory.add(manifest)
