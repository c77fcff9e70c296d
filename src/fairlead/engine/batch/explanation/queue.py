"""explain_queue: says what a queue deserves and holds, who uses it, and which groups wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.explanation.eviction import why_no_eviction
from fairlead.engine.batch.explanation.explanation import (
    GroupExplanation,
    Obstacle,
    batch_overview,
    close_session,
    explain_group,
    group_title,
    is_uncreated,
    open_session,
    scarcity,
)
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.queue_usage import QueueUsage, queue_usages
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.batch.session.session import Session, SessionStep
from fairlead.engine.batch.shares.queue_tree import parent_problem
from fairlead.engine.batch.shares.share import cluster_total
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodPreempting, Record
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.shape import Amounts

_RECLAIM: Final = "reclaim"
# The obstacles that reclaim or preempt may remove.
_WITHOUT_ROOM: Final = (Obstacle.NO_NODE, Obstacle.QUEUE_IS_FULL)


class QueueAmounts(Struct, frozen=True):
    """The amounts in the spec of a queue, by resource: cpu in millicores, memory in bytes."""

    capability: Mapping[str, int]
    deserved: Mapping[str, int]
    guarantee: Mapping[str, int]


class HoldingGroup(Struct, frozen=True):
    """A group with `members` members on nodes, which hold `amounts` of resources."""

    title: str
    members: int
    priority: int
    amounts: Mapping[str, int]


class QueueExplanation(Struct, frozen=True):
    """The state of a queue, and the decisions of the next session about its pods.

    The fields `victims` and `losses` contain keys of pods (`namespace/name`). The `usage` includes
    what the children of the queue have allocated, but not what they request.
    """

    name: str
    info: QueueInfo | None  # None if the Queue object does not exist
    usages: tuple[QueueUsage, ...]  # of all queues that take part in the division of the cluster
    has_shares: bool  # whether the configuration has shares
    can_reclaim: bool  # whether the configuration has the action reclaim
    below: tuple[str, ...]  # the names of the queue's children
    # If the queue is a child of the root but names another parent, why; otherwise "".
    parent_problem: str
    why_less: str  # if the queue deserves less than its pods request, why
    total: Mapping[str, int]  # the capacity of the nodes
    limits: QueueAmounts
    # The groups with members on nodes, those with the most members first.
    holding: tuple[HoldingGroup, ...]
    # The first groups that wait for their minimum. PodGroups of Volcano that await admission and
    # have no pods yet count as waiting.
    waiting: tuple[GroupExplanation, ...]
    waiting_count: int  # the number of all groups that wait for their minimum
    # Pods that the next session evicts to make room for groups of the queue.
    victims: tuple[str, ...]
    # Pods of the queue that it evicts to make room for groups of other queues.
    losses: tuple[str, ...]
    # Sentences that say why the session evicts no pods for the first of `waiting`.
    no_evictions: tuple[str, ...]

    @property
    def usage(self) -> QueueUsage | None:
        """The usage of the queue; None if it takes no part in the division of the cluster."""
        return next((one for one in self.usages if one.name == self.name), None)


class QueueWaiting(Struct, frozen=True):
    """All queues with their usage and numbers of waiting groups; the keys are queue names."""

    infos: Mapping[str, QueueInfo]
    usages: Mapping[str, QueueUsage]
    waiting: Mapping[str, int]


def all_queues(composition: Composition, cluster: Cluster, now: Instant) -> QueueWaiting:
    """Return the usage and the number of waiting groups of every queue; change no state.

    A default queue without a Queue object is included if it has groups and the rules allow such a
    queue.
    """
    session = open_session(composition, cluster, now)
    try:
        queues, usages = session.queues, {one.name: one for one in queue_usages(session)}
    finally:
        close_session(session)
    waiting: dict[str, int] = defaultdict(int)
    for job in composition.jobs.jobs.values():
        waiting[job.queue] += _waits(job)
    known = {*composition.jobs.queues, *usages, *waiting}
    return QueueWaiting(
        infos={name: info for name, info in sorted(queues.items()) if name in known},
        usages=usages,
        waiting={name: count for name, count in sorted(waiting.items()) if count},
    )


def explain_queue(
    composition: Composition, cluster: Cluster, name: str, now: Instant, groups_max: int
) -> QueueExplanation:
    """Explain the queue `name`; at most `groups_max` of its waiting groups are explained.

    The next session runs at `now`. The session may change `composition` and `cluster`.
    """
    overview = batch_overview(composition, cluster, now, groups_max, queue=name)
    session = open_session(composition, cluster, now)
    try:
        has_shares = bool(overview.queues)
        names = session.table.resources.names
        total = {names[c]: whole for c, whole in cluster_total(session.room, session.rules)}
        info = session.queues.get(name)
        why_less = scarcity(session, name).text() if has_shares else ""
    finally:
        close_session(session)
    queues = composition.jobs.queues
    parents = {one.name: one.parent for one in queues.values()}
    jobs = [job for job in composition.jobs.jobs.values() if job.queue == name]
    uncreated = sorted(job.id for job in jobs if is_uncreated(job))[:groups_max]
    more = (explain_group(composition, cluster, one, now) for one in uncreated)
    holding = [_holding(job, names) for job in jobs if any(job.held)]
    waiting = sum(map(_waits, jobs))
    limits = _limits(info, names)
    waiting_groups = (*overview.waiting, *more)
    first = waiting_groups[0] if waiting_groups else None
    decided = _NextSession(composition, first)
    run_session(composition, cluster, TieBreak(0), now, reporter=decided, observer=decided)
    return QueueExplanation(
        name=name,
        info=info,
        usages=overview.queues,
        has_shares=has_shares,
        can_reclaim=any(action.name == _RECLAIM for action in composition.actions),
        below=tuple(
            sorted(
                one.name
                for one in queues.values()
                if one.parent == name and not parent_problem(parents, one.name)
            )
        ),
        parent_problem=parent_problem(parents, name),
        why_less=why_less,
        total=total,
        limits=limits,
        holding=tuple(sorted(holding, key=lambda one: (-one.members, one.title))),
        waiting=waiting_groups,
        waiting_count=waiting,
        victims=tuple(decided.victims_for.get(name, ())),
        losses=tuple(decided.losses_of.get(name, ())),
        no_evictions=decided.no_evictions,
    )


def _waits(job: JobInfo) -> bool:
    return is_uncreated(job) or (bool(job.by_status[TaskStatus.PENDING]) and not job.is_ready)


def _holding(job: JobInfo, names: list[str]) -> HoldingGroup:
    amounts = {names[column]: amount for column, amount in enumerate(job.held) if amount}
    return HoldingGroup(group_title(job), job.ready_count, job.priority, amounts)


def _limits(info: QueueInfo | None, names: list[str]) -> QueueAmounts:
    def named(amounts: Amounts) -> dict[str, int]:
        return {names[column]: amount for column, amount in amounts}

    if info is None:
        return QueueAmounts({}, {}, {})
    return QueueAmounts(named(info.capability), named(info.deserved), named(info.guarantee))


class _NextSession:
    """Observer and Reporter of a session: records the evicted pods by queue.

    `victims_for` has the pods that are evicted for a queue, and `losses_of` has the pods of a queue
    that are evicted for other queues. `no_evictions` are the reasons why no pods are evicted for
    `first`, the first waiting group.
    """

    def __init__(self, composition: Composition, first: GroupExplanation | None) -> None:
        self._queues = {task.key: task.job.queue for task in composition.jobs.tasks.values()}
        lacks_room = first is not None and first.obstacle in _WITHOUT_ROOM
        self._first = composition.jobs.jobs.get(first.group) if first and lacks_room else None
        self._is_served = False
        self.victims_for: dict[str, list[str]] = defaultdict(list)
        self.losses_of: dict[str, list[str]] = defaultdict(list)
        self.no_evictions: tuple[str, ...] = ()

    def opened(self, session: Session) -> None:
        pass

    def note(self, step: SessionStep) -> None:
        pass

    def closing(self, session: Session) -> None:
        if self._first is not None and not self._is_served:
            self.no_evictions = tuple(why_no_eviction(session, self._first))

    def report(self, record: Record) -> None:
        match record:
            case PodPreempting():
                queue = self._queues.get(record.pod.key, "")
                members = () if self._first is None else self._first.tasks.values()
                self._is_served |= any(record.pod == task.ref for task in members)
                for victim in record.victims:
                    own = self._queues.get(victim.key, "")
                    self.victims_for[queue].append(victim.key)
                    if own != queue:
                        self.losses_of[own].append(victim.key)
            case _:
                pass
