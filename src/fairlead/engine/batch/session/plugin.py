"""What a batch plugin may take part in, as small Protocols.

A plugin is a class with a `name` and the methods of what it has a say in; `Tiers` finds out which
by looking. Order is told by keys: of two, the one with the smaller key comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.task import TaskInfo
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.release_1_16.requested import Sums

if TYPE_CHECKING:
    from fairlead.engine.batch.session.session import Session


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """Why a job cannot run: reason and message of its condition."""

    reason: str
    message: str


class BatchPlugin(Protocol):
    """What every plugin has."""

    @property
    def name(self) -> str:
        """The name by which configuration refers to it."""
        ...


@runtime_checkable
class Opens(BatchPlugin, Protocol):
    """Looks at the session before anything is decided."""

    def open(self, session: Session) -> None:
        """Everything that was known of an earlier session is to be forgotten."""
        ...


@runtime_checkable
class Listens(BatchPlugin, Protocol):
    """Hears what tasks come to hold, and what they no longer hold."""

    def allocated(self, task: TaskInfo) -> None:
        """`task` holds what it occupies; undone by `deallocated`."""
        ...

    def deallocated(self, task: TaskInfo) -> None:
        """`task` holds nothing any more."""
        ...


@runtime_checkable
class JobOrder(BatchPlugin, Protocol):
    """Orders the jobs of a queue."""

    def job_key(self, job: JobInfo) -> Any:
        """Smaller is served first."""
        ...


@runtime_checkable
class QueueOrder(BatchPlugin, Protocol):
    """Orders queues."""

    def queue_key(self, queue: QueueInfo) -> Any:
        """Smaller is served first."""
        ...


@runtime_checkable
class TaskOrder(BatchPlugin, Protocol):
    """Orders the tasks of a job."""

    def task_key(self, task: TaskInfo) -> Any:
        """Smaller is served first, and evicted last."""
        ...


@runtime_checkable
class JobReady(BatchPlugin, Protocol):
    """Says when a job may be bound."""

    def is_ready(self, job: JobInfo) -> bool:
        """Whether enough of it has a node."""
        ...


@runtime_checkable
class JobPipelined(BatchPlugin, Protocol):
    """Says when evictions for a job are worth while."""

    def is_pipelined(self, job: JobInfo) -> bool:
        """Whether enough of it has a node or was promised one."""
        ...


@runtime_checkable
class JobValid(BatchPlugin, Protocol):
    """Says which jobs need not be tried."""

    def objection(self, job: JobInfo) -> Unschedulable | None:
        """None to try it."""
        ...


@runtime_checkable
class Overused(BatchPlugin, Protocol):
    """Says which queues have enough."""

    def is_overused(self, queue: QueueInfo) -> bool:
        """Whether the queue gets nothing more."""
        ...


@runtime_checkable
class Allocatable(BatchPlugin, Protocol):
    """Says what a queue can still take."""

    def may_take(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Whether the queue stays within its bounds with `task`."""
        ...


@runtime_checkable
class Preemptable(BatchPlugin, Protocol):
    """Says who may be evicted for a task of the same queue."""

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Those of `candidates` (all on one node) that may go, in their order."""
        ...


@runtime_checkable
class Reclaimable(BatchPlugin, Protocol):
    """Says who may be evicted for a task of another queue."""

    def reclaimable(
        self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Those of `candidates` (all on one node) that may go, in their order."""
        ...


@runtime_checkable
class SparesFromPreemption(BatchPlugin, Protocol):
    """A `Preemptable` that can speak for whole jobs, so that it need not be asked about members."""

    def spares_from_preemption(self, taker: JobInfo, giver: JobInfo) -> bool:
        """Whether it names no member of `giver`, whichever task of `taker` it is for."""
        ...


@runtime_checkable
class SparesFromReclaim(BatchPlugin, Protocol):
    """A `Reclaimable` that can speak for whole jobs."""

    def spares_from_reclaim(self, taker: JobInfo, giver: JobInfo) -> bool:
        """Whether it names no member of `giver`, whichever task of `taker` it is for."""
        ...


@runtime_checkable
class MayReclaim(BatchPlugin, Protocol):
    """Says who may take from other queues."""

    def may_reclaim(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Whether others may be evicted for `task` of `queue`."""
        ...


@runtime_checkable
class JobEnqueueable(BatchPlugin, Protocol):
    """Says which groups are worth having pods (the action enqueue)."""

    def may_enqueue(self, job: JobInfo) -> bool:
        """Whether there is room for what the group says it needs at least."""
        ...


@runtime_checkable
class JobEnqueued(BatchPlugin, Protocol):
    """Hears which groups were enqueued."""

    def enqueued(self, job: JobInfo) -> None:
        """`job` counts from now on."""
        ...


@runtime_checkable
class Explains(BatchPlugin, Protocol):
    """Says at the end why a job did not make it."""

    def unschedulable(self, job: JobInfo, fit_error: str) -> Unschedulable | None:
        """The condition of the job's group; None if nothing is wrong with it."""
        ...


class BatchHandle(Handle, Protocol):
    """What scheduler plugins may read when a batch plugin builds them."""

    @property
    def sums(self) -> Sums:
        """What counts as used on a node, by the rules of the configuration."""
        ...


@runtime_checkable
class FiltersNodes(BatchPlugin, Protocol):
    """Says where tasks may go, in the form of scheduler plugins."""

    def node_filters(self, handle: BatchHandle) -> list[SchedulerPlugin]:
        """Filter plugins; resources are none of their business."""
        ...


@runtime_checkable
class ScoresNodes(BatchPlugin, Protocol):
    """Says where tasks had better go, in the form of scheduler plugins."""

    def node_scorers(self, handle: BatchHandle) -> list[tuple[SchedulerPlugin, int]]:
        """Score plugins with their weights."""
        ...
