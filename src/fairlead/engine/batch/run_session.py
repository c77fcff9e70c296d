"""run_session: opens a session, runs the actions in order, and closes it.

A gang is broken if it has lost members while running, and fewer than its minimum are left. A grace
period can be configured. If a gang stays broken for this period, `run_session` evicts the remaining
members of the gang when the actions are done. Then the gang waits until it can start as a whole.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.batch.actions.allocate import place_in_freed_room
from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.queue_usage import QueueUsage, queue_usages
from fairlead.engine.batch.session.close_session import JobReport, closing_commands, report_on
from fairlead.engine.batch.session.reservation import reserve
from fairlead.engine.batch.session.session import NO_OBSERVER, Observer, Session
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodEvicted, Reporter, SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster

WHY: Final = "gang below its minimum"


class SessionOutcome(Struct, frozen=True):
    """The commands of a session, and reports on the jobs that may have changed.

    `wake_at` is the next time at which a gang reaches a time limit, or None. `queues` contains the
    usage of each queue after the session.
    """

    commands: list[Command]
    reports: list[JobReport]
    wake_at: Instant | None
    queues: list[QueueUsage]


def run_session(
    composition: Composition,
    cluster: Cluster,
    tie_break: TieBreak,
    now: Instant,
    *,
    reporter: Reporter | None = None,
    observer: Observer | None = None,
) -> SessionOutcome:
    """Run one session over all jobs.

    1  open the session: jobs, queues, resources of nodes
    2  place the jobs for which earlier sessions evicted pods
    3  reserve resources for the gang that has waited too long
    4  run the actions in the configured order
    5  evict the running members of gangs that have had too few members for too long
    6  report, while the decisions are still in the job table
    7  undo the placements that were not dispatched
    """
    session = Session(cluster, composition.jobs, composition.policy, tie_break, now)
    session.reporter = reporter or SilentReporter()
    session.observer = observer or NO_OBSERVER
    session.open()
    session.observer.opened(session)
    if session.rules.keeps_freed_room:
        place_in_freed_room(session)
    reserve(session)
    for action in composition.actions:
        session.note("action", None, action.name)
        action.execute(session)
    release_broken_gangs(session)
    session.observer.closing(session)
    reports = [
        report_on(session, job) for job in session.jobs.values() if session.may_have_changed(job)
    ]
    for report in reports:
        session.commands += closing_commands(session, report)
    session.note_waiting()
    session.revert_undispatched()
    composition.jobs.touched.clear()
    return SessionOutcome(session.commands, reports, _wake_at(session), queue_usages(session))


def _wake_at(session: Session) -> Instant | None:
    """Return the next time at which a job reaches a time limit of the session's policy, or None."""
    policy, due = session.policy, list[Instant]()
    for job in session.jobs.values():
        if policy.starvation_bound is not None and job.waiting_since is not None:
            due.append(job.waiting_since + policy.starvation_bound)
        if policy.broken_gang_grace is not None and job.broken_since is not None:
            due.append(job.broken_since + policy.broken_gang_grace)
    return min((instant for instant in due if instant > session.now), default=None)


def is_broken(job: JobInfo) -> bool:
    """Return whether some members of the gang run although the gang is not ready.

    A gang is ready if at least the minimum number of its members have a node or have succeeded.
    """
    return bool(job.by_status[TaskStatus.RUNNING]) and not job.is_ready


def release_broken_gangs(session: Session) -> None:
    """Evict the running members of each gang that has been broken for at least the grace period.

    Does nothing if no grace period is configured. Otherwise updates `broken_since` of all jobs.
    """
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
