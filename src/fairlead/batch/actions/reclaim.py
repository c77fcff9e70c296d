"""reclaim: a queue below its share takes back what others have above theirs.

upstream: pkg/scheduler/actions/reclaim/reclaim.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairlead.batch.actions.making_room import (
    Filter,
    covers,
    evict_until_it_fits,
    need_not_leave,
    running_on,
)
from fairlead.batch.defect import Defect
from fairlead.batch.job import JobInfo
from fairlead.batch.plugins.plugin import Reclaimable
from fairlead.batch.priority_queue import PriorityQueue
from fairlead.batch.queue import QueueInfo
from fairlead.batch.session import Session
from fairlead.batch.statement import Outright, Statement, Steps
from fairlead.batch.task import TaskInfo, TaskStatus
from fairlead.batch.victim_vote import vote
from fairlead.state.node_info import NodeInfo

Tasks = deque[TaskInfo]
WHY = "reclaim"


@dataclass(slots=True)
class _Line:
    """Who waits: queues, the hungry jobs of each, and their tasks."""

    queues: PriorityQueue[QueueInfo]
    jobs: dict[str, PriorityQueue[JobInfo]] = field(default_factory=dict)
    tasks: dict[str, Tasks] = field(default_factory=dict)


class Reclaim:
    """See the module's docstring."""

    name = "reclaim"

    def execute(self, session: Session) -> None:
        """Until no queue below its share finds anything."""
        line = _line_up(session)
        serve = _serve_one_task if session.defects.has(Defect.RECLAIM_ONE_TASK) else _serve_job
        while line.queues:
            queue = line.queues.pop()
            jobs = line.jobs.get(queue.name)
            if session.tiers.is_overused(queue) or not jobs:
                continue
            if serve(session, jobs, line):
                line.queues.push(queue)


def _line_up(session: Session) -> _Line:
    tiers = session.tiers
    line = _Line(PriorityQueue(tiers.queue_key))
    seen: dict[str, None] = {}
    for job in session.candidates():
        if job.queue not in seen:
            seen[job.queue] = None
            line.queues.push(session.queues[job.queue])
        tasks = _waiting(session, job)
        if tasks:
            line.jobs.setdefault(job.queue, PriorityQueue(tiers.job_key)).push(job)
            line.tasks[job.id] = tasks
    return line


def _waiting(session: Session, job: JobInfo) -> Tasks:
    waiting = job.with_status(TaskStatus.PENDING)
    if not session.defects.has(Defect.BESTEFFORT_PREEMPTOR):
        waiting = [task for task in waiting if not task.request.is_best_effort]
    return deque(sorted(waiting, key=session.tiers.task_key))


def _serve_one_task(session: Session, jobs: PriorityQueue[JobInfo], line: _Line) -> bool:
    """kube-batch's turn of a queue: one task of one job, and out at the first failure."""
    job = jobs.pop()
    statement = _steps(session)
    found = _reclaim_for_task(session, statement, line.tasks[job.id].popleft())
    _settle(session, statement, job)
    return found


def _serve_job(session: Session, jobs: PriorityQueue[JobInfo], line: _Line) -> bool:
    """One turn of a queue: its first job, until that can start; true as long as jobs are left."""
    job, statement = jobs.pop(), _steps(session)
    tasks, found = line.tasks[job.id], False
    while tasks:
        task = tasks.popleft()
        if session.tiers.is_overused(session.queues[job.queue]):
            break
        if not _reclaim_for_task(session, statement, task):
            continue
        found = True
        if session.tiers.is_pipelined(job):
            break
    _settle(session, statement, job)
    if found and tasks:
        jobs.push(job)
    return bool(jobs)


def _steps(session: Session) -> Steps:
    final = session.defects.has(Defect.RECLAIM_NO_GANG)
    return Outright(session) if final else Statement(session)


def _settle(session: Session, statement: Steps, job: JobInfo) -> None:
    if session.tiers.is_pipelined(job):
        statement.commit()
    else:
        statement.discard()


def _reclaim_for_task(session: Session, statement: Steps, task: TaskInfo) -> bool:
    """Make room on the first node on which that is possible."""
    if not session.defects.has(Defect.RECLAIM_BEFORE_IDLE) and session.fits_somewhere(task):
        return False
    voters = session.tiers.reclaim_voters
    for node in _nodes(session, task):
        if need_not_leave(session, task, node):
            return False
        candidates = running_on(session, node, _of_other_queues(session, task))
        victims = vote(voters, partial(_ask, task, candidates), session.defects)
        if victims and covers(session, task, node, victims):
            evict_until_it_fits(session, statement, task, node, victims, WHY)
            return True
    return False


def _nodes(session: Session, task: TaskInfo) -> Iterable[NodeInfo]:
    return session.choices.anyhow.ranked(task.info)


def _of_other_queues(session: Session, reclaimer: TaskInfo) -> Filter:
    mine, queues = reclaimer.job.queue, session.queues
    return lambda task: task.job.queue != mine and queues[task.job.queue].reclaimable


def _ask(
    reclaimer: TaskInfo, candidates: Sequence[TaskInfo], plugin: Reclaimable
) -> Sequence[TaskInfo]:
    return plugin.reclaimable(reclaimer, candidates)
