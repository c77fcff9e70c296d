"""Timed events of a scenario: each has an instant `at` and one verb.

    {at: 5m, create: {…object…}, count: 100, over: 10m}    100 copies at random times in 10 minutes
    {at: 5m, create: jobs.yaml, count: 10, every: 30s}     the file 10 times, 30 s apart
    {at: 5m, delete: pod/store/web-1}    or node/key=value (by label), or a list of both forms
    {at: 5m, patch: {target: deploy/store/web, merge: {spec: {…}}}}
    {at: 5m, cordon: node-1}   or key=value; likewise: uncordon, drain, stop-node, return-node
    {at: 5m, drain: pool=a, max-unavailable: 1, for: 5m}        rolling; each node is down for 5m
    {at: 5m, scale: deploy/store/web=20}
    {at: 5m, fail-zone: zone-a, for: 20m}                       permanently without `for`
    {at: 5m, fail-node: pool=a, how: paused, for: 20m}
    {at: 5m, fail-fraction: 0.6@zone-a, for: 20m}               60 % of the nodes of zone-a
    {at: 5m, flap: node-1@60s/120s, for: 1h}                    down for 60 s, up for 120 s
    {at: 5m, out-of-capacity: "zone=a,type=m5.large", for: 20m}  no such machines for an autoscaler

Names are checked before the run, against the initial objects and the objects that earlier events
create. If `count` is set, the number of each copy is appended to its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE, PRIORITY_CLASS
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change import commands
from fairlead.whatif.change.deletion import deleted_with
from fairlead.whatif.change.edit.field_path import UNCHANGEABLE
from fairlead.whatif.change.edit.scale import parse_scale
from fairlead.whatif.change.node_outage.node_selection import fraction_of_nodes
from fairlead.whatif.change.node_outage.outage import READY, STOPPED, Outage, ends_of
from fairlead.whatif.change.owned_object import (
    may_exist,
    owned_by,
    without_repeated_services,
)
from fairlead.whatif.change.pod_priority import priorities_in
from fairlead.whatif.change.rolling_drain import rolling_drain
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.autoscaling.autoscaler import refuse_invalid_karpenter_objects
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    StatedOutage,
    capacity_outage,
)
from fairlead.whatif.input.document import Document, read
from fairlead.whatif.input.error import InputError, named_by
from fairlead.whatif.input.seeded_choice import draws
from fairlead.whatif.input.strict_form import FileName, StrictForm, field_duration
from fairlead.whatif.scenario.timed_outage import FAILURE_FIELDS, EventField, NodeFailure, outage_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import (
    manifests,
    manifests_to_apply,
    refuse_invalid_annotations,
)
from fairlead.whatif.snapshot.pod_spec import with_complete_pods
from fairlead.whatif.snapshot.validation.custom_resource_check import CustomResourceCheck
from fairlead.whatif.snapshot.validation.priority_class import refuse_absent_classes
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields

COPIES_MAX: Final = 1_000_000

Duration = str | int | float


class PatchForm(StrictForm, frozen=True, kw_only=True):
    """The field `patch` of an event; `merge` is an RFC 7386 merge patch."""

    target: str
    merge: dict[str, Any]


class TimedEvent(StrictForm, frozen=True, kw_only=True):
    """One event; exactly one field says what happens (_VERBS), such as `create` or `drain`."""

    at: Duration
    create: dict[str, Any] | list[Any] | FileName | None = None
    delete: str | list[str] | None = None
    patch: PatchForm | None = None
    cordon: str | None = None
    uncordon: str | None = None
    drain: str | None = None
    scale: str | None = None
    stop_node: str | None = None
    return_node: str | None = None
    fail_zone: str | None = None
    fail_node: str | None = None
    fail_fraction: str | float | None = None
    flap: str | None = None
    out_of_capacity: str | None = None
    count: int | None = None
    over: Duration | None = None
    every: Duration | None = None
    for_: Duration | None = None
    how: str | None = None
    max_unavailable: int | str | None = None


_VERBS: Final = (
    "create", "delete", "patch", "cordon", "uncordon", "drain", "scale", "stop_node", "return_node",
    "out_of_capacity",
    *FAILURE_FIELDS,
)  # fmt: skip
# Fields that are allowed only with certain verbs.
_MODIFIERS: Final = {
    "count": ("create",),
    "over": ("create",),
    "every": ("create",),
    "for_": (*FAILURE_FIELDS, "drain", "out_of_capacity"),
    "how": FAILURE_FIELDS[:-1],
    "max_unavailable": ("drain",),
}


def steps_of(
    source: str, folder: Path, events: Iterable[TimedEvent], inventory: Inventory, seed: int
) -> tuple[list[ScriptedStep], list[Manifest], list[Manifest]]:
    """Return (steps, created objects, patched objects) of all events; the steps are not sorted.

    Created objects are as written in the events. If an event has a `count`, its object is returned
    once, but all copies are added to `inventory`. A patched object replaces the object in
    `inventory`, so each event is checked against the objects as earlier events leave them. `source`
    is the scenario file; the names of files in it are relative to `folder`. Raises InputError.
    """
    custom_resources = CustomResourceCheck(inventory)
    numbered = [
        _NumberedEvent(source, folder, number, event, seed, custom_resources)
        for number, event in enumerate(events)
    ]
    steps: list[ScriptedStep] = []
    outages: list[tuple[_NumberedEvent, Outage]] = []
    deleted: set[ObjectRef] = set()
    for event in sorted(numbered, key=lambda event: event.at):
        steps.extend(event.steps(inventory, deleted))
        if event.outage is not None:
            outages.append((event, event.outage))
    ending = (event for event, outage in outages if outage.lasts is not None)
    ends = zip(ending, ends_of([outage for _, outage in outages]), strict=True)
    # Steps at the same instant keep their order. Those that end outages come first, so that another
    # outage of the same node can begin at this instant.
    steps = [*(event.with_later_nodes(end) for event, end in ends), *steps]
    created = [one for event in numbered for one in event.originals]
    return steps, created, [event.patched for event in numbered if event.patched is not None]


def late_event_notes(
    source: str, events: Iterable[TimedEvent], duration: Duration
) -> Iterator[str]:
    """Yield a note about events after the scenario's `duration`. Raises InputError."""
    end = field_duration(source, "duration", duration) or 0
    late = [
        f"events[{number}] at {event.at}"
        for number, event in enumerate(events)
        if (field_duration(source, f"events[{number}].at", event.at) or 0) > end
    ]
    if late:
        verb = "does" if len(late) == 1 else "do"
        yield (
            f"{listed(late)} {verb} not happen: the scenario ends before (duration: {duration})."
        )


