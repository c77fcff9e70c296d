"""Statement: several operations that are committed or discarded together.

Each operation takes effect in the session immediately, so that later decisions take it into
account. `discard` reverts the operations completely, in reverse order. `commit` performs the
irreversible parts, in order. upstream: pkg/scheduler/framework/statement.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.session import Session
from fairlead.engine.state.node_info import NodeInfo


class StatementOperation(Protocol):
    """An operation of a statement, with its inverse."""

    def do(self, session: Session) -> None:
        """Carry out the operation in the session."""
        ...

    def undo(self, session: Session) -> None:
        """Undo `do` exactly."""
        ...

    def settle(self, session: Session) -> None:
        """Perform the irreversible part."""
        ...


@dataclass(frozen=True, slots=True)
class AllocateOperation:
    """Allocates idle resources on `node` to `task`, which is bound once its job is ready."""

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Allocate the resources in the session."""
        session.allocate(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Deallocate the resources in the session."""
        session.deallocate(self.task)

    def settle(self, session: Session) -> None:
        """Bind the job's tasks once the job is ready."""
        waits = self.task.status is TaskStatus.ALLOCATED
        if waits and session.tiers.is_ready(self.task.job):
            session.dispatch_ready(self.task.job)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Pipelines `task` onto releasing resources of `node`, until the end of the session."""

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Pipeline the task in the session."""
        session.pipeline(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Undo the pipelining in the session."""
        session.unpipeline(self.task)

    def settle(self, session: Session) -> None:
        """Do nothing: pipelining sends no command."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evicts `task`, with the reason `why`."""

    task: TaskInfo
    why: str

    def do(self, session: Session) -> None:
        """Mark the task as releasing in the session."""
        session.release(self.task)

    def undo(self, session: Session) -> None:
        """Undo the release in the session."""
        session.unevict(self.task)

    def settle(self, session: Session) -> None:
        """Send the deletion of the pod."""
        session.evict(self.task, self.why)


@dataclass(frozen=True, slots=True)
class Displace:
    """Reports that `victims` are evicted to make room for `task` on `node`."""

    task: TaskInfo
    node: NodeInfo
    victims: Sequence[TaskInfo]
    why: str

    def do(self, session: Session) -> None:
        """Do nothing before the commit."""

    def undo(self, session: Session) -> None:
        """Do nothing: nothing was done before the commit."""

    def settle(self, session: Session) -> None:
        """Report the victims as displaced by `task`."""
        session.report_displacement(self.task, self.node, self.victims, self.why)


class TaskOperations(Protocol):
    """The interface of `Statement` and `ImmediateOperations`."""

    @property
    def is_final(self) -> bool:
        """Whether operations cannot be undone."""
        ...

    @property
    def evicts(self) -> bool:
        """Whether an operation is an eviction, or an eviction may have been sent."""
        ...

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`."""
        ...

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto `node`."""
        ...

    def evict(self, task: TaskInfo, why: str) -> None:
        """Evict `task`."""
        ...

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Evict `victims`, and pipeline `task` onto `node`."""
        ...

    def commit(self) -> None:
        """Make all operations final."""
        ...

    def discard(self) -> None:
        """Undo all operations."""
        ...


class ImmediateOperations:
    """Operations without a statement: each is final immediately; a ready job is bound.

    kube-batch allocates (partial-hold) and reclaims (reclaim-no-gang) like this.
    """

    def __init__(self, session: Session) -> None:
        """Operate on `session`; there is no other state."""
        self._session = session

    @property
    def is_final(self) -> bool:
        """True: no operation can be reverted."""
        return True

    @property
    def evicts(self) -> bool:
        """True: an eviction may have been sent."""
        return True

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate, and bind the job if it is ready now."""
        self._session.allocate(task, node)
        if self._session.tiers.is_ready(task.job):
            self._session.dispatch_ready(task.job)

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto `node`."""
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
        """Do nothing: all operations are final already."""

    def discard(self) -> None:
        """Do nothing: operations cannot be reverted."""


class Statement:
    """Operations that are done in the session and not yet final."""

    def __init__(self, session: Session) -> None:
        """Start without operations."""
        self._session = session
        self._done: list[StatementOperation] = []

    def __len__(self) -> int:
        """Return the number of open operations."""
        return len(self._done)

    @property
    def is_final(self) -> bool:
        """False: operations that are not committed can be discarded."""
        return False

    @property
    def evicts(self) -> bool:
        """Whether an operation is an eviction."""
        return any(isinstance(operation, Evict) for operation in self._done)

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Allocate idle resources on `node` to `task`."""
        self._do(AllocateOperation(task, node))

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Pipeline `task` onto `node`."""
        self._do(Pipeline(task, node))

    def evict(self, task: TaskInfo, why: str) -> None:
        """Evict `task` on commit."""
        self._do(Evict(task, why))

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Evict `victims` on commit, and pipeline `task` onto `node`."""
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
            operation.settle(self._session)
        self._done.clear()

    def discard(self) -> None:
        """Undo all operations."""
        self.discard_after(0)

    def discard_after(self, kept: int) -> None:
        """Undo all operations after the first `kept`."""
        while len(self._done) > kept:
            self._done.pop().undo(self._session)
