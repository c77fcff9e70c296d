"""ClusterChange: the change of a what-if, and the scripted steps that perform it.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field, json
from msgspec.structs import replace

from fairlead.api.json import Json, mapping
from fairlead.api.nodes.readiness import READY_AFTER
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import (
    CUSTOM_RESOURCE_DEFINITION,
    KINDS,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    find_kind,
)
from fairlead.engine.core.command import Command, EvictPod, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.whatif.change import commands
from fairlead.whatif.change.descheduled_pod import AS_SCHEDULED, BY_PRIORITY, ORDER_OPTION
from fairlead.whatif.change.kubectl_drain import (
    DELETE_EMPTY_DIR,
    FORCE,
    IGNORE_DAEMON_SETS,
    NO_DRAIN,
    DrainCheck,
    KubectlDrain,
    kubectl_drain,
)
from fairlead.whatif.change.node_outage.node_failure import Failures, option_duration
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.document import Document, read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.given_plugin import plugin_text
from fairlead.whatif.input.option_type import refuse_wrong_types
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import (
    DEFAULT_NAMESPACE,
    manifests_to_apply,
    refuse_invalid_annotations,
    unknown_annotations,
)
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.validation.priority_class import (
    priority_class_notes,
    refuse_absent_classes,
)
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess

if TYPE_CHECKING:
    from fairlead.whatif.change.edit.edited_field import EditedFields
    from fairlead.whatif.change.new_node import Models
    from fairlead.whatif.snapshot.validation.custom_resource_check import CustomResourceCheck

NO_CHANGE: Final = "No change requested"
NO_MANAGED_FIELDS: Final = (
    "The dump has no managedFields, so a server-side apply has no conflicts here; kubectl get "
    "--show-managed-fields includes them."
)

_JOB_SET: Final = "JobSet"
_QUEUE: Final = "Queue"
# The fields of a ClusterChange that name objects, for which its namespace is the default, and their
# options.
_NAMING_OPTIONS: Final = {
    "apply": "--apply",
    "delete": "--delete",
    "set": "--set",
    "set_resources": "--set-resources",
    "apply_vpa": "--apply-vpa",
    "scale": "--scale",
}
_SELECTION: Final = frozenset("=!() ")  # a text without these characters is the name of a node
# With --add-nodes, the other changes are made when the new nodes are Ready. Otherwise pods that
# these changes create or evict could not use the new nodes.
_NODES_READY_AFTER: Final = 2 * READY_AFTER
_FIRST: Final = (NAMESPACE, PRIORITY_CLASS, CUSTOM_RESOURCE_DEFINITION, NODE)


class ClusterChange(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The parts of a change, as the user wrote them.

    Most fields contain the values of the option of `fairlead whatif` with the same name, in the
    same form: `scale=("deploy/web=3", "deploy/api=5")`. Raises InputError for a value of another
    type.
    """

    # Manifests, as paths or as objects (mappings).
    apply: tuple[str | PathLike[str] | Mapping[str, Any], ...] = ()
    server_side: bool = False  # whether objects are applied as `kubectl apply --server-side` does
    force_conflicts: bool = False  # with `server_side`: overwrites conflicting fields
    delete: tuple[str, ...] = ()
    priority_class: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    set_resources: tuple[str, ...] = ()
    apply_vpa: bool = False  # whether to set the requests that VerticalPodAutoscalers recommend
    scale: tuple[str, ...] = ()
    # The number of new nodes, which copy the node `like` or have the type `instance_type`.
    add_nodes: int | None = None
    # One name, or several names, separated by commas; these nodes are copied in turn.
    like: str = ""
    instance_type: str = ""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    drain_as_kubectl: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    force: bool = False
    # If set, the drain is a rolling drain: at most that many nodes are drained at a time, and
    # drained nodes return to service. A number, or a percentage of the nodes to drain, such as
    # "5%".
    max_unavailable: int | str | None = None
    failures: Failures = field(default_factory=Failures)
    lasts: str = ""  # the time for which drained and failed nodes stay down, as a duration
    new_config: str | None = None
    new_plugin: tuple[str | type, ...] = ()  # values of --new-plugin, or classes
    new_batch_config: str | None = None
    # `all` or a label selector: these running pods are made pending before both runs.
    reschedule: str = ""
    # The order in which both runs place the pods of `reschedule` (`priority` or `scheduled`).
    reschedule_order: str = BY_PRIORITY
    descheduler: str = ""  # the policy file of a descheduler that runs once
    # The namespace of each manifest and each object name that states none. If "", such manifests
    # get the namespace `default`, and such names are looked up in all namespaces.
    namespace: str = ""

    def __post_init__(self) -> None:
        """Raise InputError if the value of a field does not have the type of its annotation."""
        refuse_wrong_types(self)

    @property
    def without_drain(self) -> ClusterChange:
        """The change without its drain and the settings of the drain."""
        return replace(
            self,
            drain=(),
            drain_as_kubectl=False,
            ignore_daemonsets=False,
            delete_emptydir_data=False,
            force=False,
            max_unavailable=None,
            lasts="",
        )

    @property
    def words(self) -> list[str]:
        """The change as command-line options, for titles and results."""
        parts = {
            "--delete": self.delete,
            "--apply": map(_applied_text, self.apply),
            "--server-side": _given(self.server_side),
            "--force-conflicts": _given(self.force_conflicts),
            "--priority-class": self.priority_class,
            "--set": self.set,
            "--apply-vpa": _given(self.apply_vpa),
            "--set-resources": self.set_resources,
            "--scale": self.scale,
            "--add-nodes": () if self.add_nodes is None else (self.add_nodes,),
            "--like": (self.like,) if self.like else (),
            "--instance-type": (self.instance_type,) if self.instance_type else (),
            "--cordon": self.cordon,
            "--drain": self.drain,
            "--drain-as-kubectl": _given(self.drain_as_kubectl),
            **dict.fromkeys(self.kubectl_flags, ("",)),
            "--max-unavailable": () if self.max_unavailable is None else (self.max_unavailable,),
        }
        after = {
            "--for": (self.lasts,) if self.lasts else (),
            "--new-config": (self.new_config,) if self.new_config else (),
            "--new-plugin": map(plugin_text, self.new_plugin),
            "--new-batch-config": (self.new_batch_config,) if self.new_batch_config else (),
            "--reschedule": (self.reschedule,) if self.reschedule else (),
            "--reschedule-order": _given_order(self.reschedule_order),
            "--descheduler": (self.descheduler,) if self.descheduler else (),
        }
        return [*_worded(parts), *self.failures.words, *_worded(after)]

    @property
    def kubectl_flags(self) -> list[str]:
        """The flags of `kubectl drain` that the change sets."""
        flags = {
            IGNORE_DAEMON_SETS: self.ignore_daemonsets,
            DELETE_EMPTY_DIR: self.delete_emptydir_data,
            FORCE: self.force,
        }
        return [flag for flag, is_given in flags.items() if is_given]

    @property
    def changes_scheduler(self) -> bool:
        """Whether the change replaces a scheduler's configuration or adds a scheduler plugin."""
        return bool(self.new_config or self.new_plugin or self.new_batch_config)

    @property
    def node_label(self) -> str:
        """The label key by which the change selects nodes to drain, cordon or delete; "" if none.

        If the change has several selectors, the key is the first key of the first selector. A
        selector that begins with the label kubernetes.io/hostname does not count.
        """
        for text in (*self.drain, *self.cordon, *deleted_nodes(self.delete)):
            with suppress(SelectorError):
                selector = parse_selector(text)
                keys = (*selector.match_labels, *(one.key for one in selector.match_expressions))
                if keys and _SELECTION & set(text) and keys[0] != HOSTNAME:
                    return keys[0]
        return ""

    @property
    def title(self) -> str:
        """The change as the first line of an answer: `What if: --drain worker-3`."""
        return f"What if: {' '.join(self.words)}" if self.words else NO_CHANGE


