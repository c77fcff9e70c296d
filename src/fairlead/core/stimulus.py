"""Stimulus: what happened. The only input of the engine.

Objects arrive as the typed views of `fairlead.api`; the outcome of every command comes back as
`CommandSucceeded` or `CommandFailed`, so conflicts and vanished objects are ordinary inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.api.objects import ApiObject
    from fairlead.core.command import CallExtender, Command


@dataclass(frozen=True, slots=True)
class ObjectChanged:
    """An object was created or updated; `object` is its newest version."""

    object: ApiObject


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """An object is gone; `object` is its last known version."""

    object: ApiObject


@dataclass(frozen=True, slots=True)
class ObjectsLoaded:
    """The whole known world at the start (a snapshot, a first list), in bulk.

    Order is the order in which the objects would have arrived one by one.
    """

    objects: Sequence[ApiObject]


class FailureReason(StrEnum):
    """Why the world refused a command; the names are those of API `Status.reason`."""

    NOT_FOUND = "NotFound"
    CONFLICT = "Conflict"
    ALREADY_EXISTS = "AlreadyExists"
    TOO_MANY_REQUESTS = "TooManyRequests"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    INTERNAL_ERROR = "InternalError"


@dataclass(frozen=True, slots=True)
class CommandSucceeded:
    """The world performed `command`."""

    command: Command


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The world refused `command`; `message` is the refusal in the API server's words."""

    command: Command
    reason: FailureReason
    message: str


@dataclass(frozen=True, slots=True)
class ExtenderAnswered:
    """An extender said something to `command`: an HTTP status and whatever came with it."""

    command: CallExtender
    status: int
    body: bytes


Stimulus = (
    ObjectChanged
    | ObjectDeleted
    | ObjectsLoaded
    | CommandSucceeded
    | CommandFailed
    | ExtenderAnswered
)
