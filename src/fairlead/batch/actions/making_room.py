"""Making room on a node: whom to evict for a task, and the promise that goes with it.

Shared by preempt (within a queue) and reclaim (between queues); the two differ in who is a
candidate, whom the plugins let go, and in which order nodes and victims are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.batch.defect import Defect
from fairlead.batch.session import Session
from fairlead.batch.statement import Steps
from fairlead.batch.task import TaskInfo, TaskStatus
from fairlead.state.node_info import NodeInfo

Filter = Callable[[TaskInfo], bool]
Vote = Callable[[TaskInfo, Sequence[TaskInfo]], list[TaskInfo]]


def running_on(session: Session, node: NodeInfo, is_candidate: Filter) -> list[TaskInfo]:
    """The running tasks on `node` that may be asked about, least important first."""
    found = [
        task
        for task in session.tasks_on(node)
        if task.status is TaskStatus.RUNNING and is_candidate(task)
    ]
    return least_important_first(session, found)


def least_important_first(session: Session, tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """The reverse of the order in which tasks are served."""
    return sorted(tasks, key=session.tiers.task_key, reverse=True)


def covers(session: Session, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo]) -> bool:
    """Whether `task` fits on `node` once `victims` are gone.

    For kube-batch the victims alone must make the room (evict-ignores-idle).
    """
    freed: dict[int, int] = {}
    for victim in victims:
        for column, amount in victim.request.running:
            freed[column] = freed.get(column, 0) + amount
    if not session.defects.has(Defect.EVICT_IGNORES_IDLE):
        for column, _ in task.request.floors:
            freed[column] = freed.get(column, 0) + session.room.future(column, node.row)
    return all(freed.get(column, 0) >= floor for column, floor in task.request.floors)


def need_not_leave(session: Session, task: TaskInfo, node: NodeInfo) -> bool:
    """Whether `task` can start on `node` as things are; then it is for allocate to place it."""
    return not session.defects.has(Defect.EVICT_IGNORES_IDLE) and session.room.fits_now(
        task.request, node.row
    )


def evict_until_it_fits(
    session: Session,
    statement: Steps,
    task: TaskInfo,
    node: NodeInfo,
    victims: Sequence[TaskInfo],
    why: str,
) -> None:
    """Evict from the front of `victims` as many as needed, and promise the room to `task`."""
    if session.defects.has(Defect.EVICT_IGNORES_IDLE):
        _evict_what_covers(session, statement, task, node, victims, why)
    else:
        for victim in victims:
            if covers(session, task, node, ()):
                break
            statement.evict(victim, why)
    statement.pipeline(task, node)


def _evict_what_covers(
    session: Session,
    statement: Steps,
    task: TaskInfo,
    node: NodeInfo,
    victims: Sequence[TaskInfo],
    why: str,
) -> None:
    """At least one, even for a task that asks for nothing, until the evicted alone suffice."""
    leaving: list[TaskInfo] = []
    for victim in victims:
        statement.evict(victim, why)
        leaving.append(victim)
        if covers(session, task, node, leaving):
            return
