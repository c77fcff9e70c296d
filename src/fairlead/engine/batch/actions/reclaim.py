"""reclaim: evicts tasks of queues that are above their share, for queues below their share.

upstream: pkg/scheduler/actions/reclaim/reclaim.go
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from fairlead.engine.batch.actions.eviction_search import (
    RECLAIM,
    EvictionSearch,
    commit_or_discard,
    preemptor_tasks,
    victim_pools,
)
from fairlead.engine.batch.actions.victim_pool import VictimPools
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.session.priority_queue import PriorityQueue
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import ImmediateOperations, Statement, TaskOperations

Tasks = deque[TaskInfo]


class _WaitingJobs(Struct):
    """The queues to serve, and the jobs that wait in each queue.

    `jobs` contains the waiting jobs of each queue. `pools` contains, for each of these queues, the
    jobs from which its waiting jobs may reclaim. `tasks` maps the id of each waiting job to the
    remaining pending tasks of the job.
    """

    queues: PriorityQueue[QueueInfo]
    jobs: dict[str, PriorityQueue[JobInfo]] = field(default_factory=dict)
    tasks: dict[str, Tasks] = field(default_factory=dict)
    pools: dict[str, VictimPools] = field(default_factory=dict)


class Reclaim:
    """The action `reclaim`: to start tasks of a queue, evicts tasks of queues above their share."""

    name = "reclaim"

    def execute(self, session: Session) -> None:
        """Evict tasks for the queues below their share until no more victims are found."""
        waiting = _waiting_jobs(session)
        serve = _serve_one_task if session.defects.has(Defect.RECLAIM_ONE_TASK) else _serve_job
        while waiting.queues:
            queue = waiting.queues.pop()
            jobs = waiting.jobs.get(queue.name)
            if session.tiers.is_overused(queue) or not jobs:
                continue
            if serve(session, jobs, waiting):
                waiting.queues.push(queue)


def _waiting_jobs(session: Session) -> _WaitingJobs:
    tiers = session.tiers
    waiting = _WaitingJobs(PriorityQueue(tiers.queue_key))
    seen: dict[str, None] = {}
    for job in session.candidates():
        if job.queue not in seen:
            seen[job.queue] = None
            waiting.queues.push(session.queues[job.queue])
        tasks = preemptor_tasks(session, job)
        if tasks:
            waiting.jobs.setdefault(job.queue, PriorityQueue(tiers.job_key)).push(job)
            waiting.tasks[job.id] = tasks
    return waiting


def _serve_one_task(session: Session, jobs: PriorityQueue[JobInfo], waiting: _WaitingJobs) -> bool:
    """Make room for one task of the first job in `jobs`; return whether that succeeded.

    This function is used only if kube-batch's defect `reclaim-one-task` is reproduced. If it
    returns False, the queue of the job gets no further turn.
    """
    job = jobs.pop()
    statement = _statement(session)
    task = waiting.tasks[job.id].popleft()
    found = _reclaim_for_task(session, _eviction_search(session, job, waiting), statement, task)
    commit_or_discard(session, statement, job)
    return found


def _serve_job(session: Session, jobs: PriorityQueue[JobInfo], waiting: _WaitingJobs) -> bool:
    """Make room for tasks of the first job in `jobs` until this job can start.

    Returns whether `jobs` still contains a job.
    """
    job, statement = jobs.pop(), _statement(session)
    tasks, search = waiting.tasks[job.id], _eviction_search(session, job, waiting)
    queue, tiers = session.queues[job.queue], session.tiers
    while tasks and not tiers.is_overused(queue):
        has_room = _reclaim_for_task(session, search, statement, tasks.popleft())
        if has_room and tiers.is_pipelined(job):
            break
    commit_or_discard(session, statement, job)
    if tasks:
        jobs.push(job)
    return bool(jobs)


def _statement(session: Session) -> TaskOperations:
    final = session.defects.has(Defect.RECLAIM_NO_GANG)
    return ImmediateOperations(session) if final else Statement(session)


def _reclaim_for_task(
    session: Session, search: EvictionSearch, steps: TaskOperations, task: TaskInfo
) -> bool:
    """Pipeline `task`, after evicting victims if necessary; return whether it was pipelined.

    If kube-batch's defect `evict-ignores-idle` is reproduced, `search` would evict victims even for
    a task that fits on idle resources. So for such a task, this function returns False without
    calling `search`. But if the defect `reclaim-before-idle` is also reproduced, this function
    calls `search` even for such a task.
    """
    if not session.tiers.may_reclaim(session.queues[task.job.queue], task):
        return False
    unseen = session.defects.has(Defect.EVICT_IGNORES_IDLE)
    asks = not session.defects.has(Defect.RECLAIM_BEFORE_IDLE)
    if unseen and asks and session.fits_somewhere(task):
        return False
    return search.make_room(steps, task)


def _eviction_search(session: Session, job: JobInfo, waiting: _WaitingJobs) -> EvictionSearch:
    """Return an EvictionSearch for `job` with victims from other, reclaimable queues."""
    queues = session.queues

    def is_reclaimable(other: JobInfo) -> bool:
        return other.queue != job.queue and queues[other.queue].reclaimable

    if job.queue not in waiting.pools:
        jobs = (other for other in session.jobs.values() if is_reclaimable(other))
        waiting.pools[job.queue] = victim_pools(session, RECLAIM, jobs)
    pools = waiting.pools[job.queue]
    return EvictionSearch(
        session, RECLAIM, pools, job, lambda _task, other: is_reclaimable(other.job)
    )
