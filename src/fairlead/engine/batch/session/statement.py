"""Statement: several operations that are committed or discarded together.

Each operation changes the session immediately. `discard` reverts the operations in reverse order.
`commit` executes the irreversible parts of the operations, in order.

upstream: pkg/scheduler/framework/statement.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.session import Session
from fairlead.engine.state.node_info import NodeInfo


class StatementOperation(Protocol):
    """An operation that a statement can undo until the statement commits it."""

    def do(self, session: Session) -> None:
        """Execute the part of the operation that can be undone: the changes of the session."""
        ...

    def undo(self, session: Session) -> None:
        """Revert exactly the changes that `do` made."""
        ...

    def commit(self, session: Session) -> None:
        """Execute the part of the operation that cannot be undone."""
        ...


class AllocateOperation(Struct, frozen=True):
    """Allocates idle resources on `node` to `task`, which is bound once its job is ready."""

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Allocate the resources to `task` in `session`."""
        session.allocate(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Take the allocated resources back from `task` in `session`."""
        session.deallocate(self.task)

    def commit(self, session: Session) -> None:
        """Bind all allocated tasks of the job if the job is ready.

        Does nothing if an earlier operation of the statement has already bound these tasks.
        """
        waits = self.task.status is TaskStatus.ALLOCATED
        if waits and session.tiers.is_ready(self.task.job):
            session.dispatch_ready(self.task.job)


class Pipeline(Struct, frozen=True):
    """Pipelines `task` onto resources that are becoming free on `node`.

    The pipelining ends with the session.
    """

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Pipeline the task in the session."""
        session.pipeline(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Undo the pipelining in the session."""
        session.unpipeline(self.task)

    def commit(self, session: Session) -> None:
        """Do nothing, because pipelining sends no command."""


class Evict(Struct, frozen=True):
    """Evicts `task` for the reason `why`."""

    task: TaskInfo
    why: str

    def do(self, session: Session) -> None:
        """Count the task's resources as releasing in the session."""
        session.release(self.task)

    def undo(self, session: Session) -> None:
        """Count the task as running again in the session."""
        session.unevict(self.task)

    def commit(self, session: Session) -> None:
        """Add the deletion of the pod to the session's commands."""
        session.evict(self.task, self.why)


class Displace(Struct, frozen=True):
    """Reports that `victims` are evicted to make room for `task` on `node`."""

    task: TaskInfo
    node: NodeInfo
    victims: Sequence[TaskInfo]
    why: str

    def do(self, session: Session) -> None:
        """Do nothing; `commit` reports the victims."""

    def undo(self, session: Session) -> None:
        """Do nothing, because only a commit has an effect."""

    def commit(self, session: Session) -> None:
        """Report that `victims` are evicted to make room for `task`."""
        session.report_displacement(self.task, self.node, self.victims, self.why)


class TaskOperations(Protocol):
    """The interface of `Statement` and `ImmediateOperations`."""

    @property
    def is_final(self) -> bool:
        """Whether operations are final immediately and cannot be undone."""
        ...

    @property
    def evicts(self) -> bool:
        """Whether the operations may include an eviction."""
        ...

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`."""
        ...

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto resources of `node` that are being released."""
        ...

    def evict(self, task: TaskInfo, why: str) -> None:
        """Evict `task` for the reason `why`."""
        ...

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Evict `victims` for the reason `why`, and pipeline `task` onto `node`."""
        ...

    def commit(self) -> None:
        """Make all operations final."""
        ...

    def discard(self) -> None:
        """Undo all operations."""
        ...


class ImmediateOperations:
    """Allocates and evicts tasks immediately, without a statement that could undo the operations.

    If kube-batch's defect `partial-hold` is reproduced, the actions allocate and backfill use this
    class. If the defect `reclaim-no-gang` is reproduced, the action reclaim uses it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def is_final(self) -> bool:
        """True, because no operation can be reverted."""
        return True

    @property
    def evicts(self) -> bool:
        """True: the operations are not recorded, so an eviction may be among them."""
        return True

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`.

        If the job of `task` is then ready, bind all allocated tasks of the job.
        """
        self._session.allocate(task, node)
        if self._session.tiers.is_ready(task.job):
            self._session.dispatch_ready(task.job)

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto resources of `node` that are being released."""
        self._session.pipeline(task, node)

    def evict(self, task: TaskInfo, why: str) -> None:
        """Evict `task` immediately."""
        self._session.evict(task, why)
        self._session.release(task)

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Evict `victims` immediately, and pipeline `task` onto `node`."""
        for victim in victims:
            self.evict(victim, why)
        self.pipeline(task, node)
        self._session.report_displacement(task, node, victims, why)

    def commit(self) -> None:
        """Do nothing, because all operations are final already."""

    def discard(self) -> None:
        """Do nothing, because operations cannot be reverted."""


class Statement:
    """Operations that have taken effect in the session but are not final."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._done: list[StatementOperation] = []

    def __len__(self) -> int:
        """Return the number of operations that are neither committed nor discarded."""
        return len(self._done)

    @property
    def is_final(self) -> bool:
        """False, because operations can be discarded until they are committed."""
        return False

    @property
    def evicts(self) -> bool:
        """Whether the open operations include an eviction."""
        return any(isinstance(operation, Evict) for operation in self._done)

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`."""
        self._do(AllocateOperation(task, node))

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto resources of `node` that are being released."""
        self._do(Pipeline(task, node))

    def evict(self, task: TaskInfo, why: str) -> None:
        """Count `task` as releasing; its pod is deleted on commit."""
        self._do(Evict(task, why))

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Count `victims` as releasing (a commit deletes them), and pipeline `task` onto `node`."""
        for victim in victims:
            self.evict(victim, why)
        self.pipeline(task, node)
        self._do(Displace(task, node, victims, why))

    def _do(self, operation: StatementOperation) -> None:
        operation.do(self._session)
        self._done.append(operation)

    def commit(self) -> None:
        """Make all operations final."""
        for operation in self._done:
            operation.commit(self._session)
        self._done.clear()

    def discard(self) -> None:
        """Undo all operations."""
        self.discard_after(0)

    def discard_after(self, count: int) -> None:
        """Undo all operations after the first `count`."""
        while len(self._done) > count:
            self._done.pop().undo(self._session)
