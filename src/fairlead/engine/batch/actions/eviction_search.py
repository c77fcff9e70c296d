"""RoomMaker: finds victims for a task, evicts them, and pipelines the task onto their node.

Preempt (within a queue) and reclaim (between queues) use different candidates and call different
plugin methods. The search is the same:

    1  rank the nodes on which the task may run and candidates occupy enough, best node first
    2  if a node has enough idle or releasing resources already, pipeline the task there
    3  otherwise, on each node: evict candidates that all plugins allow, least important first,
       until the task fits
    4  otherwise, if only whole gangs can make the room: evict the least important gang that is
       enough (only under Fairlead's rules)

Step 2 alone is never kept (`settle`): a job that needs no eviction is left to allocate.

upstream: actions/preempt/preempt.go: preempt; actions/reclaim/reclaim.go: Execute
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairlead.engine.batch.actions.eviction_kind import EvictionKind
from fairlead.engine.batch.actions.victim_queue import Givers, Giving
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task import TaskInfo, TaskStatus
from fairlead.engine.batch.nodes.room import Bools
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import TaskOperations
from fairlead.engine.batch.session.tier import Voters
from fairlead.engine.batch.session.victim_vote import vote
from fairlead.engine.state.node_info import NodeInfo

Filter = Callable[[TaskInfo, TaskInfo], bool]
_BEFORE_RUNNING = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND)


class RoomMaker:
    """Makes room for the tasks of one job, one task at a time."""

    def __init__(
        self,
        session: Session,
        kind: EvictionKind,
        givers: Givers,
        job: JobInfo,
        is_candidate: Filter,
    ) -> None:
        """Candidates are the running tasks with `is_candidate(task of job, candidate)`."""
        self._session = session
        self._kind = kind
        self._is_candidate = is_candidate
        self._voters = kind.voters(session.tiers)
        self._ignores_idle = session.defects.has(Defect.EVICT_IGNORES_IDLE)
        self._view = session.view(job)
        self._surplus = givers.for_job(job, self._voters)
        self._whole: Giving | None = None
        if session.rules.takes_whole_gangs:
            self._whole = givers.for_job(job, without_gang_protection(self._voters))
        self._hopeless: set[tuple[int, int]] = set()

    def make_room(self, steps: TaskOperations, task: TaskInfo) -> bool:
        """Make room for `task` and pipeline it there; return False if nothing could be done."""
        kind = (task.info.shape.id, task.priority)
        most = self._whole or self._surplus
        if not most.jobs or kind in self._hopeless:
            return False
        hopeful = self._hopeful_rows(task, most)
        if not hopeful.any():
            self._hopeless.add(kind)
            return False
        nodes = self._session.choices(task.job).anyhow.ranked(task.info, hopeful)
        if not self._ignores_idle and steps.is_final and self._fits_now(task, nodes):
            return False
        if self._pipeline(steps, task, nodes):
            return True
        if self._take_surplus(steps, task, nodes) or self._take_gang(steps, task, nodes):
            self._hopeless.clear()
            return True
        self._hopeless.add(kind)
        return False

    # --- where -----------------------------------------------------------------------------

    def _hopeful_rows(self, task: TaskInfo, giving: Giving) -> Bools:
        """The rows of the nodes where `task` would fit if every possible victim left."""
        hopeful = np.ones(self._session.table.capacity, np.bool_)
        for column, floor in task.request.floors:
            free = giving.potential[column]
            if not self._ignores_idle:
                free = free + self._view.future_many(column)
            hopeful &= free >= floor
        return hopeful

    def _fits_now(self, task: TaskInfo, nodes: Sequence[NodeInfo]) -> bool:
        return any(self._view.fits_now(task.request, node.row) for node in nodes)

    def _pipeline(self, steps: TaskOperations, task: TaskInfo, nodes: Sequence[NodeInfo]) -> bool:
        """Pipeline `task` on the first node with enough idle and releasing resources."""
        if self._ignores_idle:
            return False
        node = next((node for node in nodes if self._covers(task, node, ())), None)
        if node is None:
            return False
        steps.pipeline(task, node)
        return True

    # --- who -------------------------------------------------------------------------------

    def _running_on(self, task: TaskInfo, node: NodeInfo) -> list[TaskInfo]:
        """The candidates for `task` on `node`, least important first."""
        found = [
            other
            for other in self._session.tasks_on(node)
            if other.status is TaskStatus.RUNNING and self._is_candidate(task, other)
        ]
        return sorted(found, key=self._session.tiers.task_key, reverse=True)

    def _vote(self, voters: Voters, task: TaskInfo, who: Sequence[TaskInfo]) -> list[TaskInfo]:
        ask = self._kind.ask
        return vote(voters, partial(_ask, ask, task, who), self._session.defects)

    def _take_surplus(
        self, steps: TaskOperations, task: TaskInfo, nodes: Sequence[NodeInfo]
    ) -> bool:
        """Evict surplus members one by one, on the first node where that makes enough room."""
        if not self._surplus.jobs:
            return False
        hopeful = self._hopeful_rows(task, self._surplus)
        return any(self._take_on(steps, task, node) for node in nodes if hopeful[node.row])

    def _take_on(self, steps: TaskOperations, task: TaskInfo, node: NodeInfo) -> bool:
        victims = self._vote(self._voters, task, self._running_on(task, node))
        if not victims or not self._covers(task, node, victims):
            return False
        steps.displace(task, node, self._fewest_victims(task, node, victims), self._kind.why)
        return True

    def _covers(self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo]) -> bool:
        """Whether `task` fits on `node` once `victims` are gone.

        In kube-batch the victims alone must make the room (evict-ignores-idle).
        """
        freed: dict[int, int] = {}
        for victim in victims:
            for column, amount in victim.request.running:
                freed[column] = freed.get(column, 0) + amount
        if not self._ignores_idle:
            for column, _ in task.request.floors:
                free = self._view.future(column, node.row)
                freed[column] = freed.get(column, 0) + free
        return all(freed.get(column, 0) >= floor for column, floor in task.request.floors)

    def _fewest_victims(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo]
    ) -> list[TaskInfo]:
        """The first of `victims`, until `task` fits; at least one in kube-batch."""
        leaving: list[TaskInfo] = []
        for victim in victims:
            if (leaving or not self._ignores_idle) and self._covers(task, node, leaving):
                break
            leaving.append(victim)
        return leaving

    # --- whole gangs -----------------------------------------------------------------------

    def _take_gang(self, steps: TaskOperations, task: TaskInfo, nodes: list[NodeInfo]) -> bool:
        """Evict, as a whole, the least important gang that makes enough room on one of `nodes`."""
        if self._whole is None:
            return False
        voters = without_gang_protection(self._voters)
        for job in sorted(self._whole.jobs, key=self._session.tiers.job_key, reverse=True):
            members = job.with_status(TaskStatus.RUNNING)
            if not members or any(job.by_status[status] for status in _BEFORE_RUNNING):
                continue
            node = self._node_of_gang(task, nodes, members)
            if node is None or not self._all_may_leave(voters, task, members):
                continue
            steps.displace(task, node, members, self._kind.why)
            return True
        return False

    def _node_of_gang(
        self, task: TaskInfo, nodes: list[NodeInfo], members: Sequence[TaskInfo]
    ) -> NodeInfo | None:
        """The best node on which `task` fits once `members` are gone."""
        by_node: dict[str, list[TaskInfo]] = {}
        for member in members:
            by_node.setdefault(member.node, []).append(member)
        return next(
            (n for n in nodes if n.name in by_node and self._covers(task, n, by_node[n.name])),
            None,
        )

    def _all_may_leave(self, voters: Voters, task: TaskInfo, members: Sequence[TaskInfo]) -> bool:
        if not all(self._is_candidate(task, member) for member in members):
            return False
        return len(self._vote(voters, task, members)) == len(members)


def settle(session: Session, steps: TaskOperations, job: JobInfo) -> None:
    """Commit if the statement evicts and `job` can start then; otherwise discard it."""
    if steps.evicts and session.tiers.is_pipelined(job):
        steps.commit()
    else:
        steps.discard()


def _ask(
    ask: Callable[[Any, TaskInfo, Sequence[TaskInfo]], Sequence[TaskInfo]],
    task: TaskInfo,
    who: Sequence[TaskInfo],
    plugin: object,
) -> Sequence[TaskInfo]:
    return ask(plugin, task, who)


def without_gang_protection(voters: Voters) -> Voters:
    """`voters` without the plugins that only protect a gang from losing single members."""
    return tuple(
        tuple(plugin for plugin in tier if not getattr(plugin, "protects_gangs", False))
        for tier in voters
    )
