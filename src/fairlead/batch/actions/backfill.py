"""backfill: tasks that ask for nothing go wherever they may run.

upstream: pkg/scheduler/actions/backfill/backfill.go
"""

from __future__ import annotations

from fairlead.batch.defect import Defect
from fairlead.batch.job import JobInfo
from fairlead.batch.session import Session
from fairlead.batch.statement import Outright, Statement, Steps
from fairlead.batch.task import TaskStatus


class Backfill:
    """See the module's docstring."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Job by job; queues and shares have no say."""
        for job in session.candidates():
            _fill(session, job)


def _fill(session: Session, job: JobInfo) -> None:
    waiting = [t for t in job.with_status(TaskStatus.PENDING) if t.request.is_best_effort]
    if not waiting:
        return
    final = session.defects.has(Defect.PARTIAL_HOLD)
    statement: Steps = Outright(session) if final else Statement(session)
    for task in sorted(waiting, key=session.tiers.task_key):
        node = session.choices.anyhow.pick(task.info, session.tie_break)
        if node is None:
            session.note_failure(task)
            continue
        statement.allocate(task, node)
    if session.tiers.is_ready(job):
        statement.commit()
    else:
        statement.discard()
