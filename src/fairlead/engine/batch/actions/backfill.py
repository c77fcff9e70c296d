"""backfill: places best-effort tasks on any node, and short tasks on reserved resources.

If a gang has waited too long, resources are reserved until the gang's expected start. Tasks of
another job may use the reserved resources if the tasks end before the expected start and their job
becomes ready. If there is no reservation, or if the expected start is unknown, backfill places only
best-effort tasks.

upstream: pkg/scheduler/actions/backfill/backfill.go (best-effort tasks only)
"""

from __future__ import annotations

from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.reservation import ends_in_time
from fairlead.engine.batch.session.session import Reservation, Session
from fairlead.engine.batch.session.statement import ImmediateOperations, Statement, TaskOperations


class Backfill:
    """The action `backfill`: places best-effort tasks, and short tasks on reserved resources."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Place best-effort tasks regardless of shares, then short tasks on reserved resources."""
        for job in session.candidates():
            _place_best_effort(session, job)
        if session.reservation is not None and session.reservation.starts_at is not None:
            for job in _in_order(session):
                _place_short_tasks(session, session.reservation, job)


def _in_order(session: Session) -> list[JobInfo]:
    """Return the candidate jobs in the order of the action `allocate`: by queue, then by job."""
    tiers, queues = session.tiers, session.queues
    return sorted(
        session.candidates(),
        key=lambda job: (tiers.queue_key(queues[job.queue]), tiers.job_key(job)),
    )


def _place_short_tasks(session: Session, reservation: Reservation, job: JobInfo) -> None:
    """Place those tasks of `job` that will end by `reservation.starts_at`.

    If `job` is not ready after that, the placements are undone.
    """
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
    statement: TaskOperations = ImmediateOperations(session) if final else Statement(session)
    for task in sorted(waiting, key=session.tiers.task_key):
        node = session.choices(job).ignoring_resources.pick(task.info, session.tie_break)
        if node is None:
            session.note_failure(task)
            continue
        statement.allocate(task, node)
    if session.tiers.is_ready(job):
        statement.commit()
    else:
        statement.discard()
