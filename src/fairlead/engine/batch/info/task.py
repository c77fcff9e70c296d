"""TaskInfo: a pod as a member of a job; wraps the pod's `PodInfo`.

    PENDING ── allocate ──▶ ALLOCATED ── dispatch ──▶ BINDING ──▶ BOUND ──▶ RUNNING ──▶ SUCCEEDED
       │                                                                      │  ▲         FAILED
       └── pipeline ──▶ PIPELINED                                      evict  ▼  │ unevict
                                                                            RELEASING

ALLOCATED and PIPELINED exist only within a session: a task that is not dispatched when it closes is
PENDING again. GATED is a pod with scheduling gates, which must not be scheduled.
upstream: pkg/scheduler/api/types.go: TaskStatus; helpers.go: getTaskStatus
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.request import TaskRequest
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo

if TYPE_CHECKING:
    from fairlead.engine.batch.info.job import JobInfo

# A missing timestamp is the zero time, which is before all others.
THE_BEGINNING: Final[Instant] = -(1 << 62)


class TaskStatus(IntEnum):
    """The status of a task; the module's docstring shows the transitions."""

    PENDING = 0
    GATED = 1
    ALLOCATED = 2
    PIPELINED = 3
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    SUCCEEDED = 8
    FAILED = 9
    UNKNOWN = 10


# Has a node and will use it (helpers.go: AllocatedStatus).
ALLOCATED_STATUSES: Final = (
    TaskStatus.ALLOCATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
)
# Counts in the shares of its job and queue: pipelined tasks count like allocated ones.
HOLDING_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.PIPELINED)
HOLDS: Final = tuple(status in HOLDING_STATUSES for status in TaskStatus)

_BY_PHASE: Final = {
    "Running": TaskStatus.RUNNING,
    "Succeeded": TaskStatus.SUCCEEDED,
    "Failed": TaskStatus.FAILED,
    "Unknown": TaskStatus.UNKNOWN,
}


def status_of(pod: Pod) -> TaskStatus:
    """Return the status that a pod's object shows; a missing phase is Pending."""
    phase = pod.status.phase or "Pending"
    if phase in ("Pending", "Running") and pod.metadata.deletion_timestamp:
        return TaskStatus.RELEASING
    if phase != "Pending":
        return _BY_PHASE.get(phase, TaskStatus.UNKNOWN)
    if pod.spec.node_name:
        return TaskStatus.BOUND
    return TaskStatus.GATED if pod.spec.scheduling_gates else TaskStatus.PENDING


class TaskInfo:
    """One task, identified by `PodInfo.id`; `node` is the name of its node, "" if it has none.

    Only `JobTable` (observed changes) and `Session.move` (decisions) write it.
    """

    __slots__ = ("created", "id", "info", "job", "node", "priority", "request", "status")

    def __init__(self, info: PodInfo, job: JobInfo, request: TaskRequest) -> None:
        """Create a task with the status that its object shows."""
        created = info.pod.metadata.creation_timestamp
        self.id = info.id
        self.job = job
        self.request = request
        self.created: Instant = parse_timestamp(created) if created else THE_BEGINNING
        self.status = status_of(info.pod)
        self.show(info)

    def show(self, info: PodInfo) -> None:
        """Store the newest version of the pod; the job sets the status."""
        pod = info.pod
        self.info = info
        self.node = pod.spec.node_name
        # A pod without a priority counts as 1 (job_info.go: NewTaskInfo).
        self.priority = 1 if pod.spec.priority is None else pod.spec.priority

    @property
    def key(self) -> str:
        """The pod's `namespace/name`."""
        return self.info.key

    @property
    def ref(self) -> ObjectRef:
        """The pod's identity, for commands and records."""
        return self.info.ref

    def __repr__(self) -> str:
        """Return a short text, for failing tests."""
        return f"TaskInfo({self.key}, {self.status.name}, {self.node or '-'})"
