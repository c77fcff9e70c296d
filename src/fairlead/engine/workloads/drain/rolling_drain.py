"""RollingDrains: drains nodes one after another and returns them to service, as upgrades do.

    waiting ──▶ draining ──▶ empty, down for a while ──▶ uncordoned, back in service
                                └── or stays cordoned, with `away=forever`

The Node annotation `fairlead.dev/drain-in-turn: max-unavailable=1 away=5m0s …` starts a rolling
drain. Nodes with exactly the same annotation form a group. The nodes of a group are drained in the
order in which they were annotated. At most `max-unavailable` of these nodes are draining or down at
a time. If `away` is `forever`, only draining nodes count. So the next drain starts when a node is
empty.

This controller requests each drain by writing the annotation `fairlead.dev/drain` to the node.
`drain.controller` drains the node. A node whose drain is blocked by a disruption budget still
counts as draining, so the blocked drain can delay the drains of other nodes. If a node is deleted
or loses its annotation `drain-in-turn`, the next node follows. A node that was cordoned before its
drain stays cordoned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Node
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import DurationNs, Instant, earliest, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.node_annotation import DONE, DRAIN, IN_TURN, REQUESTED

RETRY_AFTER: Final[DurationNs] = seconds(1)
FOREVER: Final = "forever"
_FORM: Final = re.compile(r"max-unavailable=([1-9][0-9]{0,8}) away=([0-9.a-z]+)(?: .*)?")


class RollingDrainOptions(Struct, frozen=True):
    """Options of a rolling drain: at most `max_unavailable` nodes are draining or down at a time.

    Each node stays down for `away` nanoseconds after it is empty. If `away` is None, the node stays
    down forever, and counts towards `max_unavailable` only while it is draining. `str()` of the
    options is the value of the annotation `drain-in-turn`. The text in `which` is appended to this
    value. So two groups of nodes with different texts get different values, even if the other
    options are equal.
    """

    max_unavailable: int
    away: DurationNs | None
    which: str = ""

    def __str__(self) -> str:
        """Return the options as the value of the annotation `drain-in-turn`."""
        away = FOREVER if self.away is None else f"{self.away}ns"
        return f"max-unavailable={self.max_unavailable} away={away} {self.which}".rstrip()


def parse_options(text: str) -> RollingDrainOptions | None:
    """Return the options in an annotation's value, or None if the value cannot be parsed.

    The value has two options, `max-unavailable` and `away`. Text after these options is ignored.
    So the field `which` of the result is always "".
    """
    matched = _FORM.fullmatch(text)
    if matched is None:
        return None
    if matched[2] == FOREVER:
        return RollingDrainOptions(int(matched[1]), None)
    try:
        away = parse_duration(matched[2])
    except ValueError:
        return None
    return RollingDrainOptions(int(matched[1]), away) if away >= 0 else None


class _Group(Struct):
    """The nodes of a rolling drain, by name.

    `waiting` contains the nodes whose drain has not begun. `begun` contains the nodes that are
    draining or down. For each node, `waiting` and `begun` state whether it was cordoned before the
    rolling drain. `empty` contains the nodes of `begun` that are drained and down.
    """

    options: RollingDrainOptions
    waiting: dict[str, bool] = field(default_factory=dict)
    begun: dict[str, bool] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)  # never iterated


class RollingDrains:
    """Drains the nodes of each rolling drain, a limited number at a time."""

    issuer: ClassVar[Issuer] = controller_account("node-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), deleted=(Node,), succeeded=(), failed=(PatchObject,)
    )

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}  # by annotation value
        self._text_of: dict[str, str] = {}  # node -> annotation value
        self._returns: TimerQueue[tuple[_Group, str]] = TimerQueue()
        self._retries: TimerQueue[PatchObject] = TimerQueue()

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Start, continue or cancel the rolling drains that `stimulus` affects."""
        if type(stimulus) is ObjectChanged:
            changed = stimulus.object
            return self._observe(changed, now) if type(changed) is Node else []
        match stimulus:
            case ObjectDeleted(Node() as node):
                return self._leave(node.metadata.name)
            case ObjectsLoaded():
                return self._load(stimulus.others, now)
            case CommandFailed(PatchObject() as patch, reason) if self._is_needed(patch):
                if reason is not FailureReason.NOT_FOUND:
                    self._retries.add(now + RETRY_AFTER, patch)
                return []
            case _:
                return []

    def next_deadline(self) -> Instant | None:
        """Return the next time at which a node returns to service or a refused patch is retried.

        Returns None if there is no such time.
        """
        return earliest(self._returns.next_due(), self._retries.next_due())

    def is_waiting(self) -> bool:
        """Return whether a drained node is scheduled to return to service."""
        return self._returns.next_due() is not None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the patches that are due.

        A patch ends the rolling drain of a node that has been empty for the time `away`, or repeats
        a patch that was refused.
        """
        back = [
            _end_drain(name, was_cordoned=group.begun[name])
            for group, name in self._returns.pop_due(now)
            if name in group.begun and self._group_of(name) is group
        ]
        retried = (patch for patch in self._retries.pop_due(now) if self._is_needed(patch))
        return [*back, *retried]

    def _is_needed(self, patch: PatchObject) -> bool:
        """Return True if this controller sent `patch` and the node still needs the change."""
        if patch.target.kind != "Node":
            return False
        name, change = patch.target.name, patch.patch.get("metadata", {}).get("annotations", {})
        group = self._group_of(name)
        if group is None or name not in group.begun or DRAIN not in change:
            return False
        wanted = None if name in group.empty else REQUESTED
        is_wanted: bool = change[DRAIN] == wanted
        return is_wanted

    def _group_of(self, name: str) -> _Group | None:
        return self._groups.get(self._text_of.get(name, ""))

    def _load(self, objects: Sequence[ApiObject], now: Instant) -> list[Command]:
        return [c for one in objects if isinstance(one, Node) for c in self._observe(one, now)]

    def _observe(self, node: Node, now: Instant) -> list[Command]:
        name, annotations = node.metadata.name, node.metadata.annotations
        text = annotations.get(IN_TURN, "")
        commands: list[Command] = []
        if self._text_of.get(name, "") != text:
            commands += self._leave(name)
            commands += self._join(node, text)
        group = self._groups.get(text)
        if group and annotations.get(DRAIN) == DONE and name in group.begun.keys() - group.empty:
            if group.options.away is None:
                del group.begun[name]
                return [*commands, *self._begin(group)]
            group.empty.add(name)
            self._returns.add(now + group.options.away, (group, name))
        return commands

    def _join(self, node: Node, text: str) -> list[Command]:
        options = parse_options(text)
        if options is None:
            return []
        name = node.metadata.name
        group = self._groups.setdefault(text, _Group(options))
        self._text_of[name] = text
        if node.metadata.annotations.get(DRAIN):  # its drain began before this controller started
            group.begun[name] = False
        else:
            group.waiting[name] = node.spec.unschedulable
        return self._begin(group)

    def _leave(self, name: str) -> list[Command]:
        """Remove the node `name` from its group, and begin the next drains of the group."""
        group = self._groups.get(self._text_of.pop(name, ""))
        if group is None:
            return []
        group.waiting.pop(name, None)
        group.begun.pop(name, None)
        group.empty.discard(name)
        return self._begin(group)

    def _begin(self, group: _Group) -> list[Command]:
        commands: list[Command] = []
        while group.waiting and len(group.begun) < group.options.max_unavailable:
            name = next(iter(group.waiting))
            group.begun[name] = group.waiting.pop(name)
            commands.append(_patch(name, {DRAIN: REQUESTED}, {"unschedulable": True}))
        return commands


def _end_drain(name: str, *, was_cordoned: bool) -> PatchObject:
    spec = {} if was_cordoned else {"unschedulable": None}
    return _patch(name, {DRAIN: None, IN_TURN: None}, spec)


def _patch(
    name: str, annotations: Mapping[str, str | None], spec: Mapping[str, Any]
) -> PatchObject:
    patch: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}}
    if spec:
        patch["spec"] = dict(spec)
    return PatchObject(ObjectRef("Node", "", name), patch)
