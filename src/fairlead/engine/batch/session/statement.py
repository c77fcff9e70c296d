"""Statement: several steps that are made so together, or not at all.

Each operation is done in the session at once, so that whatever is asked next already sees it.
`discard` undoes in reverse order and leaves no trace; `commit` does what cannot be undone, in
order. upstream: pkg/scheduler/framework/statement.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.engine.batch.info.task import TaskInfo, TaskStatus
from fairlead.engine.batch.session.session import Session
from fairlead.engine.state.node_info import NodeInfo


class StatementOperation(Protocol):
    """A step with its inverse."""

    def do(self, session: Session) -> None:
        """Suppose it."""
        ...

    def undo(self, session: Session) -> None:
        """Take it back exactly."""
        ...

    def settle(self, session: Session) -> None:
        """Make it so."""
        ...


@dataclass(frozen=True, slots=True)
class AllocateOperation:
    """Give `task` idle room on `node`; it is bound once its job is ready."""

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Suppose it."""
        session.allocate(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Take it back."""
        session.deallocate(self.task)

    def settle(self, session: Session) -> None:
        """Binding is for the job as a whole, once."""
        waits = self.task.status is TaskStatus.ALLOCATED
        if waits and session.tiers.is_ready(self.task.job):
            session.dispatch_ready(self.task.job)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Promise `task` room on `node` that is becoming free; a promise is for the session only."""

    task: TaskInfo
    node: NodeInfo

    def do(self, session: Session) -> None:
        """Suppose it."""
        session.pipeline(self.task, self.node)

    def undo(self, session: Session) -> None:
        """Take it back."""
        session.unpipeline(self.task)

    def settle(self, session: Session) -> None:
        """There is nothing to tell the world."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Tell `task` to go, because of `why`."""

    task: TaskInfo
    why: str

    def do(self, session: Session) -> None:
        """Suppose it."""
        session.release(self.task)

    def undo(self, session: Session) -> None:
        """Take it back."""
        session.unevict(self.task)

    def settle(self, session: Session) -> None:
        """Now it goes."""
        session.evict(self.task, self.why)


@dataclass(frozen=True, slots=True)
class Displace:
    """Tell whoever listens that `victims` go for the sake of `task`, which comes to `node`."""

    task: TaskInfo
    node: NodeInfo
    victims: Sequence[TaskInfo]
    why: str

    def do(self, session: Session) -> None:
        """There is nothing to tell yet."""

    def undo(self, session: Session) -> None:
        """Nobody was told."""

    def settle(self, session: Session) -> None:
        """Now it is so."""
        session.tell_displacement(self.task, self.node, self.victims, self.why)


class TaskOperations(Protocol):
    """What `Statement` and `Outright` have in common."""

    @property
    def is_final(self) -> bool:
        """Whether nothing can be taken back."""
        ...

    @property
    def evicts(self) -> bool:
        """Whether somebody has to go, or may have been told to."""
        ...

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Give `task` idle room on `node`."""
        ...

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Promise `task` room on `node`."""
        ...

    def evict(self, task: TaskInfo, why: str) -> None:
        """Tell `task` to go."""
        ...

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Tell `victims` to go, and promise `task` room on `node`."""
        ...

    def commit(self) -> None:
        """Make everything so."""
        ...

    def discard(self) -> None:
        """Undo everything."""
        ...


class Outright:
    """No statement at all: every step is final, and a job is bound as soon as it is ready.

    This is how kube-batch allocates (partial-hold) and reclaims (reclaim-no-gang).
    """

    def __init__(self, session: Session) -> None:
        """Nothing to remember."""
        self._session = session

    @property
    def is_final(self) -> bool:
        """Every step is."""
        return True

    @property
    def evicts(self) -> bool:
        """It is so already."""
        return True

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Give `task` idle room on `node`."""
        self._session.allocate(task, node)
        if self._session.tiers.is_ready(task.job):
            self._session.dispatch_ready(task.job)

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Promise `task` room on `node`."""
        self._session.pipeline(task, node)

    def evict(self, task: TaskInfo, why: str) -> None:
        """Tell `task` to go."""
        self._session.evict(task, why)
        self._session.release(task)

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Tell `victims` to go, and promise `task` room on `node`."""
        for victim in victims:
            self.evict(victim, why)
        self.pipeline(task, node)
        self._session.tell_displacement(task, node, victims, why)

    def commit(self) -> None:
        """It is so already."""

    def discard(self) -> None:
        """It cannot be undone."""


class Statement:
    """Operations done and not yet settled."""

    def __init__(self, session: Session) -> None:
        """Nothing is done."""
        self._session = session
        self._done: list[StatementOperation] = []

    def __len__(self) -> int:
        """How many operations are open."""
        return len(self._done)

    @property
    def is_final(self) -> bool:
        """What is not committed can be discarded."""
        return False

    @property
    def evicts(self) -> bool:
        """Whether somebody has to go."""
        return any(isinstance(operation, Evict) for operation in self._done)

    def allocate(self, task: TaskInfo, node: NodeInfo) -> None:
        """Give `task` idle room on `node`."""
        self._do(AllocateOperation(task, node))

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> None:
        """Promise `task` room on `node`."""
        self._do(Pipeline(task, node))

    def evict(self, task: TaskInfo, why: str) -> None:
        """Tell `task` to go."""
        self._do(Evict(task, why))

    def displace(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo], why: str
    ) -> None:
        """Tell `victims` to go, and promise `task` room on `node`."""
        for victim in victims:
            self.evict(victim, why)
        self.pipeline(task, node)
        self._do(Displace(task, node, victims, why))

    def _do(self, operation: StatementOperation) -> None:
        operation.do(self._session)
        self._done.append(operation)

    def commit(self) -> None:
        """Make everything so."""
        for operation in self._done:
            operation.settle(self._session)
        self._done.clear()

    def discard(self) -> None:
        """Undo everything."""
        self.discard_after(0)

    def discard_after(self, kept: int) -> None:
        """Undo everything after the first `kept` operations."""
        while len(self._done) > kept:
            self._done.pop().undo(self._session)
