"""NodeWrites: the writes to nodes, one after the other for each node.

    submit ──▶ waiting ──▶ sent ──▶ done
                  ▲          │ conflict: wait for a newer version of the node
                  └──────────┘

An edit is worked out when its turn comes, from the newest version known then. Where somebody else
was faster it is worked out again from what they left, as upstream does after a moment; here as
soon as that is known. Other refusals end it, and whoever submitted it is told.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.command import Command, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.node_edit import (
    AddNoSchedule,
    CopyLabels,
    FindNode,
    NodeEdit,
    RemoveNoSchedule,
    SilenceConditions,
)

LEVEL: Final = (AddNoSchedule, RemoveNoSchedule, CopyLabels)


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of an edit: `failure` is None when it was done; `is_over` unless it is retried."""

    node: str
    edit: NodeEdit
    failure: FailureReason | None
    is_over: bool = True


@dataclass(slots=True)
class _Desk:
    """The edits of one node: the first one is at work, as `sent` or (None) until it can be."""

    edits: deque[NodeEdit] = field(default_factory=deque)
    sent: Command | None = None
    refused_version: str = ""


class NodeWrites:
    """Edits by node; `find` gives the newest version known of a node."""

    def __init__(self, find: FindNode) -> None:
        """Nothing to write yet."""
        self._find = find
        self._desks: dict[str, _Desk] = {}

    def submit(self, name: str, edits: tuple[NodeEdit, ...], now: Instant) -> list[Command]:
        """Do `edits` in order, after what waits already.

        Those that make true whatever the node's state asks for need to wait only once.
        """
        desk = self._desks.setdefault(name, _Desk())
        waiting = list(desk.edits)[0 if desk.sent is None else 1 :]
        desk.edits.extend(e for e in edits if not (isinstance(e, LEVEL) and e in waiting))
        return self._go_on(name, now) if desk.sent is None else []

    def is_silencing(self, name: str) -> bool:
        """Whether a write of the node's conditions is under way."""
        desk = self._desks.get(name)
        return desk is not None and any(isinstance(one, SilenceConditions) for one in desk.edits)

    def see_node(self, name: str, now: Instant) -> list[Command]:
        """Go on with what waits: a newer version of the node is known, or a write was answered."""
        desk = self._desks.get(name)
        return self._go_on(name, now) if desk is not None and desk.sent is None else []

    def forget(self, name: str) -> None:
        """The node is gone, and nothing is left to write."""
        self._desks.pop(name, None)

    def settle(self, outcome: CommandSucceeded | CommandFailed) -> Settled | None:
        """What the outcome of a command settles, None when it was not ours.

        `see_node` goes on with what waits.
        """
        command = outcome.command
        if not isinstance(command, PatchObject | PatchStatus) or command.target.kind != "Node":
            return None
        desk = self._desks.get(command.target.name)
        if desk is None or desk.sent != command:
            return None
        desk.sent = None
        failure = outcome.reason if isinstance(outcome, CommandFailed) else None
        edit = desk.edits[0]
        if failure is FailureReason.CONFLICT and not isinstance(edit, SilenceConditions):
            desk.refused_version = _version_of(command)
            return Settled(command.target.name, edit, failure, is_over=False)
        desk.edits.popleft()
        return Settled(command.target.name, edit, failure)

    def _go_on(self, name: str, now: Instant) -> list[Command]:
        desk, node = self._desks[name], self._find(name)
        while node is not None and desk.edits:
            if desk.refused_version and desk.refused_version == node.metadata.resource_version:
                return []
            desk.refused_version = ""
            desk.sent = desk.edits[0].command(node, now)
            if desk.sent is not None:
                return [desk.sent]
            desk.edits.popleft()
        del self._desks[name]
        return []


def _version_of(command: PatchObject | PatchStatus) -> str:
    if isinstance(command, PatchStatus):
        return command.resource_version
    return str(command.patch.get("metadata", {}).get("resourceVersion", ""))
