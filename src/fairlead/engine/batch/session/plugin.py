"""The Protocols that batch plugins implement.

A plugin is a class with a `name` and the methods of one or more Protocols. Protocols and methods
have the names of the functions that a plugin of kube-batch or Volcano registers with the session:

    AddJobOrderFn          JobOrder.job_order
    AddPreemptiveFn        Preemptive.preemptive
    AddPredicateFn         Predicate.predicates, which returns scheduler plugins
    AddNodePrioritizers    NodePrioritizers.node_prioritizers, scheduler plugins with weights
    AddEventHandler        EventHandler.allocated, EventHandler.deallocated

An order is a sort key instead of a comparison: the item with the smallest key comes first.

upstream: pkg/scheduler/framework/session_plugins.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.release_1_16.requested import Sums
from fairlead.engine.state.shape import Amounts


class Unschedulable(Struct, frozen=True):
    """The reason why a job cannot run: the reason and message of its condition."""

    reason: str
    message: str


class BatchPlugin(Protocol):
    """A batch plugin. Every batch plugin has a name."""

    @property
    def name(self) -> str:
        """Name of the plugin in the configuration."""
        ...


@runtime_checkable
class EventHandler(BatchPlugin, Protocol):
    """A plugin that tracks the resources that tasks hold."""

    def allocated(self, task: TaskInfo) -> None:
        """Add the resources of `task` to the tracked amounts.

        The session calls this method after it has allocated or pipelined the task.
        """
        ...

    def deallocated(self, task: TaskInfo) -> None:
        """Subtract the resources of `task` from the tracked amounts.

        The session calls this method when the task no longer holds these resources.
        """
        ...


@runtime_checkable
class JobOrder(BatchPlugin, Protocol):
    """A plugin that orders the jobs of a queue."""

    def job_order(self, job: JobInfo) -> Any:
        """Return the sort key of `job`; the job with the smallest key is served first."""
        ...


@runtime_checkable
class QueueOrder(BatchPlugin, Protocol):
    """A plugin that orders queues."""

    def queue_order(self, queue: QueueInfo) -> Any:
        """Return the sort key of `queue`; the queue with the smallest key is served first."""
        ...


@runtime_checkable
class TaskOrder(BatchPlugin, Protocol):
    """A plugin that orders the tasks of a job."""

    def task_order(self, task: TaskInfo) -> Any:
        """Return the sort key of `task`; the task with the smallest key is placed first.

        The task with the largest key is evicted first.
        """
        ...


@runtime_checkable
class JobReady(BatchPlugin, Protocol):
    """A plugin that decides whether a job may be bound."""

    def job_ready(self, job: JobInfo) -> bool:
        """Return whether enough members have a node, so that `job` can start."""
        ...


@runtime_checkable
class JobPipelined(BatchPlugin, Protocol):
    """A plugin that decides whether a job can start once terminating pods free their resources."""

    def job_pipelined(self, job: JobInfo) -> bool:
        """Return whether enough members have a node or are pipelined."""
        ...


@runtime_checkable
class JobValid(BatchPlugin, Protocol):
    """A plugin that excludes invalid jobs from a session."""

    def job_valid(self, job: JobInfo) -> Unschedulable | None:
        """Return the reason to exclude `job` from this session, or None if the job is valid."""
        ...


@runtime_checkable
class Overused(BatchPlugin, Protocol):
    """A plugin that decides whether a queue has used up its share of the cluster."""

    def overused(self, queue: QueueInfo) -> bool:
        """Return whether the queue must not get more resources."""
        ...


@runtime_checkable
class Allocatable(BatchPlugin, Protocol):
    """A plugin that limits the amount of resources that a queue can hold."""

    def allocatable(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether the queue stays within its limits if `task` is placed."""
        ...


