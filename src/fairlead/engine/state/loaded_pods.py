"""LoadedPods: the pods that were loaded in bulk, and the rows whose pods changed after the load.

Each group contains nearly equal pods, for example the pods of one workload (`Replicas`). A reader
that needs facts about all pods reads these groups. The reader reads single nodes only where pods
have changed since the load.

    load of web-1 and web-2 on rows 0 and 1, and of db-1 on row 1     groups: web [0, 1], db [1]
    web-2 is deleted                                                  changed: row 1
    a reader takes web-1 from the group web, and reads the node at row 1
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.pod_info import NEVER_STARTED, PodInfo
from fairlead.engine.state.shape import Shape

Ints = npt.NDArray[np.int64]


class LoadedGroup(Struct, frozen=True):
    """A group of loaded pods; the pod `replicas[i]` was loaded onto the node at `rows[i]`.

    All pods of the group have the priority, requests and ports of `replica`, a pod of the group.
    """

    replicas: Replicas
    rows: Ints
    replica: PodInfo


class LoadedPods:
    """The groups of pods that were loaded in bulk; only `NodeTable` changes them.

    A row is the index of a node. Invariant: a node whose row is not in `changed_rows` has exactly
    the pods that `groups` has for this row.
    """

    def __init__(self, pod_log: ChangeLog[int]) -> None:
        """Start without pods; `pod_log` names the rows whose pods changed."""
        self.groups: list[LoadedGroup] = []
        self._pod_log = pod_log
        self._read = 0  # position in the log
        self._changed: set[int] | None = set()

    def begin(self) -> None:
        """Begin a bulk load: record the rows of the nodes whose pods have changed before this load.

        Call this method before the pods of the load are added.
        """
        self._note()

    def end(self, groups: Sequence[LoadedGroup]) -> None:
        """End a bulk load: add its `groups`.

        Call this method after the pods have been added and their rows have been appended to the
        log.
        """
        self._read = self._pod_log.position
        if self._changed is not None:
            self.groups += groups

    def note_removed(self, row: int) -> None:
        """Record that there is no longer a node at `row`."""
        if self._changed is not None:
            self._changed.add(row)

    def changed_rows(self) -> Collection[int] | None:
        """Return the rows for which `groups` is out of date; None means all rows."""
        return self._note()

    def _note(self) -> set[int] | None:
        rows = self._pod_log.since(self._read)
        self._read = self._pod_log.position
        if rows is None:
            self._changed = None
            self.groups.clear()
        elif self._changed is not None:
            self._changed.update(rows)
        return self._changed


class PlacedPod(Protocol):
    """Protocol for the facts about a placed pod that decide whether a preemption evicts the pod."""

    @property
    def id(self) -> str:
        """The pod's `PodInfo.id`."""
        ...

    @property
    def key(self) -> str:
        """The pod's key, `namespace/name`."""
        ...

    @property
    def priority(self) -> int:
        """The priority of the pod."""
        ...

    @property
    def start(self) -> Instant:
        """The time at which the pod started."""
        ...

    @property
    def shape(self) -> Shape:
        """The `Shape` of the pod's spec, or another `Shape` with the same requests."""
        ...


class _LoadedPod(Struct, frozen=True):
    """The facts of a loaded pod, for which no PodInfo is made."""

    id: str
    key: str
    priority: int
    start: Instant
    shape: Shape


class Representatives:
    """One PodInfo for each group of loaded pods, used for pods without a PodInfo of their own.

    The loaded pods of a group have the same namespace, labels, priority, requests and affinity
    terms. Either all pods of the group have a start time, or none of them has. Likewise, either all
    of them have volumes, or none of them has. If a reader needs only these facts, it reads the
    group's PodInfo, and no PodInfos are built for the single pods of the group.
    """

    def __init__(self) -> None:
        """Start without representatives."""
        self._by_id: dict[int, tuple[Replicas, PodInfo]] = {}  # by id of the replicas

    def add(self, replicas: Replicas, replica: PodInfo) -> None:
        """Use `replica`, which is one of `replicas`, as the PodInfo of the whole group."""
        self._by_id[id(replicas)] = replicas, replica

    def find(self, replicas: Replicas) -> PodInfo:
        """Return the PodInfo of the loaded group `replicas`."""
        return self._by_id[id(replicas)][1]

    def of(self, pods: dict[str, PodInfo]) -> Iterable[PodInfo]:
        """Return one PodInfo for each of `pods`.

        `pods` is the `stored_pods` of a NodeInfo. A pod that has no PodInfo of its own is
        represented by the PodInfo of its group.
        """
        if not isinstance(pods, LazyDict):
            return pods.values()
        by_id = self._by_id
        return [by_id[id(one[0])][1] if isinstance(one, tuple) else one for one in pods.raw()]

    def facts_of(self, pods: dict[str, PodInfo]) -> Iterable[PlacedPod]:
        """Return the facts of each of `pods`, in order, without making PodInfos.

        `pods` is the `stored_pods` of a NodeInfo. The loaded pods of a group differ only in their
        identity and start times. All other facts are taken from the representative of the group.
        """
        if not isinstance(pods, LazyDict):
            return pods.values()
        facts: list[PlacedPod] = []
        last: Replicas | None = None
        for found in pods.raw():
            if not isinstance(found, tuple):
                facts.append(found)
                continue
            replicas, at = found
            if replicas is not last:
                last = replicas
                like = self.find(replicas)
                priority, start, shape = like.priority, like.start, like.shape
                keys, uids, has_start = replicas.keys, replicas.uids, start != NEVER_STARTED
            if has_start:
                start = parse_timestamp(replicas.start_times[at])
            facts.append(_LoadedPod(uids[at], keys[at], priority, start, shape))
        return facts
