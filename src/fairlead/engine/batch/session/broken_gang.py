"""Broken gangs: gangs that lost members while running (a node failed, a pod was deleted).

A broken gang does no useful work but still occupies resources. Its replacement pods are scheduled
like any others. If the gang is not complete again after a grace period, its remaining members are
evicted, and it waits to start as a whole.
"""

from __future__ import annotations

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task import TaskStatus
from fairlead.engine.batch.session.session import Session
from fairlead.engine.core.reporter import PodEvicted

WHY = "gang-broken"


def is_broken(job: JobInfo) -> bool:
    """Whether some members run, but fewer than the minimum have a node or have succeeded."""
    return bool(job.by_status[TaskStatus.RUNNING]) and not job.is_ready


def release_broken_gangs(session: Session) -> None:
    """Evict the remaining members of gangs that were not completed in time."""
    grace = session.policy.broken_gang_grace
    if grace is None:
        return
    for job in session.jobs.values():
        if not is_broken(job):
            job.broken_since = None
            continue
        if job.broken_since is None:
            job.broken_since = session.now
        if session.now - job.broken_since >= grace:
            _release(session, job)


def _release(session: Session, job: JobInfo) -> None:
    for task in job.with_status(TaskStatus.RUNNING):
        session.release(task)
        session.evict(task, WHY)
        session.reporter.report(PodEvicted(task.ref, task.node, WHY, session.now))
