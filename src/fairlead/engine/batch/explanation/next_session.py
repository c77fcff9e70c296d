"""with_next_session: adds the decisions of the next session to the explanation of one group.

`explain_group` tries one group alone. In a session, other groups may come first, and the actions
reclaim and preempt may evict pods for the group.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.explanation.eviction import why_no_eviction
from fairlead.engine.batch.explanation.explanation import GroupExplanation, Obstacle, group_title
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.batch.session.session import Session, SessionStep
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodPreempting, Record
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster

# A task that is still allocated at the end of the session was not dispatched.
_WAITING: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.ALLOCATED)
_NOT_BLOCKED: Final = (Obstacle.NOTHING, Obstacle.NEXT_SESSION)
_BEFORE_ANY_SESSION: Final = (
    Obstacle.NO_GROUP,
    Obstacle.NO_QUEUE,
    Obstacle.CLOSED_QUEUE,
    Obstacle.NOT_LET_IN,
    Obstacle.NO_PODS_YET,
    Obstacle.TOO_FEW_MEMBERS,
)


def with_next_session(
    found: GroupExplanation, composition: Composition, cluster: Cluster, now: Instant
) -> GroupExplanation:
    """Run the next session, and return `found` updated with the decisions of this session.

    The session may change `composition` and `cluster`.

    If the group cannot take part in a session, no session runs, and `found` is returned unchanged.
    """
    job = composition.jobs.jobs.get(found.group)
    if job is None or found.obstacle in _BEFORE_ANY_SESSION:
        return found
    decided = _NextSession(job)
    run_session(composition, cluster, TieBreak(0), now, reporter=decided, observer=decided)
    changes: dict[str, Any] = {}
    had_minimum, found = found.has_minimum, replace(found, has_minimum=decided.is_ready)
    if decided.victims:
        obstacle, victims = Obstacle.VICTIMS, tuple(decided.victims)
        changes = {"victims": victims, "rule": decided.rule}
    elif not decided.is_waiting:
        runs = found.obstacle is Obstacle.NOTHING
        obstacle = Obstacle.NOTHING if runs else Obstacle.NEXT_SESSION
        changes = {"member": "", "nodes": ()}
    elif decided.refusal:
        obstacle, changes = Obstacle.REFUSED, {"member": "", "nodes": ()}
    elif found.obstacle in _NOT_BLOCKED or had_minimum > found.has_minimum:
        obstacle = Obstacle.OTHERS_FIRST
    elif found.obstacle in (Obstacle.NO_NODE, Obstacle.QUEUE_IS_FULL):
        starting = tuple(decided.starting)
        return replace(found, no_evictions=decided.no_evictions, starting=starting)
    else:
        return found
    return replace(
        found, obstacle=obstacle, summary=decided.refusal, starts_at=None, remedies=(), **changes
    )


class _NextSession:
    """The Observer and Reporter of a session: records the decisions about one job."""

    def __init__(self, job: JobInfo) -> None:
        self._job = job
        self.is_ready = self.is_waiting = False
        self.victims: list[str] = []
        self.no_evictions: tuple[str, ...] = ()
        self.starting: dict[str, None] = {}
        self.rule = self.refusal = ""

    def opened(self, session: Session) -> None:
        pass

    def note(self, step: SessionStep) -> None:
        if step.verb == "bind" and step.task is not None and step.task.job is not self._job:
            self.starting[group_title(step.task.job)] = None

    def closing(self, session: Session) -> None:
        self.is_ready = self._job.is_ready
        self.is_waiting = any(self._job.by_status[status] for status in _WAITING)
        self.no_evictions = tuple(why_no_eviction(session, self._job))
        if (objection := session.objections.get(self._job.id)) is not None:
            self.refusal = objection.message
        elif (held := len(self._job.by_status[TaskStatus.ALLOCATED])) and self.is_ready:
            self.refusal = "" if session.tiers.is_ready(self._job) else "job_ready"
            if self.refusal:
                self.is_ready = self._job.ready_count - held >= self._job.min_available

    def report(self, record: Record) -> None:
        match record:
            case PodPreempting() if any(record.pod == t.ref for t in self._job.tasks.values()):
                self.victims += [victim.key for victim in record.victims]
                self.rule = record.rule
            case _:
                pass