def _given_order(order: str) -> tuple[str, ...]:
    return () if order == BY_PRIORITY else (order,)


def _worded(parts: Mapping[str, Iterable[object]]) -> list[str]:
    words = [f"{option} {value}" for option, values in parts.items() for value in values]
    return [word.rstrip() for word in words]


def deleted_nodes(deleted: Iterable[str]) -> Iterator[str]:
    """Yield the node names and node selectors in the values of --delete."""
    for text in deleted:
        kind, _, rest = text.partition("/")
        if find_kind(kind) is NODE:
            yield rest


def _given(flag: bool) -> tuple[str, ...]:  # noqa: FBT001 - an option without a value
    """Return ("",) if the option `flag`, which takes no value, is set; otherwise ()."""
    return ("",) if flag else ()


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


class _Steps(Struct, dict=True):
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


def script_of_change(
    change: ClusterChange, snapshot: Snapshot, seed: int = 0, new_node: Sequence[Json] = ()
) -> ChangeScript:
    """Return the steps and notes of `change`; `seed` selects the nodes of --fail-fraction.

    `new_node` contains node templates of the instance type for --add-nodes, one for each zone.
    Raises InputError for files that cannot be read and for objects that are missing or not allowed.
    """
    if change.reschedule_order not in (BY_PRIORITY, AS_SCHEDULED):
        problem = f"{change.reschedule_order!r} is not {BY_PRIORITY} or {AS_SCHEDULED}"
        raise InputError(ORDER_OPTION, problem)
    if change.reschedule_order == AS_SCHEDULED and not change.reschedule:
        raise InputError(ORDER_OPTION, "needs --reschedule")
    if change.namespace and not any(getattr(change, name) for name in _NAMING_OPTIONS):
        *others, last = _NAMING_OPTIONS.values()
        which = f"{', '.join(others)} or {last}"
        raise InputError("--namespace", f"has no effect without {which}")
    collected = _Steps(change, snapshot.taken_at, snapshot.inventory())
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


