"""NodeWriter: serializes the writes to each node.

    submit ──▶ waiting ──▶ sent ──▶ done
                  ▲          │ conflict: wait for a newer version of the node
                  └──────────┘

When an edit is sent, its command is computed from the newest known version of the node. After a
conflict, a `MarkUnknown` edit ends. For other edits, the command is computed again from the next
version of the node (upstream retries after a short delay). Any other failure ends the edit.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct, field

from fairlead.engine.core.command import Command, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.node_edit import (
    AddNoSchedule,
    CopyLabels,
    FindNode,
    MarkUnknown,
    NodeEdit,
    RemoveNoSchedule,
)

LEVEL: Final = (AddNoSchedule, RemoveNoSchedule, CopyLabels)


class EditOutcome(Struct, frozen=True):
    """The outcome of an edit.

    `failure` is None on success. `is_over` is False if the edit will be retried.
    """

    node: str
    edit: NodeEdit
    failure: FailureReason | None
    is_over: bool = True


class _PendingEdits(Struct):
    """The pending edits of one node.

    `sent` is the command of the first edit while it is in flight. `refused_version` is the
    resourceVersion for which the server reported a conflict, or "".
    """

    edits: deque[NodeEdit] = field(default_factory=deque)
    sent: Command | None = None
    refused_version: str = ""


class NodeWriter:
    """Sends the edits of each node one by one."""

    def __init__(self, find: FindNode) -> None:
        """`find` returns the newest known version of a node."""
        self._find = find
        self._pending: dict[str, _PendingEdits] = {}

    def submit(self, name: str, edits: tuple[NodeEdit, ...], now: Instant) -> list[Command]:
        """Queue `edits` after the node's pending edits; return the command to send now, or [].

        A level-triggered edit (see LEVEL) is not queued if an equal edit is already waiting.
        """
        pending = self._pending.setdefault(name, _PendingEdits())
        waiting = list(pending.edits)[0 if pending.sent is None else 1 :]
        pending.edits.extend(e for e in edits if not (isinstance(e, LEVEL) and e in waiting))
        return self._next_commands(name, now) if pending.sent is None else []

    def is_marking_unknown(self, name: str) -> bool:
        """Return whether an edit is pending that sets the node's conditions to Unknown."""
        pending = self._pending.get(name)
        return pending is not None and any(isinstance(one, MarkUnknown) for one in pending.edits)

    def observe_node(self, name: str, now: Instant) -> list[Command]:
        """Return the command of the next pending edit; [] if there is nothing to send.

        Nothing is sent while a command for the node is in flight.

        Call this method after a new node version or a command outcome.
        """
        pending = self._pending.get(name)
        return (
            self._next_commands(name, now) if pending is not None and pending.sent is None else []
        )

    def forget(self, name: str) -> None:
        """Drop all edits of the deleted node `name`."""
        self._pending.pop(name, None)

    def on_outcome(self, outcome: CommandSucceeded | CommandFailed) -> EditOutcome | None:
        """Return the result of the edit to which `outcome` belongs.

        Returns None if this writer did not send the command, or if the node's edits were dropped.

        Call `observe_node` afterwards to continue with pending edits.
        """
        command = outcome.command
        if type(command) is not PatchStatus and type(command) is not PatchObject:
            return None
        if command.target.kind != "Node":
            return None
        pending = self._pending.get(command.target.name)
        if pending is None or pending.sent != command:
            return None
        pending.sent = None
        failure = outcome.reason if isinstance(outcome, CommandFailed) else None
        edit = pending.edits[0]
        if failure is FailureReason.CONFLICT and not isinstance(edit, MarkUnknown):
            pending.refused_version = _version_of(command)
            return EditOutcome(command.target.name, edit, failure, is_over=False)
        pending.edits.popleft()
        return EditOutcome(command.target.name, edit, failure)

    def _next_commands(self, name: str, now: Instant) -> list[Command]:
        pending, node = self._pending[name], self._find(name)
        while node is not None and pending.edits:
            if (
                pending.refused_version
                and pending.refused_version == node.metadata.resource_version
            ):
                return []
            pending.refused_version = ""
            pending.sent = pending.edits[0].command(node, now)
            if pending.sent is not None:
                return [pending.sent]
            pending.edits.popleft()
        del self._pending[name]
        return []


def _version_of(command: PatchObject | PatchStatus) -> str:
    if isinstance(command, PatchStatus):
        return command.resource_version
    return str(command.patch.get("metadata", {}).get("resourceVersion", ""))
