"""preempt: a queue's more important jobs make its others leave; then each job its lesser tasks.

    phase 1   between jobs of one queue: a statement per job, committed once the job can start
    phase 2   within a job: a statement per task

upstream: pkg/scheduler/actions/preempt/preempt.go
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
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
from fairlead.batch.plugins.plugin import Preemptable
from fairlead.batch.priority_queue import PriorityQueue
from fairlead.batch.session import Session
from fairlead.batch.statement import Statement, Steps
from fairlead.batch.task import TaskInfo, TaskStatus
from fairlead.batch.victim_vote import vote

Tasks = deque[TaskInfo]
WHY = "preempt"


class Preempt:
    """See the module's docstring."""

    name = "preempt"

    def execute(self, session: Session) -> None:
        """Queue by queue."""
        queues = list(dict.fromkeys(job.queue for job in session.candidates()))
        queues.sort(key=lambda name: session.tiers.queue_key(session.queues[name]))
        hungry = [job for job in session.candidates() if job.by_status[TaskStatus.PENDING]]
        tasks = {job.id: _waiting(session, job) for job in hungry}
        for name in queues:
            own = [job for job in hungry if job.queue == name]
            _between_jobs(session, own, tasks)
            if session.defects.has(Defect.PREEMPT_PHASE2):
                _within_jobs(session, hungry, tasks)
            else:
                _within_jobs(session, own, _for_phase_2(session, own, tasks))


def _waiting(session: Session, job: JobInfo) -> Tasks:
    """The tasks for which others may have to go, in order."""
    waiting = job.with_status(TaskStatus.PENDING)
    if not session.defects.has(Defect.BESTEFFORT_PREEMPTOR):
        waiting = [task for task in waiting if not task.request.is_best_effort]
    return deque(sorted(waiting, key=session.tiers.task_key))


def _between_jobs(session: Session, hungry: list[JobInfo], tasks: dict[str, Tasks]) -> None:
    jobs: PriorityQueue[JobInfo] = PriorityQueue(session.tiers.job_key)
    for job in hungry:
        jobs.push(job)
    while jobs:
        job = jobs.pop()
        if _preempt_for_job(session, job, tasks[job.id]):
            jobs.push(job)


def _preempt_for_job(session: Session, job: JobInfo, tasks: Tasks) -> bool:
    """One turn of `job`; whether it got something and wants more."""

    def is_candidate(task: TaskInfo) -> bool:
        return task.job.queue == job.queue and task.job is not job

    statement, assigned = Statement(session), False
    while tasks:
        task = tasks.popleft()
        assigned = _preempt_for_task(session, statement, task, is_candidate) or assigned
        if session.tiers.is_pipelined(job):
            statement.commit()
            break
    if not session.tiers.is_pipelined(job):
        statement.discard()
        return False
    return assigned


def _for_phase_2(session: Session, jobs: list[JobInfo], left: dict[str, Tasks]) -> dict[str, Tasks]:
    """kube-batch goes on with what phase 1 has not taken from the line."""
    if session.rules.tries_every_task_within_jobs:
        return {job.id: _waiting(session, job) for job in jobs}
    return left


def _within_jobs(session: Session, hungry: list[JobInfo], tasks: dict[str, Tasks]) -> None:
    for job in hungry:
        waiting, hopeless = tasks[job.id], set[tuple[int, int]]()
        while waiting:
            task = waiting.popleft()
            kind = (task.info.shape.id, task.priority)
            if kind in hopeless:
                continue
            statement = Statement(session)
            found = _preempt_for_task(session, statement, task, _lesser_of_same_job(session, task))
            statement.commit()
            if not found and not session.rules.tries_every_task_within_jobs:
                break
            if not found:
                hopeless.add(kind)


def _lesser_of_same_job(session: Session, preemptor: TaskInfo) -> Filter:
    if session.defects.has(Defect.INTRA_JOB_PRIORITY):
        return lambda task: task.job is preemptor.job
    return lambda task: task.job is preemptor.job and task.priority < preemptor.priority


def _preempt_for_task(
    session: Session, statement: Steps, preemptor: TaskInfo, is_candidate: Filter
) -> bool:
    """Make room on the best node on which that is possible."""
    voters = session.tiers.preempt_voters
    for node in session.choices.anyhow.ranked(preemptor.info):
        if need_not_leave(session, preemptor, node):
            return False
        candidates = running_on(session, node, is_candidate)
        victims = vote(voters, partial(_ask, preemptor, candidates), session.defects)
        if victims and covers(session, preemptor, node, victims):
            evict_until_it_fits(session, statement, preemptor, node, victims, WHY)
            return True
    return False


def _ask(
    preemptor: TaskInfo, candidates: Sequence[TaskInfo], plugin: Preemptable
) -> Sequence[TaskInfo]:
    return plugin.preemptable(preemptor, candidates)
