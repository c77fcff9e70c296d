"""Room: the idle and releasing resources of each node.

    status of a task             lowers idle    raises releasing    lowers releasing
    ALLOCATED … RUNNING              yes
    RELEASING                        yes              yes
    PIPELINED                                                             yes

`Room.idle` and `Room.releasing` are arrays [resource, row of a node in the cluster's table]. `open`
computes them from the sums in this table, and `Session.move` updates them.

upstream: pkg/scheduler/api/node_info.go
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.request import RequestTable, Slack, TaskRequest
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.framework.interface import Rows
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Room:
    """The idle and releasing resources of a session's nodes, as arrays [resource, row of a node].

    `is_left_out[row]` marks nodes that are excluded from the session because their pods use too
    much. `shared` is the view without reserved resources. `whole` is the view that includes the
    resources reserved for a gang that has waited too long. Only this gang, the jobs that would
    preempt the gang, and short tasks (backfill) use `whole`. `nonzero_surplus[row]` is [millicores,
    memory bytes]. The entry is the sum of requests in `NodeInfo` minus the sum that the configured
    request rule gives. The two sums are over the pods of the node, with defaults for missing
    requests. The arrays are valid from `open` to the end of the session.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Start without resources; `open` computes them."""
        self._cluster = cluster
        self.table: NodeTable = cluster.table
        self.idle: Ints = np.zeros((0, 0), np.int64)
        self.releasing: Ints = np.zeros((0, 0), np.int64)
        self.is_left_out: Bools = np.zeros(0, np.bool_)
        self.leaves_out_any = False
        self.nonzero_surplus: dict[int, list[int]] = {}
        self.reserved: Ints | None = None
        self.shared = RoomView(self, sees_all=False)
        self.whole = RoomView(self, sees_all=True)

    def open(self, jobs: JobTable, *, leave_out: Slack | None) -> None:
        """Compute the idle and releasing resources of all nodes.

        If `leave_out` is set, overfull nodes are excluded. On an overfull node, the requests of the
        pods exceed the allocatable amount of a resource by at least the tolerance in `leave_out`.
        """
        table = self.table
        table.widen()
        self.idle = table.allocatable - table.requested
        self.releasing = np.zeros_like(self.idle)
        self.nonzero_surplus = {}
        for pod in jobs.pods_with_surplus.values():
            self._add_surplus(self._cluster.node_of(pod), jobs.requests.of(pod))
        for pod in jobs.releasing_pods.values():
            self._add(self.releasing, self._cluster.node_of(pod), jobs.requests.of(pod).running)
        self.is_left_out = np.zeros(table.capacity, np.bool_)
        if leave_out is not None:
            for column in range(len(self.idle)):
                self.is_left_out |= self.idle[column] <= -leave_out.least(column)
        self.leaves_out_any = bool(self.is_left_out.any())

    def _add_surplus(self, node: str, request: TaskRequest) -> None:
        self._add(self.idle, node, request.surplus)
        found = self.table.find(node)
        if found is not None:
            self._count_surplus(found.row, request, 1)

    def _count_surplus(self, row: int, request: TaskRequest, sign: int) -> None:
        surplus = self.nonzero_surplus.setdefault(row, [0, 0])
        surplus[0] += sign * request.nonzero_surplus[0]
        surplus[1] += sign * request.nonzero_surplus[1]

    def _add(self, to: Ints, node: str, amounts: tuple[tuple[int, int], ...]) -> None:
        found = self.table.find(node)
        if found is not None:
            for column, amount in amounts:
                to[column, found.row] += amount

    def count(self, row: int, task: TaskInfo, status: TaskStatus, sign: int) -> None:
        """Add the resources of `task` to those in use on the node at `row`, or subtract them.

        `sign` is 1 to add the resources, and -1 to subtract them. `status` is the status of `task`;
        it determines whether idle or releasing amounts change.
        """
        if task.request.has_surplus:
            self._count_surplus(row, task.request, sign)
        idle, releasing = self.idle, self.releasing
        if status is TaskStatus.PIPELINED:
            for column, amount in task.request.running:
                releasing[column, row] -= sign * amount
            return
        for column, amount in task.request.running:
            idle[column, row] -= sign * amount
        if status is TaskStatus.RELEASING:
            for column, amount in task.request.running:
                releasing[column, row] += sign * amount

    def reserve(self, amounts: Ints | None) -> None:
        """Reserve `amounts`, an array [resource, row of a node]; end the earlier reservation.

        Only the view `whole` counts reserved amounts as available. If `amounts` is None, nothing is
        reserved.
        """
        rows: dict[int, None] = {}
        for held in (self.reserved, amounts):
            if held is not None:
                rows |= dict.fromkeys(np.flatnonzero(np.any(held, axis=0)).tolist())
        self.reserved = amounts
        for row in rows:
            self.table.pod_log.append(row)

    def is_anything_releasing(self) -> bool:
        """Return whether `releasing` is positive for any resource of any node."""
        return bool((self.releasing > 0).any())


class RoomView:
    """The resources that one job may use: all resources, or all resources that are not reserved.

    Tasks that are pipelined onto a node may need more than the node's releasing amount. The missing
    amount is then subtracted from the idle amount.
    """

    def __init__(self, room: Room, *, sees_all: bool) -> None:
        """Create a view of `room`; `sees_all` is set if the view includes reserved resources."""
        self._room = room
        self._sees_all = sees_all

    def idle(self, column: int, row: int) -> int:
        """Return the amount of the resource in `column` that is idle on the node at `row`."""
        room = self._room
        free = int(room.idle[column, row] + min(room.releasing[column, row], 0))
        return free - self._held(column, row)

    def idle_many(self, column: int, rows: Rows) -> Ints:
        """Return the result of `idle` for each node at `rows`, shape (len(rows),)."""
        room = self._room
        free: Ints = room.idle[column, rows] + np.minimum(room.releasing[column, rows], 0)
        return free if self._hides_nothing(column) else free - self._reserved_many(column, rows)

    def releasing(self, column: int, row: int) -> int:
        """Return how much of the resource in `column` is being released on the node at `row`.

        Amounts that pipelined tasks will take are already subtracted. If the view excludes reserved
        resources, and more is reserved than is idle, the difference is also subtracted.
        """
        room = self._room
        uncovered = self._held(column, row) - max(int(room.idle[column, row]), 0)
        return int(room.releasing[column, row]) - max(uncovered, 0)

    def releasing_many(self, column: int, rows: Rows) -> Ints:
        """Return the result of `releasing` for each node at `rows`, shape (len(rows),)."""
        room = self._room
        releasing: Ints = room.releasing[column, rows]
        if self._hides_nothing(column):
            return releasing
        uncovered = self._reserved_many(column, rows) - np.maximum(room.idle[column, rows], 0)
        remaining: Ints = releasing - np.maximum(uncovered, 0)
        return remaining

    def future_idle(self, column: int, row: int) -> int:
        """Return the amount of the resource in `column` that will be free on the node at `row`.

        The result is the sum of the idle amount and the releasing amount. Amounts that pipelined
        tasks will take are already subtracted. Reserved amounts are subtracted too, unless
        `sees_all` is set.
        """
        room = self._room
        free = int(room.idle[column, row] + room.releasing[column, row])
        return free - self._held(column, row)

    def future_idle_many(self, column: int) -> Ints:
        """Return the result of `future_idle` for each node, shape (rows,)."""
        free: Ints = self._room.idle[column] + self._room.releasing[column]
        held = self._room.reserved
        if held is None or self._sees_all or column >= len(held):
            return free
        free = free.copy()
        free[: held.shape[1]] -= held[column]
        return free

    def fits_now(self, request: TaskRequest, row: int) -> bool:
        """Return whether the node at `row` can start a task with `request` immediately."""
        return all(self.idle(column, row) >= floor for column, floor in request.floors)

    def _hides_nothing(self, column: int) -> bool:
        held = self._room.reserved
        return self._sees_all or held is None or column >= len(held)

    def _held(self, column: int, row: int) -> int:
        held = self._room.reserved
        if held is None or self._sees_all or column >= len(held):
            return 0
        return int(held[column, row])

    def _reserved_many(self, column: int, rows: Rows) -> Ints:
        held = self._room.reserved
        assert held is not None
        found: Ints = held[column, rows]
        return found


class RuleSums:
    """The cpu and memory requested on each node, counted by the configuration's request rule.

    The rule is that of Kubernetes or that of kube-batch. The amounts are the sums in NodeInfo
    (`nonzero_cpu` and `nonzero_memory`) minus `Room.nonzero_surplus`. The scorers of Kubernetes
    1.16 read these amounts.
    """

    def __init__(self, room: Room, requests: RequestTable) -> None:
        """`room` contains the `nonzero_surplus` of nodes, and `requests` the requests of pods."""
        self._room = room
        self._requests = requests

    def requested(self, pod: PodInfo) -> tuple[int, int]:
        """Return the requests of `pod` as (millicores, memory bytes)."""
        return self._requests.of(pod).nonzero

    def used(self, node: NodeInfo) -> tuple[int, int]:
        """Return the requests of the pods on `node` as (millicores, memory bytes)."""
        surplus = self._room.nonzero_surplus.get(node.row)
        if surplus is None:
            return node.nonzero_cpu, node.nonzero_memory
        return node.nonzero_cpu - surplus[0], node.nonzero_memory - surplus[1]

    def used_columns(self, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """Return, for each of the nodes at `rows`, the sum of the requests of its pods.

        The result is (millicores, memory bytes), each an array of shape (len(rows),).
        """
        cpu, memory = table.nonzero_cpu[rows], table.nonzero_memory[rows]
        surplus = self._room.nonzero_surplus
        if surplus:
            at = {row: i for i, row in enumerate(rows.tolist()) if row in surplus}
            for row, i in at.items():
                cpu[i] -= surplus[row][0]
                memory[i] -= surplus[row][1]
        return cpu, memory
