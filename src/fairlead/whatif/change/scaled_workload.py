"""The steps of --scale."""

from __future__ import annotations

from fairlead.api.json import mapping
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.change.change_steps import ChangeSteps
from fairlead.whatif.change.edit.scale import (
    metric_scaler,
    metric_scalers_note,
    other_scaler,
    parse_scale,
    refused_scale,
    scalable_part,
)
from fairlead.whatif.change.note.held_rollout import held_in_order, held_scaling, ignores_change
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest


def add_scaling(collected: ChangeSteps) -> None:
    """Add the steps of --scale, and notes about workloads that may not get or keep the replicas.

    Raises InputError.
    """
    change, inventory = collected.change, collected.inventory
    scaled = set[ObjectRef]()
    scaled_again: list[tuple[Manifest, Manifest]] = []  # by an autoscaler
    for text in change.scale:
        command = parse_scale("--scale", text, inventory, change.namespace)
        target = command.target
        if target in scaled:
            raise InputError("--scale", f"{target.kind} {target.key} is scaled twice")
        scaled.add(target)
        named = inventory.find("--scale", text.rpartition("=")[0], change.namespace)
        part = scalable_part(named, inventory)
        workload = part or named
        if part is not None:
            collected.notes.append(
                f"{named.title} is scaled through its {part.title}, because its controller is not "
                "simulated."
            )
        collected.refuse_edited("--scale", workload, "replicas")
        collected.add(text, "--scale", command)
        replicas = command.patch["spec"]["replicas"]
        other = other_scaler(named, replicas, inventory)
        spec = {**mapping(workload.value, "spec"), "replicas": replicas}
        result = {**workload.value, "spec": spec}
        held = held_scaling(workload, inventory) or held_in_order(workload, result, inventory)
        if note := ignores_change(workload, result, inventory) or held or other:
            collected.notes.append(note)
        elif autoscaler := metric_scaler(named, replicas, inventory):
            scaled_again.append((autoscaler, named))
            if note := refused_scale(autoscaler, named, replicas):
                collected.notes.append(note)
    if scaled_again:
        collected.notes.append(metric_scalers_note(scaled_again))