def capacity_outages_of(source: str, events: Iterable[TimedEvent]) -> list[StatedOutage]:
    """Return the capacity outages among the events of `source`. Raises InputError."""
    found: list[StatedOutage] = []
    for number, event in enumerate(events):
        if event.out_of_capacity is not None:
            name = f"events[{number}]"
            begin = field_duration(source, f"{name}.at", event.at) or 0
            lasts = field_duration(source, f"{name}.for", event.for_)
            where = f"{name}.out-of-capacity"
            found.append(capacity_outage(source, where, event.out_of_capacity, begin, lasts))
    return found


class _NumberedEvent:
    """An event and its index in the file; the constructor validates instant, verb and modifiers."""

    def __init__(
        self,
        source: str,
        folder: Path,
        number: int,
        event: TimedEvent,
        seed: int,
        custom_resources: CustomResourceCheck,
    ) -> None:
        self._source = source
        self._folder = folder
        self._event = event
        self._number = number
        self._seed = seed
        self._field = f"events[{number}]"
        self.at = field_duration(source, f"{self._field}.at", event.at) or 0
        self._verb = self._only_verb()
        self._check_modifiers()
        self._custom_resources = custom_resources
        self.originals: list[Manifest] = []  # the created objects; set by `steps`
        self.patched: Manifest | None = None  # set by `steps`
        self.outage: Outage | None = None  # set by `steps`, which do not contain its end

    def steps(self, inventory: Inventory, deleted: set[ObjectRef]) -> Iterator[ScriptedStep]:
        """Yield the steps of this event. Raises InputError.

        `deleted` contains the objects in `inventory` that earlier events delete. This method adds
        the objects that this event deletes to `deleted`. It removes from `deleted` the objects that
        this event creates again.
        """
        if self._event.create is not None:
            self.originals = self._originals(self._event.create, inventory)
            yield from self._create_steps(inventory, deleted)
            return
        event = self._event
        if event.out_of_capacity is not None:
            # The provider has the outage; the steps make the run last until the outage ends.
            for after in (self.at, self.at + (self._lasts() or 0)):
                yield ScriptedStep(after, (), self._source, self._field)
            return
        self.outage = self._outage(inventory)
        if self.outage is not None:
            yield replace(self.outage.begin(), commands_for=self._commands_for)
            return
        made = tuple(self._commands(inventory, deleted))
        step = ScriptedStep(self.at, made, self._source, f"{self._field}.{self._verb}")
        selects_nodes = self._verb in _NODE_COMMANDS
        yield replace(step, commands_for=self._commands_for) if selects_nodes else step

    def _commands_for(self, nodes: Sequence[Json]) -> tuple[Command, ...]:
        """Return the commands of this event for the present `nodes`. Raises InputError."""
        inventory = Inventory(manifests([Document(self._source, nodes)]))
        outage = self._outage(inventory)
        return (
            tuple(self._commands(inventory, set())) if outage is None else outage.begin().commands
        )

    def with_later_nodes(self, step: ScriptedStep) -> ScriptedStep:
        """Return a copy of `step` that also ends the outage of later nodes.

        `step` ends the outage of this event. A later node is a node that was created during the
        run, and that the outage affects.
        """
        return replace(step, commands_for=partial(self._end_for, step.commands))

    def _end_for(self, prepared: Sequence[Command], nodes: Sequence[Json]) -> tuple[Command, ...]:
        """Return the commands that end the outage of the nodes in `nodes`.

        `prepared` contains the commands for nodes that existed at the start of the run. For a later
        node that the outage affects, a new command is made.
        """
        outage = self.outage
        assert outage is not None
        found = Inventory(manifests([Document(self._source, nodes)]))
        present = {one.ref.name: one.node.metadata.annotations for one in found.of_kind(NODE)}
        kept = (
            one for one in prepared if isinstance(one, PatchObject) and one.target.name in present
        )
        later = (
            commands.return_node(name)
            for name in self._affected(found)
            if name not in outage.nodes and present[name].get(KUBELET) == outage.behaviour
        )
        return (*kept, *later)

    def _affected(self, inventory: Inventory) -> Sequence[str]:
        """Return the nodes that the outage of this event can affect. Raises InputError."""
        fraction = self._event.fail_fraction
        if fraction is not None:
            zone = str(fraction).partition("@")[2]
            return fraction_of_nodes(
                self._where, f"100%@{zone}" if zone else "100%", inventory, self._seed
            )
        outage = self._outage(inventory)
        return () if outage is None else outage.nodes

    def _outage(self, inventory: Inventory) -> Outage | None:
        """Return the outage that this event begins; None if its verb begins no outage."""
        event = self._event
        if any(getattr(event, verb) is not None for verb in FAILURE_FIELDS):
            where = EventField(self._source, self._field, self._verb)
            chosen = NodeFailure(event, inventory, self._seed)
            return outage_of(where, chosen, self.at, self._lasts())
        text = event.return_node if event.stop_node is None else event.stop_node
        if text is None:
            return None
        return Outage(
            source=self._source,
            what=f"{self._field}.{self._verb}",
            nodes=tuple(inventory.nodes(self._where, text)),
            at=self.at,
            behaviour=READY if event.stop_node is None else STOPPED,
        )

    def _only_verb(self) -> str:
        given = [verb for verb in _VERBS if getattr(self._event, verb) is not None]
        if len(given) == 1:
            return given[0].replace("_", "-")
        known = ", ".join(verb.replace("_", "-") for verb in _VERBS)
        what = " and ".join(given).replace("_", "-") if given else "no verb"
        raise InputError(
            self._source, f"has {what}; expected exactly one of {known}", field=self._field
        )

    def _check_modifiers(self) -> None:
        event = self._event
        verb = self._verb.replace("-", "_")
        if event.delete == []:
            self._refuse("names no object", "delete")
        for field, verbs in _MODIFIERS.items():
            if getattr(event, field) is not None and verb not in verbs:
                which = ", ".join(verbs).replace("_", "-")
                self._refuse(f"is only allowed with {which}", field.strip("_").replace("_", "-"))
        if event.for_ is not None and event.drain is not None and event.max_unavailable is None:
            self._refuse("needs max-unavailable if used with drain", "for")
        if event.over is not None and event.every is not None:
            self._refuse("cannot be combined with over", "every")
        if event.every is not None and event.count is None:
            self._refuse("needs count", "every")
        if event.count is not None and not 1 <= event.count <= COPIES_MAX:
            self._refuse(f"{event.count} is not from 1 to {COPIES_MAX}", "count")

    def _refuse(self, problem: str, field: str) -> None:
        raise InputError(self._source, problem, field=f"{self._field}.{field}")

    def _create_steps(
        self, inventory: Inventory, deleted: set[ObjectRef]
    ) -> Iterator[ScriptedStep]:
        originals = self.originals
        found = [*originals, *_owned(originals, inventory)]
        refuse_absent_classes(found, Inventory([*inventory.of_kind(PRIORITY_CLASS), *found]))
        count = self._event.count or 1
        for number, after in enumerate(self._instants(count)):
            for original in originals:
                copy = original if self._event.count is None else _copy(original, number, count)
                for one in (copy, *_owned([copy], inventory)):
                    known = inventory.get(one.kind, one.ref.namespace, one.ref.name)
                    if known is not None and known.ref not in deleted:
                        if one is not copy and may_exist(one):
                            continue
                        self._refuse(f"{one.title} already exists", "create")
                    deleted.discard(one.ref)
                    inventory.add(one)
                    yield ScriptedStep.creating(after, one)

    def _originals(self, create: Json | list[Any] | str, inventory: Inventory) -> list[Manifest]:
        """Return the objects of `create`, checked as kubectl apply checks them.

        `inventory` are the objects of the cluster at the instant of the event.
        """
        if isinstance(create, str):
            with named_by(self._source, f"{self._field}.create"):
                written = manifests_to_apply(with_complete_pods(read(str(self._folder / create))))
        else:
            where = f"{self._source}: {self._field}.create"
            written = manifests_to_apply(with_complete_pods([Document(where, create)]))
        found = [one for one, _ in written]
        if not found:
            self._refuse("contains no object", "create")
        refuse_malformed_fields(found, inventory=inventory)
        self._custom_resources.refuse_invalid(found)
        refuse_invalid_karpenter_objects(found)
        parts = (part for one, value in written for part in owned_by(one, value))
        more = manifests(without_repeated_services(parts))
        refuse_malformed_fields(more)
        refuse_excess([*found, *more])
        return [one.without_uid() for one in found]

    def _instants(self, count: int) -> list[DurationNs]:
        """Return the creation time of each copy: all copies at `at`, at intervals, or at random."""
        every = field_duration(self._source, f"{self._field}.every", self._event.every)
        over = field_duration(self._source, f"{self._field}.over", self._event.over)
        if every is not None:
            return [self.at + number * every for number in range(count)]
        if over is not None:
            purpose = self._number + 1  # random numbers with purpose 0 shuffle traces
            return sorted(
                self.at + d % (over + 1) for d in islice(draws(self._seed, purpose), count)
            )
        return [self.at] * count

    @property
    def _where(self) -> str:
        return f"{self._source}: {self._field}.{self._verb}"

    def _lasts(self) -> DurationNs | None:
        return field_duration(self._source, f"{self._field}.for", self._event.for_)

    def _patch(self, target: Manifest, merge: Json, inventory: Inventory) -> list[Command]:
        patched = merge_patch(target.value, merge)
        for path in UNCHANGEABLE:
            if _field(patched, path) != _field(target.value, path):
                self._refuse("cannot be changed", f"patch.merge.{path}")
        after = replace(
            target, source=f"{self._source}: {self._field}.patch.merge", content=patched
        )
        refuse_invalid_annotations(after)
        refuse_malformed_fields([after], before=target, inventory=inventory)
        self._custom_resources.refuse_invalid([after], before=target)
        refuse_invalid_karpenter_objects([after])
        refuse_excess([after])
        self.patched = after
        inventory.add(after)
        return commands.patch(target.ref, merge)

    def _rolling_drain(
        self, text: str, unavailable: int | str, inventory: Inventory
    ) -> Iterator[Command]:
        field, names = f"{self._field}.max-unavailable", inventory.nodes(self._where, text)
        down = self._lasts() or 0
        options = rolling_drain(self._source, unavailable, len(names), down, text, field=field)
        for name in names:
            yield commands.rolling_drain(name, options)

    def _commands(self, inventory: Inventory, deleted: set[ObjectRef]) -> Iterator[Command]:
        where = self._where
        match self._event:
            case TimedEvent(delete=str() | list() as targets):
                for text in [targets] if isinstance(targets, str) else targets:
                    for one in inventory.select(where, text):
                        *contents, target = deleted_with(where, one, inventory)
                        parts = _created_with(target, inventory, deleted)
                        deleted.update(each.ref for each in (*contents, target, *parts))
                        yield from (commands.delete(each.ref) for each in (target, *parts))
            case TimedEvent(patch=PatchForm() as form):
                yield from self._patch(inventory.find(where, form.target), form.merge, inventory)
            case TimedEvent(scale=str(text)):
                yield parse_scale(where, text, inventory)
            case TimedEvent(drain=str(text), max_unavailable=int() | str() as unavailable):
                yield from self._rolling_drain(text, unavailable, inventory)
            case event:
                text = event.cordon or event.uncordon or event.drain or ""
                make = _NODE_COMMANDS[self._verb]
                yield from (make(name) for name in inventory.nodes(where, text))


