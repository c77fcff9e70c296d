"""backfill: tasks that ask for nothing go wherever they may run; others into holes.

A hole is room that is held back for a gang which cannot start before a known time: what is gone by
then may use it, gangs as a whole. Without a reservation there are no holes, because allocate has
given everybody what there is. upstream: pkg/scheduler/actions/backfill/backfill.go, which knows
the first half
"""

from __future__ import annotations

from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task import TaskStatus
from fairlead.engine.batch.session.reservation import Reservation, ends_in_time
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import Outright, Statement, TaskOperations


class Backfill:
    """See the module's docstring."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """What asks for nothing job by job, whatever queues and shares say; then the holes."""
        for job in session.candidates():
            _place_best_effort(session, job)
        if session.reservation is not None and session.reservation.starts_at is not None:
            for job in _in_order(session):
                _fill_holes(session, session.reservation, job)


def _in_order(session: Session) -> list[JobInfo]:
    """Queue by queue, job by job, as allocate would serve them."""
    tiers, queues = session.tiers, session.queues
    return sorted(
        session.candidates(),
        key=lambda job: (tiers.queue_key(queues[job.queue]), tiers.job_key(job)),
    )


def _fill_holes(session: Session, reservation: Reservation, job: JobInfo) -> None:
    """Start as much of `job` as is gone in time, if that makes it ready."""
    queue = session.queues[job.queue]
    if job is reservation.job or session.tiers.is_overused(queue):
        return
    waiting = [
        task
        for task in job.with_status(TaskStatus.PENDING)
        if not task.request.is_best_effort and ends_in_time(task, reservation, session.now)
    ]
    statement = Statement(session)
    for task in sorted(waiting, key=session.tiers.task_key):
        if not session.tiers.may_take(queue, task):
            break
        node = session.policy.choices.whole.now.pick(task.info, session.tie_break)
        if node is None:
            break
        statement.allocate(task, node)
    if session.tiers.is_ready(job):
        statement.commit()
    else:
        statement.discard()


def _place_best_effort(session: Session, job: JobInfo) -> None:
    waiting = [t for t in job.with_status(TaskStatus.PENDING) if t.request.is_best_effort]
    if not waiting:
        return
    final = session.defects.has(Defect.PARTIAL_HOLD)
    statement: TaskOperations = Outright(session) if final else Statement(session)
    for task in sorted(waiting, key=session.tiers.task_key):
        node = session.choices(job).anyhow.pick(task.info, session.tie_break)
        if node is None:
            session.note_failure(task)
            continue
        statement.allocate(task, node)
    if session.tiers.is_ready(job):
        statement.commit()
    else:
        statement.discard()
