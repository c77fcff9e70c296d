"""Stimulus: an event in the cluster. Stimuli are the only input of the engine.

Objects arrive as the typed views of `fairlead.api`. The outcome of a command is a stimulus, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from fairlead.api.lazy_dict import LazyDict, Row
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.pods.replicas import LoadedObjects, Replicas, neighbouring_replicas, pod_at

if TYPE_CHECKING:
    from fairlead.api.objects import ApiObject
    from fairlead.engine.core.command import CallExtender, Command, DeleteCollection, LookUpOwners
    from fairlead.engine.core.issuer import Issuer


class ObjectChanged(Struct, frozen=True):
    """An object was created or updated; `object` is its newest version."""

    object: ApiObject


class ReadinessChanged(ObjectChanged, frozen=True):
    """Only the readiness of a pod or the restarts of its containers have changed.

    Readiness means the conditions Ready and ContainersReady. A world (a real or simulated cluster)
    sends this stimulus only for a bound pod that has not ended and is not being deleted. A world
    may also report a change of readiness with an ObjectChanged. A controller that needs no
    ReadinessChanged sets `Interest.readiness` to False.
    """


class ObjectDeleted(Struct, frozen=True):
    """An object was deleted; `object` is its last known version."""

    object: ApiObject


class ObjectsLoaded(Struct, frozen=True, dict=True):
    """All objects at the start, from a snapshot or an initial LIST; no two have the same key.

    The objects are in the order in which they would have arrived one by one.
    """

    objects: Sequence[ApiObject]

    @cached_property
    def grouped(self) -> Sequence[Replicas | ApiObject]:
        """The objects in their order, with neighbouring replicas grouped into `Replicas`.

        A `Replicas` is a list of pods that differ only in identity, placement and times.
        """
        found: list[Replicas | ApiObject] = []
        if isinstance(self.objects, LoadedObjects):
            return [*self.objects.others, *self.objects.replicas]
        for are_pods, group in groupby(self.objects, key=_is_pod):
            neighbours = list(group)
            found += (
                neighbouring_replicas(cast("list[Pod]", neighbours)) if are_pods else neighbours
            )
        return found

    @cached_property
    def replicas(self) -> Sequence[Replicas]:
        """The pods in their order, with neighbouring replicas grouped into `Replicas`."""
        return [some for some in self.grouped if isinstance(some, Replicas)]

    @cached_property
    def pods(self) -> Sequence[Pod]:
        """The pods among the objects, in their order."""
        return [pod for replicas in self.replicas for pod in replicas]

    @cached_property
    def others(self) -> Sequence[ApiObject]:
        """The objects that are not pods, in their order."""
        return [one for one in self.grouped if not isinstance(one, Replicas)]

    @cached_property
    def bound(self) -> LazyDict[Pod]:
        """A mapping {pod key: pod} of the pods that have a node, in the order of `pods`.

        Callers must not change the result.
        """
        found = LazyDict(pod_at)
        for pods in self.replicas:
            if pods[0].spec.node_name:
                found.load(pods.rows_by_key)
        return found

    @cached_property
    def bound_nodes(self) -> dict[str, str]:
        """A mapping {pod key: node of the pod} for the pods in `bound`.

        Callers must not change the result.
        """
        found: dict[str, str] = {}
        for pods in self.replicas:
            if pods[0].spec.node_name:
                found.update(zip(pods.keys, pods.nodes, strict=True))
        return found

    @cached_property
    def bound_pods(self) -> LazyDict[dict[str, Pod]]:
        """The pods of each node, as {node name: {pod key: pod}}; pods without a node are left out.

        The pods of a node are in the order of `pods`. Callers must not change the result. To change
        the pods of nodes, make a copy (`LazyDict.copy`). The copy makes its own {pod key: pod} of a
        node when this node is first read.
        """
        there: defaultdict[str, _NodeRows] = defaultdict(_NodeRows)
        for pods in self.replicas:
            if pods[0].spec.node_name:
                for node, row in zip(pods.nodes, pods.rows, strict=True):
                    there[node].rows.append(row)
        found: LazyDict[dict[str, Pod]] = LazyDict(_pods_of_node)
        found.load({node: (rows, 0) for node, rows in there.items()})
        return found

    @cached_property
    def ending_pods(self) -> Sequence[Pod]:
        """The loaded pods that have finished or are being deleted, in the order of loading."""
        ending = (one for one in self.replicas if is_terminal(one[0]) or is_terminating(one[0]))
        return [pod for replicas in ending for pod in replicas]


class _NodeRows:
    """The pods of one node, each as a `Row`.

    A Row is the `Replicas` that contains the pod, and the index of the pod there. Several
    controllers need the pods of a node by key. The controllers share `by_key`, which is computed
    once.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @cached_property
    def by_key(self) -> dict[str, Row]:
        """The `Row` of each pod, by the pod's key."""
        return {row[0].keys[row[1]]: row for row in self.rows}


def _pods_of_node(there: _NodeRows, _: int) -> LazyDict[Pod]:
    """Return the pods of a node by key."""
    found = LazyDict(pod_at)
    found.load(there.by_key)
    return found


def _is_pod(one: ApiObject) -> bool:
    return isinstance(one, Pod)


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
    """The world, a real or simulated cluster, has performed `command`.

    `issuer` is the issuer of the command, or None if the world does not state the issuer. If
    `issuer` is set, the engine may pass this stimulus only to controllers with the same issuer.
    """

    command: Command
    issuer: Issuer | None = None


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


class RemainingObjects(Struct, frozen=True):
    """The objects of one resource that remain after a deletion.

    `resource` is `plural.group`, and the group is empty for the core API (`pods.`). `finalizers`
    maps each finalizer to the number of objects that have it.
    """

    resource: str
    count: int
    finalizers: Mapping[str, int]


class CollectionDeleted(Struct, frozen=True):
    """The answer to DeleteCollection.

    `remaining` are the objects that were not removed immediately. `grace_period_s` is the longest
    grace period of those pods in the namespace that had not finished before the deletion.
    """

    command: DeleteCollection
    remaining: tuple[RemainingObjects, ...]
    grace_period_s: int


class OwnersLookedUp(Struct, frozen=True):
    """The answer to LookUpOwners; `absent` are the uids of the owners that do not exist."""

    command: LookUpOwners
    absent: tuple[str, ...]


Stimulus = (
    ObjectChanged
    | ReadinessChanged
    | ObjectDeleted
    | ObjectsLoaded
    | CommandSucceeded
    | CommandFailed
    | ExtenderAnswered
    | CollectionDeleted
    | OwnersLookedUp
)