def _field(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


_NODE_COMMANDS: Final[dict[str, Callable[[str], Command]]] = {
    "cordon": commands.cordon,
    "uncordon": commands.uncordon,
    "drain": commands.drain,
}


def _owned(created: Sequence[Manifest], inventory: Inventory) -> list[Manifest]:
    """Return the objects that controllers of custom resources would create for `created`."""
    classes = priorities_in(inventory.of_kind(PRIORITY_CLASS), created)
    parts = (part for one in created for part in owned_by(one, priorities=classes))
    return manifests(without_repeated_services(parts))


def _created_with(
    target: Manifest, inventory: Inventory, deleted: set[ObjectRef]
) -> list[Manifest]:
    """Return the objects that an earlier event created in addition to `target`.

    These objects do not have `target` as their owner, so garbage collection would keep them. If
    `target` has a uid, it is from a dump. The controller of `target` then created the objects with
    `target` as their owner, and the result is []. Objects that may have existed before the event,
    such as a Service, are not returned either.
    """
    parts = [] if target.ref.uid else _owned([target], inventory)
    known = (inventory.get(one.kind, one.ref.namespace, one.ref.name) for one in parts)
    return [
        one for one in known if one is not None and not may_exist(one) and one.ref not in deleted
    ]


def _copy(original: Manifest, number: int, count: int) -> Manifest:
    """Return a copy of `original` with `number` appended to its name."""
    name = f"{original.ref.name}-{number:0{len(str(count - 1))}}"
    value: Json = {**original.value, "metadata": {**original.value["metadata"], "name": name}}
    return manifests([Document(original.source, value)], original.ref.namespace)[0]