@runtime_checkable
class QueueLimits(Allocatable, Protocol):
    """An `Allocatable` that can also check limits as if pods had ended (see `reservation`)."""

    def exceeded_limits(
        self, queue: str, requested: Amounts, changes: Mapping[str, Amounts]
    ) -> list[str]:
        """Return the queues that would exceed their limits if `queue` also held `requested`.

        The result may contain `queue` and its ancestors, in this order. `changes` maps queues to
        amounts, which may be negative. Before the check, these amounts are added to the amounts
        that the queues hold now.
        """
        ...


@runtime_checkable
class Preemptable(BatchPlugin, Protocol):
    """A plugin that determines which tasks may be evicted for a task of the same queue."""

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that may be evicted for `preemptor`, in the order of `candidates`.

        `candidates` are either tasks on one node or all the running members of one gang.
        """
        ...


@runtime_checkable
class Reclaimable(BatchPlugin, Protocol):
    """A plugin that determines which tasks may be evicted for a task of another queue."""

    def reclaimable(
        self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that may be evicted for `reclaimer`, in the order of `candidates`.

        `candidates` are either tasks on one node or all the running members of one gang.
        """
        ...


class ExclusionScope(Enum):
    """The objects that a plugin reads when it decides whether to exclude a job from the victims.

    JOB: only the job that may be excluded. QUEUE: only the queue of that job. PREEMPTOR: the job
    that may be excluded and the job that needs resources. A plugin declares its scope in the
    attribute `exclusion_scope`; the default is PREEMPTOR.
    """

    JOB = "job"
    QUEUE = "queue"
    PREEMPTOR = "preemptor"


@runtime_checkable
class PreemptableJobs(BatchPlugin, Protocol):
    """A `Preemptable` that can exclude whole jobs, whose members are then not examined."""

    def preemptable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs whose tasks `preemptable` may choose as victims for `preemptor`."""
        ...


@runtime_checkable
class ReclaimableJobs(BatchPlugin, Protocol):
    """A `Reclaimable` that can exclude whole jobs, whose members are then not examined."""

    def reclaimable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs whose tasks `reclaimable` may choose as victims for `preemptor`."""
        ...


@runtime_checkable
class Preemptive(BatchPlugin, Protocol):
    """A plugin that decides which tasks may reclaim from other queues."""

    def preemptive(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether tasks of other queues may be evicted for `task` of `queue`."""
        ...


@runtime_checkable
class JobEnqueueable(BatchPlugin, Protocol):
    """A plugin that decides whether a group is admitted (the action enqueue)."""

    def job_enqueueable(self, job: JobInfo) -> bool:
        """Return whether this plugin's limit allows the admission of the job's minResources."""
        ...


@runtime_checkable
class JobEnqueued(BatchPlugin, Protocol):
    """A plugin that tracks the admitted groups."""

    def job_enqueued(self, job: JobInfo) -> None:
        """Record that `job` has just been admitted."""
        ...


@runtime_checkable
class Explains(BatchPlugin, Protocol):
    """A plugin that explains, at the end of the session, why a job was not scheduled."""

    def unschedulable(self, job: JobInfo, fit_error: str) -> Unschedulable | None:
        """Return the reason and message for the condition of the job's group.

        Returns None if this plugin knows no reason why the job cannot run. `fit_error` is the
        reason why tasks of the job were not placed.
        """
        ...


class BatchHandle(Handle, Protocol):
    """The state that scheduler plugins may read if a batch plugin provides them."""

    @property
    def sums(self) -> Sums:
        """The object that sums the requests of a pod, or of the pods on a node."""
        ...


@runtime_checkable
class Predicate(BatchPlugin, Protocol):
    """A batch plugin that provides Filter plugins of the scheduling framework."""

    def predicates(self, handle: BatchHandle) -> list[SchedulerPlugin]:
        """Return the Filter plugins.

        The Filter plugins must not check resources, because the session does.
        """
        ...


@runtime_checkable
class NodePrioritizers(BatchPlugin, Protocol):
    """A batch plugin that provides Score plugins of the scheduling framework."""

    def node_prioritizers(self, handle: BatchHandle) -> list[tuple[SchedulerPlugin, int]]:
        """Return pairs (Score plugin, weight)."""
        ...
