"""Room: what is idle on each node and what is becoming so, by the rule of the configuration.

    a task that is               takes idle    gives releasing    takes releasing
    allocated … running              yes
    RELEASING                        yes             yes
    PIPELINED                                                           yes

Both are columns by [resource, row] over the nodes of the cluster's table, made anew when a session
opens (from the table's own sums, so at the cost of a few vectors) and moved by `Session.move`.
upstream: pkg/scheduler/api/node_info.go
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.batch.job_table import JobTable
from fairlead.batch.request import RequestTable, TaskRequest
from fairlead.batch.slack import Slack
from fairlead.batch.task import TaskInfo, TaskStatus
from fairlead.framework.interface import Rows
from fairlead.state.cluster import Cluster
from fairlead.state.node_info import NodeInfo
from fairlead.state.node_table import NodeTable
from fairlead.state.pod_info import PodInfo

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Room:
    """`is_left_out[row]` marks nodes that no session may touch, because more is used than is there.

    `nonzero_surplus[row]` is what the node's own (cpu, memory) with defaults count too much. Valid
    from `open` to the end of the session.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is known before `open`."""
        self._cluster = cluster
        self.table: NodeTable = cluster.table
        self.idle: Ints = np.zeros((0, 0), np.int64)
        self.releasing: Ints = np.zeros((0, 0), np.int64)
        self.is_left_out: Bools = np.zeros(0, np.bool_)
        self.leaves_out_any = False
        self.nonzero_surplus: dict[int, list[int]] = {}

    def open(self, jobs: JobTable, *, leave_out: Slack | None) -> None:
        """Look at the nodes; those used beyond what they offer (by `leave_out`) are left out."""
        table = self.table
        table.widen()
        self.idle = table.allocatable - table.requested
        self.releasing = np.zeros_like(self.idle)
        self.nonzero_surplus = {}
        for pod in jobs.odd.values():
            self._count_odd(self._cluster.node_of(pod), jobs.requests.of(pod))
        for pod in jobs.leaving.values():
            self._add(self.releasing, self._cluster.node_of(pod), jobs.requests.of(pod).running)
        self.is_left_out = np.zeros(table.capacity, np.bool_)
        if leave_out is not None:
            for column in range(len(self.idle)):
                self.is_left_out |= self.idle[column] <= -leave_out.least(column)
        self.leaves_out_any = bool(self.is_left_out.any())

    def _count_odd(self, node: str, request: TaskRequest) -> None:
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
        """Count `task`, being `status`, in on `row` (or with sign -1 out)."""
        if task.request.is_odd:
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

    # --- asking ----------------------------------------------------------------------------

    def fits_now(self, request: TaskRequest, row: int) -> bool:
        """Whether the node can start the task now, in room that nobody else was promised."""
        idle, releasing = self.idle, self.releasing
        return all(
            idle[column, row] + min(releasing[column, row], 0) >= floor
            for column, floor in request.floors
        )

    def fits_releasing(self, request: TaskRequest, row: int) -> bool:
        """Whether the task fits into what is becoming free."""
        releasing = self.releasing
        return all(releasing[column, row] >= floor for column, floor in request.floors)

    def future(self, column: int, row: int) -> int:
        """What is free on a node, or becoming so."""
        return int(self.idle[column, row] + self.releasing[column, row])

    def is_anything_releasing(self) -> bool:
        """Whether any room is becoming free."""
        return bool((self.releasing > 0).any())


class RuleSums:
    """What is used on nodes, for the scorers of 1.16: the nodes' own sums without the surplus."""

    def __init__(self, room: Room, requests: RequestTable) -> None:
        """`requests` has the rule."""
        self._room = room
        self._requests = requests

    def asked(self, pod: PodInfo) -> tuple[int, int]:
        """By the incoming pod."""
        return self._requests.of(pod).nonzero

    def used(self, node: NodeInfo) -> tuple[int, int]:
        """On one node."""
        surplus = self._room.nonzero_surplus.get(node.row)
        if surplus is None:
            return node.nonzero_cpu, node.nonzero_memory
        return node.nonzero_cpu - surplus[0], node.nonzero_memory - surplus[1]

    def used_columns(self, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """On the nodes at `rows`."""
        cpu, memory = table.nonzero_cpu[rows], table.nonzero_memory[rows]
        odd = self._room.nonzero_surplus
        if odd:
            at = {row: i for i, row in enumerate(rows.tolist()) if row in odd}
            for row, i in at.items():
                cpu[i] -= odd[row][0]
                memory[i] -= odd[row][1]
        return cpu, memory