def _unsimulated(collected: _Steps) -> Iterator[Manifest]:
    """Yield the written objects that differ from before and on which no controller acts here."""
    if not collected.written:
        return
    from fairlead.whatif.change.note.unsimulated_workload import is_unsimulated  # noqa: PLC0415

    for one in collected.written.values():
        before = collected.before(one)
        differs = before is None or before.value != one.value
        if differs and one.identity not in collected.resumed and is_unsimulated(one):
            yield one


def _add_notes_on_held_changes(collected: _Steps) -> None:
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


def _add_notes_on_writes(collected: _Steps) -> None:
    """Add notes about unsimulated reactions of Kueue and of controllers to the writes."""
    if collected.written:
        # Imported only if it is needed.
        from fairlead.whatif.change.note.released_object import release_notes  # noqa: PLC0415
        from fairlead.whatif.snapshot.kueue import admission_notes  # noqa: PLC0415

        writes = [(collected.before(one), one) for one in collected.written.values()]
        collected.notes += admission_notes(writes)
        collected.notes += release_notes(writes, collected.inventory)


def _add_notes_on_owners(collected: _Steps) -> None:
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


def _deschedule(collected: _Steps, path: str) -> None:
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


def _drain(collected: _Steps) -> KubectlDrain:
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


def _delete(collected: _Steps) -> None:
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


def _documents(place: int, given: str | PathLike[str] | Mapping[str, Any]) -> list[Document]:
    """Return the documents of `given`, an object or a path.

    `given` is the element with the index `place` of the sequence `ClusterChange.apply`.

    Raises InputError for a file that cannot be read, and for an object with values that JSON lacks.
    """
    if not isinstance(given, Mapping):
        return read(str(given))
    source = f"ClusterChange.apply[{place}]"
    try:
        return [Document(source, json.decode(json.encode(given, enc_hook=_as_dict)))]
    except (TypeError, ValueError) as cause:
        raise InputError(source, f"cannot be written as JSON: {cause}") from None
    except RecursionError:
        raise InputError(source, "cannot be written as JSON: it is nested too deeply") from None


