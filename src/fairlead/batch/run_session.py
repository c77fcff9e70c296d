"""run_session: open, the actions in their order, close."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.batch.closing import JobReport, closing_commands, report_on
from fairlead.batch.compose import Composition
from fairlead.batch.session import NOBODY, Observer, Session
from fairlead.core.command import Command
from fairlead.core.instant import Instant
from fairlead.core.reporter import Reporter, SilentReporter
from fairlead.core.tie_break import TieBreak
from fairlead.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to do, and where each job stands about which there is something to say."""

    commands: list[Command]
    reports: list[JobReport]


def run_session(
    composition: Composition,
    cluster: Cluster,
    tie_break: TieBreak,
    now: Instant,
    *,
    reporter: Reporter | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """One session over everything that is known.

    1 open      the picture: jobs, queues, room
    2 actions   in configured order
    3 report    while it still shows what was decided
    4 take back what was not dispatched
    """
    session = Session(cluster, composition.jobs, composition.policy, tie_break, now)
    session.reporter = reporter or SilentReporter()
    session.observer = observer or NOBODY
    session.open()
    session.observer.opened(session)
    for action in composition.actions:
        session.note("action", None, action.name)
        action.execute(session)
    session.observer.closing(session)
    reports = [report_on(session, job) for job in session.jobs.values() if session.is_news(job)]
    for report in reports:
        session.commands += closing_commands(session, report)
    session.take_back()
    composition.jobs.touched.clear()
    return Outcome(session.commands, reports)
