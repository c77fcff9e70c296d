"""TaskStatus: the status of a task, which is a pod as a member of a job.

    PENDING ── allocate ──▶ ALLOCATED ── dispatch ──▶ BINDING ──▶ BOUND ──▶ RUNNING ──▶ SUCCEEDED
       │                                                                      │  ▲         FAILED
       └── pipeline ──▶ PIPELINED                                      evict  ▼  │ unevict
                                                                            RELEASING

ALLOCATED and PIPELINED exist only within a session. A task that is not dispatched in the session is
PENDING again when the session closes. A GATED task has scheduling gates.
upstream: pkg/scheduler/api/types.go: TaskStatus; helpers.go: getTaskStatus
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant

# A missing timestamp is the zero time, which is before all others.
ZERO_TIME: Final[Instant] = -(1 << 62)


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
    """Return the TaskStatus that follows from the Pod object; a missing phase counts as Pending."""
    phase = pod.status.phase or "Pending"
    if phase in ("Pending", "Running") and pod.metadata.deletion_timestamp:
        return TaskStatus.RELEASING
    if phase != "Pending":
        return _BY_PHASE.get(phase, TaskStatus.UNKNOWN)
    if pod.spec.node_name:
        return TaskStatus.BOUND
    return TaskStatus.GATED if pod.spec.scheduling_gates else TaskStatus.PENDING
