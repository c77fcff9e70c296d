"""ChangeScript: the scripted steps that perform a change.

The nodes of --add-nodes are added first. When these nodes are Ready, all other parts of the change
happen at one instant, except that `--at` can delay failures and a rolling drain takes time. The
order of the parts does not depend on the command line. First, objects are deleted, applied and
edited. Then workloads are scaled, and nodes are cordoned, drained and failed. Last, the descheduler
runs. So one change can delete an object and apply a new object of the same name, or apply a node
and cordon it.

A label selector of nodes to cordon, drain or fail matches only the nodes that exist before the
change. A node that the change creates can be cordoned, drained or failed by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.readiness import READY_AFTER
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE, POD, PRIORITY_CLASS
from fairlead.engine.core.command import EvictPod, ObjectRef
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.whatif.change import commands
from fairlead.whatif.change.change_steps import ChangeSteps, add_created
from fairlead.whatif.change.cluster_change import NAMING_OPTIONS, ClusterChange
from fairlead.whatif.change.descheduled_pod import AS_SCHEDULED, BY_PRIORITY, ORDER_OPTION
from fairlead.whatif.change.kubectl_drain import NO_DRAIN, DrainCheck, KubectlDrain, kubectl_drain
from fairlead.whatif.change.node_outage.node_failure import option_duration
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.validation.priority_class import priority_class_notes

if TYPE_CHECKING:
    from fairlead.whatif.change.new_node import Models


# With --add-nodes, the other changes are made when the new nodes are Ready. Otherwise pods that
# these changes create or evict could not use the new nodes.
_NODES_READY_AFTER: Final = 2 * READY_AFTER


class ChangeScript(Struct, frozen=True):
    """The steps of a change in order of time, and notes about its meaning and its assumptions."""

    steps: tuple[ScriptedStep, ...]
    notes: tuple[str, ...] = ()
    drain: KubectlDrain = NO_DRAIN  # the result of kubectl's checks of the drained nodes
    # The objects that manifests and edits create or change, with their content after the change.
    written: tuple[Manifest, ...] = ()
    deleted: tuple[Manifest, ...] = ()  # the objects that --delete names
    # The pods that are not ready, and for which StatefulSets with a new template wait.
    awaited: tuple[ObjectRef, ...] = ()
    # The objects in `written` that the change creates or changes, and on which no simulated
    # controller acts.
    unsimulated: tuple[Manifest, ...] = ()


def script_of_change(
    change: ClusterChange, snapshot: Snapshot, seed: int = 0, new_node: Sequence[Json] = ()
) -> ChangeScript:
    """Return the steps and notes of `change`; `seed` selects the nodes of --fail-fraction.

    `new_node` contains node templates of the instance type for --add-nodes, one for each zone.
    Raises InputError for files that cannot be read and for objects that are missing or not allowed.
    """
    _refuse_unused_options(change)
    collected = ChangeSteps(change, snapshot.taken_at, snapshot.inventory())
    classes = {one.ref.name: one for one in collected.inventory.of_kind(PRIORITY_CLASS)}
    models = _models(change, collected.inventory)
    _delete(collected)
    _apply(collected)
    _edit(collected)
    _add_notes_on_held_changes(collected)
    _add_notes_on_absent_autoscalers(collected, snapshot)
    collected.steps += collected.replaced_pods
    collected.notes += priority_class_notes(classes, collected.inventory)
    _add_nodes(collected, models, new_node)
    _scale(collected)
    _add_notes_on_writes(collected)
    _add_notes_on_owners(collected)
    for name in _nodes_to_cordon("--cordon", change.cordon, collected):
        collected.add(name, "--cordon", commands.cordon(name))
    drain = _drain(collected)
    outages = change.failures.outages(collected.inventory, seed, change.lasts)
    for outage in outages:
        collected.steps.extend(outage.steps())
    if outages:
        # Imported only if it is needed.
        from fairlead.whatif.change.node_outage.control_plane_loss import (  # noqa: PLC0415
            control_plane_notes,
        )

        collected.notes += control_plane_notes(outages, collected.inventory)
    if change.descheduler:
        _deschedule(collected, change.descheduler)
    steps = sorted(collected.steps, key=lambda step: step.after)
    if collected.new_nodes:
        delayed = [replace(step, after=step.after + _NODES_READY_AFTER) for step in steps]
        steps = [*collected.new_nodes, *delayed]
    return ChangeScript(
        tuple(steps),
        tuple(collected.notes),
        drain,
        tuple(collected.written.values()),
        tuple(collected.deleted),
        tuple(collected.awaited),
        tuple(_unsimulated(collected)),
    )


def _refuse_unused_options(change: ClusterChange) -> None:
    """Raise InputError if --namespace or --reschedule-order has no effect or a wrong value.

    The other options are checked by the functions that read them.
    """
    if change.reschedule_order not in (BY_PRIORITY, AS_SCHEDULED):
        problem = f"{change.reschedule_order!r} is not {BY_PRIORITY} or {AS_SCHEDULED}"
        raise InputError(ORDER_OPTION, problem)
    if change.reschedule_order == AS_SCHEDULED and not change.reschedule:
        raise InputError(ORDER_OPTION, "needs --reschedule")
    if change.namespace and not any(getattr(change, name) for name in NAMING_OPTIONS):
        *others, last = NAMING_OPTIONS.values()
        which = f"{', '.join(others)} or {last}"
        raise InputError("--namespace", f"has no effect without {which}")


def _apply(collected: ChangeSteps) -> None:
    """Add the steps of --apply. Raises InputError."""
    change = collected.change
    if change.server_side and not change.apply:
        raise InputError("--server-side", "needs --apply")
    if change.force_conflicts and not change.server_side:
        raise InputError("--force-conflicts", "needs --server-side")
    if change.apply:
        # Importing the schemas that patches need takes as long as simulating a small cluster.
        from fairlead.whatif.change.applied_file import add_applied  # noqa: PLC0415

        add_applied(collected)


def _edit(collected: ChangeSteps) -> None:
    """Add the steps of the options that edit objects. Raises InputError."""
    change = collected.change
    if change.priority_class or change.apply_vpa or change.set or change.set_resources:
        from fairlead.whatif.change.edited_object import add_edits  # noqa: PLC0415 - like `_apply`

        add_edits(collected)


def _scale(collected: ChangeSteps) -> None:
    """Add the steps of --scale. Raises InputError."""
    if collected.change.scale:
        from fairlead.whatif.change.scaled_workload import add_scaling  # noqa: PLC0415 - rarely needed

        add_scaling(collected)


def _unsimulated(collected: ChangeSteps) -> Iterator[Manifest]:
    """Yield the created and altered objects that have no effect on pods in the simulation."""
    if not collected.written:
        return
    from fairlead.whatif.change.note.unsimulated_workload import is_unsimulated  # noqa: PLC0415

    for one in collected.written.values():
        before = collected.before(one)
        differs = before is None or before.value != one.value
        if differs and one.identity not in collected.resumed and is_unsimulated(one):
            yield one


def _add_notes_on_held_changes(collected: ChangeSteps) -> None:
    """Add notes about workloads that do not act on the writes, or act on them later.

    Each note compares the workload before the change with the workload after all writes, because
    one write may pause a workload whose template another write changes.
    """
    writes = [(collected.before(one), one) for one in collected.written.values()]
    if not any(before for before, _ in writes):
        return
    from fairlead.whatif.change.note.held_rollout import (  # noqa: PLC0415 - rarely needed
        awaited_in_rollout,
        held_in_order,
        held_rollout,
        ignores_change,
    )

    inventory = collected.inventory
    for before, after in writes:
        if before is None:
            continue
        note = (
            ignores_change(before, after.value, inventory)
            or held_rollout(before, after.value, inventory)
            or held_in_order(before, after.value, inventory)
        )
        if note:
            collected.notes.append(note)
        if (awaited := awaited_in_rollout(before, after.value, inventory)) is not None:
            collected.awaited[awaited] = None


def _add_notes_on_writes(collected: ChangeSteps) -> None:
    """Add notes about unsimulated reactions of Kueue and of controllers to the writes."""
    if collected.written:
        # Imported only if it is needed.
        from fairlead.whatif.change.note.released_object import release_notes  # noqa: PLC0415
        from fairlead.whatif.snapshot.kueue import admission_notes  # noqa: PLC0415

        writes = [(collected.before(one), one) for one in collected.written.values()]
        collected.notes += admission_notes(writes)
        collected.notes += release_notes(writes, collected.inventory)


def _add_notes_on_owners(collected: ChangeSteps) -> None:
    """Add notes about written and deleted objects that a custom resource owns."""
    if collected.written or collected.deleted:
        from fairlead.whatif.change.note.owned_object import ownership_notes  # noqa: PLC0415

        own = (one for one in collected.written.values() if one.identity not in collected.resumed)
        before = map(collected.before, own)
        existing = [one for one in before if one is not None]
        collected.notes += ownership_notes(existing, collected.deleted)
    if collected.resumed:
        from fairlead.whatif.change.job_set import changed_otherwise  # noqa: PLC0415 - rarely needed

        for one in collected.written.values():
            first = collected.before(one)
            if one.identity in collected.resumed and first and changed_otherwise(first, one):
                collected.notes.append(
                    f"Of the changes of {one.title}, only that of spec.suspend has an effect; "
                    "JobSet's controller is not simulated otherwise."
                )


def _add_notes_on_absent_autoscalers(collected: ChangeSteps, snapshot: Snapshot) -> None:
    """Add notes about VerticalPodAutoscalers that change new pods, but are not in the dump."""
    if collected.change.apply_vpa or not collected.written:
        return
    from fairlead.whatif.change.edit.vertical_pod_autoscaler import (  # noqa: PLC0415 - rarely needed
        absent_autoscaler,
    )

    inventory = snapshot.inventory()
    writes = collected.written.values()
    notes = (absent_autoscaler(collected.before(one), one, inventory) for one in writes)
    collected.notes += filter(None, notes)


def _deschedule(collected: ChangeSteps, path: str) -> None:
    """Add the evictions of one descheduler run with the policy file `path`. Raises InputError."""
    # Imported only if it is needed.
    from fairlead.whatif.descheduler.node_change import node_changes  # noqa: PLC0415
    from fairlead.whatif.descheduler.policy import read_policy  # noqa: PLC0415
    from fairlead.whatif.descheduler.run import run_policy  # noqa: PLC0415

    steps = (*collected.new_nodes, *(one for one in collected.steps if not one.after))
    changes = node_changes(command for step in steps for command in step.commands)
    found = run_policy(read_policy(path), collected.inventory, collected.start, changes)
    for one in found.evictions:
        if not one.refused_by:
            meta = one.pod.metadata
            ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
            command = EvictPod(ref, f"descheduler: {one.strategy}")
            collected.add(f"Pod {meta.namespace}/{meta.name}", "--descheduler", command)
    collected.notes += found.notes


def _drain(collected: ChangeSteps) -> KubectlDrain:
    """Add the steps of --drain to `collected`, and return the result of kubectl's checks.

    The run repeats the checks when the drain begins: other pods may then be on the nodes. Raises
    InputError for nodes that do not exist, and for options that do not fit together.
    """
    change = collected.change
    _refuse_misplaced_pace(change)
    if change.drain_as_kubectl and not change.drain:
        raise InputError("--drain-as-kubectl", "needs --drain")
    if change.kubectl_flags and not change.drain_as_kubectl:
        raise InputError(change.kubectl_flags[0], "needs --drain-as-kubectl")
    nodes = list(_nodes_to_cordon("--drain", change.drain, collected))
    flags = change.kubectl_flags if change.drain_as_kubectl else None
    found = kubectl_drain(nodes, collected.inventory, flags)
    refused = {one.node for one in found.refused}
    rolling = _rolling(change, len(nodes) - len(refused))
    for name in nodes:
        command = commands.drain(name)
        if rolling is not None:
            command = commands.rolling_drain(name, rolling)
        given = None if flags is None else tuple(flags)
        check = DrainCheck(name, given)
        step = ScriptedStep(0, (command,), "--drain", name, drain_check=check)
        collected.steps.append(step)
    if rolling is not None:
        collected.notes += _cordoned_before(nodes, collected.inventory)
    return found


def _cordoned_before(nodes: Iterable[str], inventory: Inventory) -> Iterator[str]:
    """Yield a note about the `nodes` of a rolling drain that stay cordoned after the drain."""
    found = ((name, inventory.get(NODE, "", name)) for name in nodes)
    names = [name for name, one in found if one is not None and one.node.spec.unschedulable]
    if names:
        was, they_are = ("was", "it is") if len(names) == 1 else ("were", "they are")
        which = listed(names)
        yield f"{which} {was} cordoned before the drain, and {they_are} still cordoned after it."


def _refuse_misplaced_pace(change: ClusterChange) -> None:
    """Raise InputError if --for or --max-unavailable is set without the options that it needs."""
    if change.max_unavailable is not None and not change.drain:
        raise InputError("--max-unavailable", "needs --drain")
    option_duration("--for", change.lasts)  # a wrong value is reported before a missing option
    if change.lasts and change.max_unavailable is None and not change.failures.is_any:
        problem = "needs failing nodes or --max-unavailable"
        if change.drain:
            problem += " (--max-unavailable 1 drains one node at a time)"
        raise InputError("--for", problem)


def _rolling(change: ClusterChange, total: int) -> RollingDrainOptions | None:
    """Return the settings of a rolling drain of `total` nodes.

    Return None if all nodes are drained at the same time. Raises InputError for invalid values.
    """
    if change.max_unavailable is None:
        return None
    down = option_duration("--for", change.lasts) or 0
    from fairlead.whatif.change.rolling_drain import rolling_drain  # noqa: PLC0415 - rarely needed

    option, which = "--max-unavailable", " ".join(change.drain)
    return rolling_drain(option, change.max_unavailable, total, down, which)


def _delete(collected: ChangeSteps) -> None:
    """Add the steps of --delete, and notes about what they leave behind. Raises InputError."""
    if not collected.change.delete:
        return
    from fairlead.whatif.change.deletion import (  # noqa: PLC0415
        bound_volumes,
        claims_in_use,
        deleted_with,
        deletion_of,
        drained_nodes,
        leaving_pods,
    )

    targets = collected.deleted
    for text in collected.change.delete:
        for target in collected.inventory.select("--delete", text, collected.change.namespace):
            for one in deleted_with("--delete", target, collected.inventory):
                collected.inventory.remove(one)
            steps, note = deletion_of(target)
            is_replaced = target.kind is POD and target.controller is not None
            step = ScriptedStep(0, tuple(steps), "--delete", target.title)
            (collected.replaced_pods if is_replaced else collected.steps).append(step)
            collected.notes += [note] if note else []
            targets.append(target)
    collected.notes += (
        *claims_in_use(targets, collected.inventory),
        *bound_volumes(targets, collected.inventory),
        *drained_nodes(targets, collected.inventory),
        *leaving_pods(targets),
    )


def _models(change: ClusterChange, inventory: Inventory) -> Models | None:
    """Return the nodes that --like names; None if --like is not set.

    `inventory` contains the nodes as they are before the change. Raises InputError.
    """
    if change.add_nodes is None:
        for option, value in (("--like", change.like), ("--instance-type", change.instance_type)):
            if value:
                raise InputError(option, "needs --add-nodes")
    if not change.like:
        return None
    from fairlead.whatif.change.new_node import find_models  # noqa: PLC0415 - rarely needed

    return find_models(change.like, inventory)


def _add_nodes(collected: ChangeSteps, models: Models | None, templates: Sequence[Json]) -> None:
    """Add the steps of --add-nodes.

    If `models` is not None, the new nodes are copies of `models`, the nodes of --like. `templates`
    are node templates of the type in --instance-type, one for each zone. Raises InputError.
    """
    count, start = collected.change.add_nodes, collected.start
    if count is None:
        return
    from fairlead.whatif.change.new_node import OPTION, new_nodes  # noqa: PLC0415 - rarely needed

    for new in new_nodes(count, models, templates, collected.inventory, start):
        add_created(collected.inventory, new)
        step = ScriptedStep(0, (commands.create(new),), OPTION, new.title)
        collected.new_nodes.append(step)


def _nodes_to_cordon(option: str, texts: tuple[str, ...], collected: ChangeSteps) -> Iterator[str]:
    """Yield the names of the nodes that `texts` select, in the order of `texts`, each once.

    `texts` are the values of `option`. Raises InputError for a node that does not exist, or whose
    `spec.unschedulable` an edit also sets.
    """
    inventory = collected.inventory
    for name in dict.fromkeys(name for text in texts for name in inventory.nodes(option, text)):
        node = inventory.get(NODE, "", name)
        if node is not None:
            collected.refuse_edited(option, node, "unschedulable")
        yield name
