"""Stimulus: an event in the cluster. Stimuli are the only input of the engine.

Objects arrive as the typed views of `fairlead.api`. The outcome of a command is a stimulus, too, so
conflicts and missing objects are ordinary inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating

if TYPE_CHECKING:
    from fairlead.api.objects import ApiObject
    from fairlead.engine.core.command import CallExtender, Command, DeleteCollection, LookUpOwners


class ObjectChanged(Struct, frozen=True):
    """An object was created or updated; `object` is its newest version."""

    object: ApiObject


class ObjectDeleted(Struct, frozen=True):
    """An object was deleted; `object` is its last known version."""

    object: ApiObject


class ObjectsLoaded(Struct, frozen=True, dict=True):
    """All objects at the start, from a snapshot or a first list.

    The objects are in the order in which they would have arrived one by one. The properties are
    computed once for all controllers that use them.
    """

    objects: Sequence[ApiObject]

    @cached_property
    def pods(self) -> Sequence[Pod]:
        """The pods among the objects, in their order."""
        return [one for one in self.objects if isinstance(one, Pod)]

    @cached_property
    def bound_pods(self) -> Mapping[str, Mapping[str, Pod]]:
        """The pods that have a node: by the name of the node, then by their key, in their order."""
        found: dict[str, dict[str, Pod]] = {}
        for pod in self.pods:
            node = pod.spec.node_name
            if node:
                there = found.get(node)
                if there is None:
                    there = found[node] = {}
                there[pod.key] = pod
        return found

    @cached_property
    def ending_pods(self) -> Sequence[Pod]:
        """The pods that have finished or are being deleted, in their order."""
        return [pod for pod in self.pods if is_terminal(pod) or is_terminating(pod)]


class FailureReason(StrEnum):
    """The reason why a command was refused, named as in the API's `Status.reason`."""

    NOT_FOUND = "NotFound"
    CONFLICT = "Conflict"
    ALREADY_EXISTS = "AlreadyExists"
    TOO_MANY_REQUESTS = "TooManyRequests"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    INTERNAL_ERROR = "InternalError"


class CommandSucceeded(Struct, frozen=True):
    """The world performed `command`."""

    command: Command


class CommandFailed(Struct, frozen=True):
    """The world refused `command`; `message` is the API server's error message."""

    command: Command
    reason: FailureReason
    message: str


class ExtenderAnswered(Struct, frozen=True):
    """An extender answered `command` with an HTTP status and a body."""

    command: CallExtender
    status: int
    body: bytes


CallOutcome = ExtenderAnswered | CommandFailed  # the possible outcomes of a CallExtender


class Remaining(Struct, frozen=True):
    """The objects of one resource (`pods.`, `deployments.apps`) that remain after a deletion.

    `finalizers` is the number of objects that each finalizer keeps.
    """

    resource: str
    count: int
    finalizers: Mapping[str, int]  # number of objects per finalizer that holds them


class CollectionDeleted(Struct, frozen=True):
    """The answer to DeleteCollection.

    `grace_period_s` is the longest grace period of the pods that are still running.
    """

    command: DeleteCollection
    remaining: tuple[Remaining, ...]
    grace_period_s: int


class OwnersLookedUp(Struct, frozen=True):
    """The answer to LookUpOwners.

    `absent` are the uids of the owners that do not exist.
    """

    command: LookUpOwners
    absent: tuple[str, ...]


Stimulus = (
    ObjectChanged
    | ObjectDeleted
    | ObjectsLoaded
    | CommandSucceeded
    | CommandFailed
    | ExtenderAnswered
    | CollectionDeleted
    | OwnersLookedUp
)
