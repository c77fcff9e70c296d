"""Filter plugins of a batch session, for resources, the number of pods and excluded nodes.

The framework caches the verdicts per pod spec (`Shape`), and recomputes them only for changed
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from fairlead.engine.batch.info.request import RequestTable, TaskRequest
from fairlead.engine.batch.nodes.room import Ints, Room, RoomView
from fairlead.engine.core.status import SUCCESS, Status, unresolvable, unschedulable
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.plugins.node_resources.fit import INSUFFICIENT, TOO_MANY_PODS
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

OUT_OF_SYNC: Final = unresolvable("node(s) had more requested than allocatable").by("NodePresence")
_FULL: Final = unschedulable(TOO_MANY_PODS).by("MaxPods")


class NodePresence:
    """Filter: rejects nodes that are excluded from the session."""

    name = "NodePresence"
    locality = Locality.ROW

    def __init__(self, room: Room) -> None:
        """Use `room`, which marks the excluded nodes."""
        self._room = room

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject `node` if it is excluded from the session."""
        room = self._room
        return OUT_OF_SYNC if room.leaves_out_any and room.is_left_out[node.row] else None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the verdicts for the nodes at `rows`; nodes outside the session are rejected."""
        codes = self._room.is_left_out[rows].astype(np.int32)
        return Verdicts(codes, (OUT_OF_SYNC, OUT_OF_SYNC))


class MaxPods:
    """Filter: rejects nodes with the maximum number of pods; releasing and pipelined pods count."""

    name = "MaxPods"
    locality = Locality.ROW

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a full node; a node whose allocatable lacks `pods` counts as full."""
        return _FULL if len(node.pods) >= node.allowed_pods else None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the verdicts for the nodes at `rows`; full nodes are rejected."""
        full = table.pod_count[rows] >= table.allowed_pods[rows]
        return Verdicts(full.astype(np.int32), (_FULL, _FULL))


class Source(Protocol):
    """The kind of resources that a filter compares: idle, releasing, or the sum of both."""

    def at(self, view: RoomView, column: int, row: int) -> int:
        """Return the amount of the resource in `column` on the node at `row`."""
        ...

    def many(self, view: RoomView, column: int, rows: Rows) -> Ints:
        """Return the amounts of the resource in `column` on the nodes at `rows`."""
        ...


class _Now:
    def at(self, view: RoomView, column: int, row: int) -> int:
        return view.idle(column, row)

    def many(self, view: RoomView, column: int, rows: Rows) -> Ints:
        return view.idle_many(column, rows)


class _Leaving:
    def at(self, view: RoomView, column: int, row: int) -> int:
        return view.releasing(column, row)

    def many(self, view: RoomView, column: int, rows: Rows) -> Ints:
        return view.releasing_many(column, rows)


class _Future:
    def at(self, view: RoomView, column: int, row: int) -> int:
        return view.future_idle(column, row)

    def many(self, view: RoomView, column: int, rows: Rows) -> Ints:
        return view.future_idle_many(column)[rows]


NOW: Final[Source] = _Now()
LEAVING: Final[Source] = _Leaving()
FUTURE: Final[Source] = _Future()


class RoomFit:
    """Filter: accepts a node if one of the `sources` alone covers the whole request.

    A source is the idle resources of the node, its releasing resources, or the sum of both.
    """

    name = "NodeResourcesFit"
    locality = Locality.ROW

    def __init__(
        self, room: Room, view: RoomView, requests: RequestTable, sources: Sequence[Source]
    ) -> None:
        """The filter accepts a node if one of `sources` alone covers the whole request.

        The rejection of a node lists the resources that `sources[0]` lacks.
        """
        self._room = room
        self._view = view
        self._requests = requests
        self._sources = tuple(sources)
        self._statuses: dict[tuple[int, ...], Status] = {}

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return None if `node` can hold the request, else a status with the lacking resources."""
        request, view, row = self._requests.of(pod), self._view, node.row
        missing: tuple[int, ...] | None = None
        for source in self._sources:
            found = tuple(c for c, floor in request.floors if source.at(view, c, row) < floor)
            if not found:
                return None
            missing = missing or found
        return self._insufficient(missing or ())

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the verdicts for the nodes at `rows`.

        The code of a verdict has one bit for each lacking resource.
        """
        request = self._requests.of(pod)
        codes = self._missing(self._sources[0], request, rows)
        for source in self._sources[1:]:
            codes[self._missing(source, request, rows) == 0] = 0
        return Verdicts(codes, self._all_statuses(request))

    def _missing(self, source: Source, request: TaskRequest, rows: Rows) -> np.ndarray:
        codes = np.zeros(len(rows), np.int32)
        for bit, (column, floor) in enumerate(request.floors):
            codes |= (source.many(self._view, column, rows) < floor).astype(np.int32) << bit
        return codes

    def _all_statuses(self, request: TaskRequest) -> list[Status]:
        columns = [column for column, _ in request.floors]
        return [SUCCESS] + [
            self._insufficient(tuple(c for bit, c in enumerate(columns) if code >> bit & 1))
            for code in range(1, 1 << len(columns))
        ]

    def _insufficient(self, columns: tuple[int, ...]) -> Status:
        status = self._statuses.get(columns)
        if status is None:
            names = self._room.table.resources.names
            status = unschedulable(*(f"{INSUFFICIENT} {names[column]}" for column in columns))
            status = self._statuses[columns] = status.by(self.name)
        return status
