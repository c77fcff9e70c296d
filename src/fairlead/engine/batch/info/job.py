"""JobInfo and TaskInfo: a gang, and a pod as a member of a gang.

A job contains its tasks by status, and the sums of their requests, from which shares are computed.
upstream: pkg/scheduler/api/job_info.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.group import GroupInfo
from fairlead.engine.batch.info.request import TaskRequest
from fairlead.engine.batch.info.task_status import (
    ALLOCATED_STATUSES,
    HOLDS,
    ZERO_TIME,
    TaskStatus,
    status_of,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Amounts

INQUEUE: Final = "Inqueue"
_PENDING = TaskStatus.PENDING
_IS_READY: Final = tuple(
    status in (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED) for status in TaskStatus
)


class TaskInfo:
    """One task, identified by `PodInfo.id`; `node` is the name of its node, "" if it has no node.

    Only `JobTable` (observed changes) and `Session` (decisions) change a task.
    """

    __slots__ = ("created", "id", "info", "job", "node", "priority", "request", "status")

    def __init__(self, info: PodInfo, job: JobInfo, request: TaskRequest) -> None:
        """Create a task with the status that its pod object has."""
        created = info.pod.metadata.creation_timestamp
        self.id = info.id
        self.job = job
        self.request = request
        self.created: Instant = parse_timestamp(created) if created else ZERO_TIME
        self.status = status_of(info.pod)
        self.show(info)

    def show(self, info: PodInfo) -> None:
        """Store the newest version of the pod, with its node and priority.

        The status of the task does not change.
        """
        pod = info.pod
        self.info = info
        self.node = pod.spec.node_name
        # A pod without a priority counts as 1 (job_info.go: NewTaskInfo).
        self.priority = 1 if pod.spec.priority is None else pod.spec.priority

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.info.key

    @property
    def ref(self) -> ObjectRef:
        """Object reference of the pod, for commands and records."""
        return self.info.ref

    def __repr__(self) -> str:
        return f"TaskInfo({self.key}, {self.status.name}, {self.node or '-'})"


class JobInfo:
    """One job; `id` is `namespace/group`, or the name of a shadow group.

    A shadow group is the group of pods that have no PodGroup.

    A member counts as having a node if its status is one of ALLOCATED_STATUSES. A pipelined or
    releasing member does not count. `ready_count` is the number of members that have a node or have
    succeeded. `held` is the sum of the requests of members that have a node or are pipelined.
    `pending` is the sum of the requests of pending tasks. `held` and `pending` are lists by
    resource column. Missing columns at the end count as 0.

    `waiting_since` is the time of the first session that ended while the job waited to start. A
    session sets it back to None if the job no longer waits to start. `broken_since` is the time of
    the first session that found too few members running. A session sets it back to None if enough
    members are running. `broken_since` is always None if no grace period is configured.
    `reserved_nodes` are the nodes with resources reserved for the job. `victims` are the ids of the
    pods that sessions have evicted for the job and that had not stopped at the last session. Only
    `JobTable` and `Session` change the tasks of a job.
    """

    __slots__ = (
        "broken_since",
        "by_status",
        "group",
        "held",
        "id",
        "pending",
        "priority",
        "queue",
        "ready_count",
        "reserved_nodes",
        "tasks",
        "victims",
        "waiting_since",
    )

    def __init__(self, job_id: str, group: GroupInfo | None) -> None:
        """Start without tasks; `group` is None until its object is observed."""
        self.id = job_id
        self.group = group
        self.queue = ""
        self.priority = 0
        self.tasks: dict[str, TaskInfo] = {}
        self.by_status: tuple[dict[str, TaskInfo], ...] = tuple({} for _ in TaskStatus)
        self.ready_count = 0
        self.held: list[int] = []
        self.pending: list[int] = []
        self.waiting_since: Instant | None = None
        self.broken_since: Instant | None = None
        self.reserved_nodes: tuple[str, ...] = ()
        self.victims: set[str] = set()

    # --- tasks -----------------------------------------------------------------------------

    def add(self, task: TaskInfo) -> None:
        """Add a member; `remove` undoes this."""
        self.tasks[task.id] = task
        self._count(task, 1)

    def remove(self, task: TaskInfo) -> None:
        """Remove a member."""
        del self.tasks[task.id]
        self._count(task, -1)

    def set_status(self, task: TaskInfo, status: TaskStatus) -> None:
        """Change the status of a member, and update all sums of the job."""
        before, by_status = task.status, self.by_status
        del by_status[before][task.id]
        task.status = status
        by_status[status][task.id] = task
        self.ready_count += _IS_READY[status] - _IS_READY[before]
        if HOLDS[before] is not HOLDS[status] or _PENDING in (before, status):
            self._sum(task, before, -1)
            self._sum(task, status, 1)

    def _count(self, task: TaskInfo, sign: int) -> None:
        if sign > 0:
            self.by_status[task.status][task.id] = task
        else:
            del self.by_status[task.status][task.id]
        self.ready_count += sign * _IS_READY[task.status]
        self._sum(task, task.status, sign)

    def _sum(self, task: TaskInfo, status: TaskStatus, sign: int) -> None:
        if HOLDS[status]:
            add_amounts(self.held, task.request.running, sign)
        elif status is _PENDING:
            add_amounts(self.pending, task.request.running, sign)

    def with_status(self, status: TaskStatus) -> list[TaskInfo]:
        """Return the members with `status`, in the order in which they reached it."""
        return list(self.by_status[status].values())

    # --- facts -----------------------------------------------------------------------------

    @property
    def min_available(self) -> int:
        """Minimum number of members that must run together."""
        return self.group.min_member if self.group is not None else 0

    @property
    def created(self) -> Instant:
        """Creation time of the job's group."""
        assert self.group is not None
        return self.group.created

    @property
    def awaits_admission(self) -> bool:
        """Whether the group is not admitted yet; only relevant if the action enqueue runs."""
        return self.group is not None and self.group.status.phase in ("", "Pending")

    @property
    def is_inqueue(self) -> bool:
        """Whether the group was admitted and has not started."""
        return self.group is not None and self.group.status.phase == INQUEUE

    # --- progress --------------------------------------------------------------------------

    @property
    def allocated_count(self) -> int:
        """Number of members that have a node."""
        return self.ready_count - len(self.by_status[TaskStatus.SUCCEEDED])

    @property
    def waiting_count(self) -> int:
        """Number of pipelined members."""
        return len(self.by_status[TaskStatus.PIPELINED])

    @property
    def valid_count(self) -> int:
        """Number of members that have a node or have succeeded, or are pipelined or pending."""
        return self.ready_count + self.waiting_count + len(self.by_status[_PENDING])

    @property
    def is_ready(self) -> bool:
        """Whether at least the minimum number of members have a node or have succeeded."""
        return self.ready_count >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        """Whether `ready_count` plus the number of pipelined members is at least the minimum."""
        return self.ready_count + self.waiting_count >= self.min_available

    def __repr__(self) -> str:
        return f"JobInfo({self.id}, {len(self.tasks)} tasks)"


def add_amounts(total: list[int], amounts: Amounts, sign: int) -> None:
    """Add `sign` times `amounts` to `total`, which is extended if it is too short."""
    if amounts and amounts[-1][0] >= len(total):
        total.extend([0] * (amounts[-1][0] + 1 - len(total)))
    for column, amount in amounts:
        total[column] += sign * amount
