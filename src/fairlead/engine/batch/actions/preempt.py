"""preempt: evicts tasks in favour of more important pending tasks of the same queue.

    phase 1   between jobs of one queue: the evictions and placements for a job are committed
              together, once the job can start
    phase 2   within a job: the evictions and the placement for each task are committed separately

upstream: pkg/scheduler/actions/preempt/preempt.go
"""

from __future__ import annotations

from collections import deque

from fairlead.engine.batch.actions.eviction_search import (
    PREEMPTION,
    EvictionSearch,
    commit_or_discard,
    preemptor_tasks,
    victim_pools,
)
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.priority_queue import PriorityQueue
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import Statement

Tasks = deque[TaskInfo]


class Preempt:
    """The action `preempt`: evicts tasks in favour of more important tasks of the same queue."""

    name = "preempt"

    def execute(self, session: Session) -> None:
        """For each queue, preempt between its jobs (phase 1), then within each job (phase 2).

        Queues are served in queue order. If kube-batch's defect `preempt-phase2` is reproduced,
        phase 2 runs for all queues each time phase 1 has run for a queue.
        """
        queues = list(dict.fromkeys(job.queue for job in session.candidates()))
        queues.sort(key=lambda name: session.tiers.queue_key(session.queues[name]))
        pending_jobs = [job for job in session.candidates() if job.by_status[TaskStatus.PENDING]]
        tasks = {job.id: preemptor_tasks(session, job) for job in pending_jobs}
        for name in queues:
            own = [job for job in pending_jobs if job.queue == name]
            _between_jobs(session, own, tasks)
            if session.defects.has(Defect.PREEMPT_PHASE2):
                _within_jobs(session, pending_jobs, tasks)
            else:
                left = tasks  # kube-batch: the tasks that remain from phase 1
                if session.rules.tries_every_task:
                    left = {job.id: preemptor_tasks(session, job) for job in own}
                _within_jobs(session, own, left)


def _between_jobs(session: Session, pending_jobs: list[JobInfo], tasks: dict[str, Tasks]) -> None:
    """Let each of `pending_jobs` preempt tasks of other jobs in the same queue.

    `pending_jobs` are the jobs of one queue that have pending tasks.
    """
    jobs: PriorityQueue[JobInfo] = PriorityQueue(session.tiers.job_key)
    searches: dict[str, EvictionSearch] = {}
    queue = next((job.queue for job in pending_jobs), "")
    queue_jobs = [job for job in session.jobs.values() if job.queue == queue]
    pools = victim_pools(session, PREEMPTION, queue_jobs)
    for job in pending_jobs:
        jobs.push(job)
    while jobs:
        job = jobs.pop()
        if job.id not in searches:
            searches[job.id] = EvictionSearch(session, PREEMPTION, pools, job, _of_other_job)
        if _preempt_for_job(session, job, tasks[job.id], searches[job.id]):
            jobs.push(job)


def _of_other_job(preemptor: TaskInfo, task: TaskInfo) -> bool:
    return task.job.queue == preemptor.job.queue and task.job is not preemptor.job


def _preempt_for_job(session: Session, job: JobInfo, tasks: Tasks, search: EvictionSearch) -> bool:
    """Make room for the pending `tasks` of `job` until `job` can start or `tasks` is empty.

    Handled tasks are removed from `tasks`. Returns whether `job` can start and at least one of its
    tasks was pipelined.
    """
    statement, assigned = Statement(session), False
    while tasks:
        assigned = search.make_room(statement, tasks.popleft()) or assigned
        if session.tiers.is_pipelined(job):
            break
    can_start = session.tiers.is_pipelined(job)
    commit_or_discard(session, statement, job)
    return can_start and assigned


def _within_jobs(session: Session, pending_jobs: list[JobInfo], tasks: dict[str, Tasks]) -> None:
    is_candidate = _of_same_job
    if not session.defects.has(Defect.INTRA_JOB_PRIORITY):
        is_candidate = _less_important_of_same_job
    for job in pending_jobs:
        waiting, pools = tasks[job.id], victim_pools(session, PREEMPTION, [job])
        search = EvictionSearch(session, PREEMPTION, pools, job, is_candidate)
        while waiting:
            statement = Statement(session)
            found = search.make_room(statement, waiting.popleft())
            if statement.evicts:
                statement.commit()
            else:
                statement.discard()
            if not found and not session.rules.tries_every_task:
                break


def _of_same_job(preemptor: TaskInfo, task: TaskInfo) -> bool:
    return task.job is preemptor.job


def _less_important_of_same_job(preemptor: TaskInfo, task: TaskInfo) -> bool:
    return task.job is preemptor.job and task.priority < preemptor.priority