def _as_dict(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it contains an object of the class {type(value).__name__}")


def _applied_text(given: str | PathLike[str] | Mapping[str, Any]) -> str:
    """Return the text for `given` in `ClusterChange.words`.

    The text is the path of the file, or the kind and name of the object.
    """
    if not isinstance(given, Mapping):
        return str(given)
    name = mapping(given.get("metadata")).get("name", "")
    return f"{given.get('kind', 'object')}/{name}".rstrip("/")


def _apply(collected: _Steps) -> None:
    change, inventory, unmanaged = collected.change, collected.inventory, 0
    kept: list[tuple[Manifest, list[str]]] = []
    if change.server_side and not change.apply:
        raise InputError("--server-side", "needs --apply")
    if change.force_conflicts and not change.server_side:
        raise InputError("--force-conflicts", "needs --server-side")
    if not change.apply:
        return
    # Importing the schemas that patches need takes as long as simulating a small cluster.
    from fairlead.whatif.change.kubectl_apply import applied, applied_by_server  # noqa: PLC0415
    from fairlead.whatif.change.note.manifest import kept_fields, manifest_notes  # noqa: PLC0415
    from fairlead.whatif.change.note.unsimulated_workload import unsimulated_notes  # noqa: PLC0415
    from fairlead.whatif.change.owned_object import owner_notes  # noqa: PLC0415
    from fairlead.whatif.snapshot.validation.invalid_object import (  # noqa: PLC0415
        refuse_invalid_change,
        refuse_invalid_object,
    )

    written, owners = _read_manifests(change, inventory)
    found = [manifest for manifest, _ in written]
    _check_applied(found, inventory)
    for manifest, value in sorted(written, key=lambda pair: _rank(pair[0])):
        existing = inventory.get(manifest.kind, manifest.ref.namespace, manifest.ref.name)
        if existing is None:
            new = manifest.without_uid()
            refuse_invalid_object(new, value)
            collected.custom_resources.refuse_invalid([new])
            collected.written[new.ref] = new
            _add_created(inventory, new)
            collected.write(None, new, new.source)
            continue
        if change.server_side:
            force, unmanaged = change.force_conflicts, unmanaged + (not existing.managed_fields)
            result = applied_by_server(existing, value, collected.start, forces_conflicts=force)
        else:
            result = applied(existing, value)
            kept.append((existing, list(kept_fields(existing, value, result))))
        changed = _change_to(collected, existing, result, manifest.source)
        refuse_invalid_change(existing, changed)
    _refuse_invalid_queues(collected)
    refuse_absent_classes(found, inventory, collected.deleted)
    collected.notes += chain(
        owner_notes(owners),
        unsimulated_notes(
            (
                one
                for one in found
                if one.identity not in collected.resumed
                and not any(one is owner for owner in owners)
            ),
            [one.ref for one in found if collected.before(one) is not None],
        ),
        unknown_annotations(found),
        manifest_notes(written, kept, inventory),
        _kept_status(written, inventory),
    )
    if unmanaged and not change.force_conflicts:
        collected.notes.append(NO_MANAGED_FIELDS)


def _check_applied(found: list[Manifest], inventory: Inventory) -> None:
    """Raise InputError if an applied object exceeds a size limit.

    `found` are the objects of the applied files. Also raises InputError if the namespace of an
    object does not exist, or if a pod names a node that does not exist.
    """
    # Imported only if files are applied, as in `_apply`.
    from fairlead.whatif.snapshot.validation.bound_node import refuse_absent_nodes  # noqa: PLC0415
    from fairlead.whatif.snapshot.validation.namespace import refuse_absent_namespaces  # noqa: PLC0415

    refuse_excess(found)
    refuse_absent_namespaces(found, inventory)
    refuse_absent_nodes(found, inventory)


def _read_manifests(
    change: ClusterChange, inventory: Inventory
) -> tuple[list[tuple[Manifest, Json]], list[Manifest]]:
    """Return the objects of the files to apply, and the owners among them.

    Owners are new Jobs of Volcano and new JobSets. The first list contains each object, paired with
    its value as in the file. The first list also contains the objects that the controllers of the
    owners would create: PodGroups and batch/v1 Jobs (`owned_by`). Raises InputError if a file
    cannot be read, if a field is malformed, or if the files contain no object.
    """
    from fairlead.whatif.change.owned_object import (  # noqa: PLC0415
        may_exist,
        owned_by,
        without_repeated_services,
    )
    from fairlead.whatif.change.pod_priority import priorities_in  # noqa: PLC0415
    from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields  # noqa: PLC0415

    namespace = change.namespace or DEFAULT_NAMESPACE
    documents = [
        one for place, given in enumerate(change.apply) for one in _documents(place, given)
    ]
    written = manifests_to_apply(documents, namespace)
    for manifest, _ in written if change.namespace else ():
        if manifest.ref.namespace not in {"", change.namespace}:
            # upstream: cli-runtime/pkg/resource/visitor.go: RequireNamespace
            raise manifest.refuse(
                f"{manifest.ref.namespace} is not the namespace of --namespace "
                f"({change.namespace}); kubectl apply refuses this",
                field="metadata.namespace",
            )
    if documents and not written:
        # upstream: kubectl/pkg/cmd/apply/apply.go: Run (no objects passed to apply)
        raise InputError(documents[0].source, "contains no object")
    refuse_malformed_fields((one for one, _ in written), inventory=inventory)
    classes = priorities_in(inventory.of_kind(PRIORITY_CLASS), (one for one, _ in written))
    owners = [
        (one, owned_by(one, value, priorities=classes))
        for one, value in written
        if inventory.get(one.kind, one.ref.namespace, one.ref.name) is None
    ]
    every = chain.from_iterable(parts for _, parts in owners)
    more = manifests_to_apply(without_repeated_services(every), namespace)
    refuse_malformed_fields(one for one, _ in more)
    taken = {one.ref for one, _ in written}
    new = []
    for one, value in more:
        kind, ref = one.kind, one.ref
        if ref not in taken and inventory.get(kind, ref.namespace, ref.name) is None:
            new.append((one, value))
        elif not may_exist(one):
            problem = "exists already; the applied Job of Volcano or JobSet needs one of this name"
            raise one.refuse(problem)
    return [*written, *new], [one for one, parts in owners if parts]


def _kept_status(written: Iterable[tuple[Manifest, Json]], inventory: Inventory) -> Iterator[str]:
    """Yield a note about Nodes for which the applied file has another status, which is ignored."""
    kept = []
    for manifest, value in written:
        if manifest.kind is NODE and "status" in value:
            now = inventory.get(NODE, "", manifest.ref.name)
            if now is not None and now.value.get("status") != value["status"]:
                kept.append(manifest.ref.name)
    if kept:
        more = f" and {len(kept) - 1:,} more" if len(kept) > 1 else ""
        yield (
            f"--apply changes no status, like kubectl apply: Node {kept[0]}{more}. To change one, "
            f"use --set, such as --set node/{kept[0]}:status.allocatable.cpu=8."
        )


def _change_to(collected: _Steps, existing: Manifest, result: Json, source: str) -> Manifest:
    """Add the step that changes `existing` to `result`; return the changed manifest.

    Raises InputError that names `source` if a field of `result` is malformed, or if the API server
    refuses the change.
    """
    from fairlead.whatif.snapshot.validation.forbidden_change import (  # noqa: PLC0415
        refuse_forbidden_change,
    )
    from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields  # noqa: PLC0415

    changed = replace(existing, content=result, source=source)
    refuse_malformed_fields([changed], existing, collected.inventory)
    refuse_invalid_annotations(changed)
    refuse_forbidden_change(existing, changed)
    if existing.kind not in KINDS:
        from fairlead.whatif.change.owned_object import refuse_invalid_owner  # noqa: PLC0415 - rare

        refuse_invalid_owner(existing, changed, collected.before(existing))
    collected.custom_resources.refuse_invalid([changed], existing)
    collected.written[changed.ref] = changed
    collected.inventory.add(replace(changed, source=existing.source))
    collected.write(existing, changed, source)
    _resume_jobs(collected, existing, changed, source)
    return changed


def _resume_jobs(collected: _Steps, before: Manifest, after: Manifest, source: str) -> None:
    """Add the steps that suspend or resume the Jobs of a JobSet as its controller does."""
    if after.kind.kind != _JOB_SET:
        return
    from fairlead.whatif.change.job_set import resumed_jobs  # noqa: PLC0415 - rarely needed

    for job in resumed_jobs(before, after, collected.inventory):
        collected.resumed.update((after.identity, job.identity))
        known = collected.inventory.get(job.kind, job.ref.namespace, job.ref.name)
        if known is not None:
            _change_to(collected, known, job.value, source)


def _refuse_invalid_queues(collected: _Steps) -> None:
    """Raise InputError if Volcano refuses a Queue that the change has written so far."""
    queues = [one for one in collected.written.values() if one.kind.kind == _QUEUE]
    if not queues:
        return
    from fairlead.whatif.snapshot.validation.volcano_queue import (  # noqa: PLC0415 - rarely needed
        refuse_invalid_queue,
    )

    for queue in queues:
        refuse_invalid_queue(
            queue, collected.before(queue), collected.inventory.of_kind(queue.kind)
        )


def _write_of(before: Manifest | None, after: Manifest) -> tuple[Command, ...]:
    """Return the commands that change `before` to `after`.

    If `before` is None, the command creates `after`.
    """
    if before is None:
        return (commands.create(after),)
    from fairlead.whatif.change.kubectl_apply import merge_patch_between  # noqa: PLC0415

    return tuple(commands.patch(before.ref, merge_patch_between(before.value, after.value)))


def _edit(collected: _Steps) -> None:
    change, inventory = collected.change, collected.inventory
    if not (change.priority_class or change.apply_vpa or change.set or change.set_resources):
        return
    from fairlead.whatif.change.edit.edited_field import EditedFields  # noqa: PLC0415 - rarely needed
    from fairlead.whatif.change.edit.object_edit import (  # noqa: PLC0415 - imports schemas (`_apply`)
        PRIORITY,
        with_priority,
    )

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


def _set_fields(collected: _Steps, fields: EditedFields) -> None:
    """Add the steps of --set and --set-resources, and record the edited fields in `fields`.

    Raises InputError for an edit that is malformed, or that the API server would refuse.
    """
    from fairlead.whatif.change.edit.object_edit import (  # noqa: PLC0415 - imports schemas (`_apply`)
        SET,
        SET_RESOURCES,
        with_field,
        with_resources,
    )
    from fairlead.whatif.change.note.unsimulated_workload import unsimulated_notes  # noqa: PLC0415
    from fairlead.whatif.snapshot.validation.invalid_object import (  # noqa: PLC0415
        refuse_invalid_change,
    )

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
            change_to = _resize if edit.is_resize else _change_to
            changed = change_to(collected, edit.target, edit.content, option)
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
    _refuse_invalid_queues(collected)
    unsimulated = [one for one in edited.values() if one.identity not in collected.resumed]
    collected.notes += [
        note for note in unsimulated_notes(unsimulated, edited) if note not in collected.notes
    ]


def _resize(collected: _Steps, pod: Manifest, result: Json, source: str) -> Manifest:
    """Add the step that gives the containers of `pod` the resources that they have in `result`.

    Returns the changed manifest. Raises InputError that names `source` if a field of `result` is
    malformed, or if the pod has completed.
    """
    from fairlead.whatif.change.edit.pod_resize import (  # noqa: PLC0415 - rarely needed
        resize_notes,
        resize_of,
    )
    from fairlead.whatif.snapshot.validation.unknown_field import refuse_wrong_types  # noqa: PLC0415

    changed = replace(pod, content=result, source=source)
    refuse_wrong_types(changed, pod)
    notes = resize_notes(pod, result, source)
    collected.notes += [note for note in notes if note not in collected.notes]
    collected.inventory.add(replace(changed, source=pod.source))
    collected.add(changed.title, source, resize_of(pod.ref, result))
    return changed


def _apply_recommendations(collected: _Steps, fields: EditedFields) -> None:
    from fairlead.whatif.change.edit.vertical_pod_autoscaler import (  # noqa: PLC0415 - rarely needed
        OPTION,
        recommended_edits,
    )

    for edit in recommended_edits(collected.inventory, collected.change.namespace):
        collected.notes.append(edit.note)
        if edit.target is not None:
            fields.add(OPTION, edit.target, edit.places)
            changed = _change_to(collected, edit.target, edit.content, OPTION)
            refuse_excess([changed])


def _add_notes_on_absent_autoscalers(collected: _Steps, snapshot: Snapshot) -> None:
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


def _models(change: ClusterChange, inventory: Inventory) -> Models | None:
    """Return the nodes that --like names, before the change; None if --like is not set.

    Raises InputError.
    """
    if change.add_nodes is None:
        for option, value in (("--like", change.like), ("--instance-type", change.instance_type)):
            if value:
                raise InputError(option, "needs --add-nodes")
    if not change.like:
        return None
    from fairlead.whatif.change.new_node import find_models  # noqa: PLC0415 - rarely needed

    found = find_models(change.like, inventory)
    if change.instance_type and len(found.turn) > 1:
        problem = (
            "can name only one node with --instance-type, because the zones of the type, not of "
            "--like, decide where new nodes are; name the node whose labels and taints they get"
        )
        raise InputError("--like", problem)
    return found


def _scale(collected: _Steps) -> None:
    if not collected.change.scale:
        return
    from fairlead.whatif.change.edit.scale import (  # noqa: PLC0415 - rarely needed
        metric_scaler,
        metric_scalers_note,
        other_scaler,
        parse_scale,
        refused_scale,
        scalable_part,
    )
    from fairlead.whatif.change.note.held_rollout import (  # noqa: PLC0415 - rarely needed
        held_in_order,
        held_scaling,
        ignores_change,
    )

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


def _add_nodes(collected: _Steps, models: Models | None, templates: Sequence[Json]) -> None:
    count, start = collected.change.add_nodes, collected.start
    if count is None:
        return
    from fairlead.whatif.change.new_node import OPTION, new_nodes  # noqa: PLC0415 - rarely needed

    for new in new_nodes(count, models, templates, collected.inventory, start):
        _add_created(collected.inventory, new)
        step = ScriptedStep(0, (commands.create(new),), OPTION, new.title)
        collected.new_nodes.append(step)


def _add_created(inventory: Inventory, manifest: Manifest) -> None:
    """Add the object `manifest`, which the change creates, to `inventory`."""
    if manifest.kind is NODE:
        inventory.add_new_node(manifest)
    else:
        inventory.add(manifest)


def _rank(manifest: Manifest) -> int:
    """Return the sort key of a manifest: kinds that other kinds refer to come first."""
    return _FIRST.index(manifest.kind) if manifest.kind in _FIRST else len(_FIRST)


def _nodes_to_cordon(option: str, texts: tuple[str, ...], collected: _Steps) -> Iterator[str]:
    """Yield the names of the nodes that `texts` select, in the order of `texts`, each once.

    Raises InputError for a node that does not exist, or whose `spec.unschedulable` an edit also
    sets.
    """
    inventory = collected.inventory
    for name in dict.fromkeys(name for text in texts for name in inventory.nodes(option, text)):
        node = inventory.get(NODE, "", name)
        if node is not None:
            collected.refuse_edited(option, node, "unschedulable")
        yield name
