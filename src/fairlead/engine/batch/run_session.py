"""run_session: opens a session, runs the actions in order, and closes it."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.queue_share import QueueStanding, standings
from fairlead.engine.batch.session.broken_gang import release_broken_gangs
from fairlead.engine.batch.session.close_session import JobReport, closing_commands, report_on
from fairlead.engine.batch.session.reservation import reserve
from fairlead.engine.batch.session.session import NOBODY, Observer, Session
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """The commands of a session, and the reports on its jobs.

    `wake_at` is when another session could decide differently although nothing changed. `queues` is
    the standing of each queue after the session.
    """

    commands: list[Command]
    reports: list[JobReport]
    wake_at: Instant | None
    queues: list[QueueStanding]


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
    2  reserve room for the gang that has waited too long
    3  run the actions in configured order
    4  evict what is left of gangs that stay broken
    5  report, while the decisions are still in the job table
    6  undo what was not dispatched
    """
    session = Session(cluster, composition.jobs, composition.policy, tie_break, now)
    session.reporter = reporter or SilentReporter()
    session.observer = observer or NOBODY
    session.open()
    reserve(session)
    session.observer.opened(session)
    for action in composition.actions:
        session.note("action", None, action.name)
        action.execute(session)
    release_broken_gangs(session)
    session.observer.closing(session)
    reports = [report_on(session, job) for job in session.jobs.values() if session.is_news(job)]
    for report in reports:
        session.commands += closing_commands(session, report)
    session.note_waiting()
    session.take_back()
    composition.jobs.touched.clear()
    return SessionOutcome(session.commands, reports, _wake_at(session), standings(session))


def _wake_at(session: Session) -> Instant | None:
    """When the next gang has waited, or been broken, too long."""
    policy, due = session.policy, list[Instant]()
    for job in session.jobs.values():
        if policy.starvation_bound is not None and job.waiting_since is not None:
            due.append(job.waiting_since + policy.starvation_bound)
        if policy.broken_gang_grace is not None and job.broken_since is not None:
            due.append(job.broken_since + policy.broken_gang_grace)
    return min((instant for instant in due if instant > session.now), default=None)
