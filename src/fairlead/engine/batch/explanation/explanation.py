"""explain_group: explains why a group does not run, and which changes would let it start.

`explain_group` opens a session on the current state and tries the group's tasks in order, as
allocate would. Then it reverts the session. The explanation is the first of these obstacles that
applies:

    no queue → closed queue → not admitted → no pods yet → too few members → queue at its share →
    queue at its limit → resources reserved for another group → resources not yet released → no node
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.pods.facts import workload
from fairlead.api.pods.original import original_key
from fairlead.api.quantity import amount_text
from fairlead.engine.batch.actions.enqueue import Enqueue
from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.explanation.start_estimate import estimate_starts
from fairlead.engine.batch.info.group import VOLCANO_API
from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.plugins.proportion import Proportion, QueueShare
from fairlead.engine.batch.queue_usage import QueueUsage, proportion_of, queue_usage, queue_usages
from fairlead.engine.batch.session.reservation import (
    StartSearch,
    lacking_tasks,
    reserve,
    total_request,
)
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import Statement
from fairlead.engine.batch.shares.share import cluster_total
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.diagnosis import Diagnosis, fit_error
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.shape import Amounts

_NODES_MAX: Final = 10


class Obstacle(StrEnum):
    """The first obstacle that keeps a group from running.

    NOTHING means that the group has no pending members. NEXT_SESSION means that all its pending
    members start with the next session.
    """

    NOTHING = "nothing blocks it: it runs"
    NEXT_SESSION = "nothing blocks it: it starts with the next session"
    NO_GROUP = "no such group"
    NO_QUEUE = "its queue does not exist"
    CLOSED_QUEUE = "its queue is closed"
    NOT_LET_IN = "the cluster has no room yet for its minimum (enqueue)"
    NO_PODS_YET = "Volcano has not admitted it yet, and creates its pods only then"
    TOO_FEW_MEMBERS = "too few members"
    QUEUE_HAS_ITS_SHARE = "its queue already has the share it deserves"
    QUEUE_IS_FULL = "its queue is at its limit"
    LEAVING = "it waits for resources that are being released"
    RESERVED = "resources are reserved for another group"
    NO_NODE = "no node can take the next member"
    OTHERS_FIRST = "other groups come first and take the resources in the next session"
    REFUSED = "a plugin of the configuration does not let it start"
    VICTIMS = "it waits for pods that the next session evicts for it"


# The nodes have room for a group with one of these obstacles, now or when pods have stopped.
_HAS_ROOM: Final = (Obstacle.NOTHING, Obstacle.NEXT_SESSION, Obstacle.LEAVING)


class NodeFact(Struct, frozen=True):
    """The reason why a member cannot run on a node.

    `lacking` maps resources to the missing amounts: cpu in millicores, memory in bytes, other
    resources in units. `lacking` is filled only if missing resources are the only reason. `members`
    is the number of other members of the group that still fit on the node. `reason` and `lacking`
    count the requests of these members as used.
    """

    node: str
    reason: str
    lacking: Mapping[str, int]
    members: int = 0


class GroupExplanation(Struct, frozen=True):
    """The state of a group and the obstacle that keeps it, or its next member, from starting.

    If the group `has_minimum`, the obstacle concerns only the members that still wait.
    """

    group: str
    obstacle: Obstacle
    # The group's namespace and name. If the pods have no PodGroup, the name of their controller.
    title: str = ""
    queue_name: str = ""
    # Whether the group has its minimum number of running members, or will have it after the next
    # session.
    has_minimum: bool = False
    min_member: int = 0
    members: int = 0
    ready: int = 0  # the number of members that have a node or have succeeded
    # The number of members that wait on a node for resources that are being released (pipelined
    # members).
    promised: int = 0
    placeable: int = 0  # the number of additional members that would fit now
    queue: QueueUsage | None = None
    member: str = ""  # the first member that could not be placed
    summary: str = ""  # why the group or `member` does not start
    # Up to ten nodes, each with the reason why `member` cannot run there. Nodes that lack only
    # resources come first. Among them, the node that lacks the smallest share of the request comes
    # first.
    nodes: tuple[NodeFact, ...] = ()
    nodes_left_out: int = 0  # the number of further nodes
    starts_at: Instant | None = None  # the estimated start, None if unknown
    # Whether the start is unknown because free resources alone would not let the group start. For
    # example, devices are in use, or pod affinity excludes nodes.
    lacks_other: bool = False
    # Whether the missing members of the group would not fit even if all pods ended.
    is_too_large: bool = False
    remedies: tuple[str, ...] = ()  # changes that would let the group start now
    victims: tuple[str, ...] = ()  # the pods that the next session evicts for the group
    rule: str = ""  # the action that evicts `victims`
    # Sentences that say why the actions reclaim and preempt evict no pods for the group.
    no_evictions: tuple[str, ...] = ()
    # The titles of other groups whose pods the next session binds to nodes.
    starting: tuple[str, ...] = ()


def explain_group(
    composition: Composition, cluster: Cluster, group: str, now: Instant
) -> GroupExplanation:
    """Explain why a group does not run; change no state. `group` is its `namespace/name`.

    If there is no such group, the obstacle of the result is NO_GROUP. If nodes lack resources,
    `starts_at` of the result assumes that no other pod is started. If a limit of the queue is the
    obstacle, `starts_at` comes from `estimate_starts`, which also starts other jobs.
    """
    job = composition.jobs.jobs.get(group)
    if job is None or job.group is None:
        remedies = (f"create PodGroup {group}",)
        members = 0 if job is None else len(job.tasks)
        return GroupExplanation(
            group, Obstacle.NO_GROUP, title=group, members=members, remedies=remedies
        )
    session = open_session(composition, cluster, now)
    try:
        return _explain(session, job)
    finally:
        close_session(session)


class BatchOverview(Struct, frozen=True):
    """The usage of all queues, and the waiting groups in the order of their expected starts.

    `waiting_count` is the number of all waiting groups; `waiting` may have fewer.
    """

    queues: tuple[QueueUsage, ...]
    waiting: tuple[GroupExplanation, ...]
    waiting_count: int


def batch_overview(
    composition: Composition,
    cluster: Cluster,
    now: Instant,
    groups_max: int,
    *,
    queue: str | None = None,
    has_changed: bool = True,
) -> BatchOverview:
    """Return the usage of all queues and the state of waiting groups; change no state.

    If `queue` is given, only the groups of this queue are considered. At most `groups_max` groups
    are explained. If there are more groups, those with members that run or have succeeded come
    first. The start times of the groups come from a simulation of the first `groups_max` waiting
    jobs of each queue (`start_estimate`). If `has_changed` is False, nothing has changed since the
    last session. Then no group starts in the next session.
    """
    session = open_session(composition, cluster, now)
    try:
        queues = tuple(queue_usages(session))
        starts = estimate_starts(session, groups_max)
        late = 1 << 62
        waiting = [
            job for job in session.jobs.values() if _waits(job) and queue in {None, job.queue}
        ]
        waiting.sort(key=lambda job: (starts.get(job.id, late), job.id))
        chosen = sorted(waiting, key=lambda job: job.ready_count == 0)[:groups_max]
        chosen_ids = {job.id for job in chosen}
        found = (_explain(session, job, starts) for job in waiting if job.id in chosen_ids)
        some_start = any(start <= now for start in starts.values())
        explained = [
            _with_start(one, starts.get(one.group), now, some_start=some_start) for one in found
        ]
        if not has_changed:
            explained = [_as_decided(one) for one in explained]
        explained.sort(key=lambda one: one.starts_at is None)
        return BatchOverview(queues, tuple(explained), len(waiting))
    finally:
        close_session(session)


def _with_start(
    found: GroupExplanation, start: Instant | None, now: Instant, *, some_start: bool
) -> GroupExplanation:
    """Return `found` with `start`, an estimated time that takes other groups into account.

    `start` is None if it is unknown. `some_start` says whether any group starts `now`. If only
    other groups delay the start, `obstacle` becomes OTHERS_FIRST. If the group lacks something
    other than free resources (`_is_refuted`), the estimate is too early: `starts_at` becomes None,
    and `lacks_other` is set.
    """
    is_later = some_start if start is None else start > now
    others_first = is_later and found.obstacle is Obstacle.NEXT_SESSION
    obstacle = Obstacle.OTHERS_FIRST if others_first else found.obstacle
    if _is_refuted(obstacle, start, now):
        return replace(found, obstacle=obstacle, starts_at=None, lacks_other=True)
    return replace(found, obstacle=obstacle, starts_at=start)


def _as_decided(found: GroupExplanation) -> GroupExplanation:
    """Return `found`, corrected because the last session has not started the group.

    If `obstacle` is NEXT_SESSION, the nodes have room for the group. So the session gave the
    resources to other groups, and `obstacle` becomes OTHERS_FIRST. The same may happen in later
    sessions, so the start is unknown, and `starts_at` becomes None.
    """
    if found.obstacle is not Obstacle.NEXT_SESSION:
        return found
    return replace(found, obstacle=Obstacle.OTHERS_FIRST, starts_at=None)


def _is_refuted(obstacle: Obstacle, start: Instant | None, now: Instant) -> bool:
    """Return whether `obstacle` shows that `start`, estimated from requests, is too early.

    If `start` is not later than `now`, the nodes have enough free resources for the group. If
    `obstacle` nevertheless keeps the group from starting, the reason is not a lack of free
    resources, but for example devices (DRA) or a reservation. It is unknown how long such an
    obstacle lasts.
    """
    return start is not None and start <= now and obstacle not in _HAS_ROOM


def _waits(job: JobInfo) -> bool:
    return bool(job.by_status[TaskStatus.PENDING]) and not job.is_ready


def open_session(composition: Composition, cluster: Cluster, now: Instant) -> Session:
    """Return a session at `now` in which the action enqueue, if it is configured, has run.

    The caller must end the session with `close_session`.
    """
    session = Session(cluster, composition.jobs, composition.policy, TieBreak(0), now)
    session.open()
    reserve(session)
    for action in composition.actions:
        if isinstance(action, Enqueue):  # a group that the next session admits is not blocked
            action.execute(session)
    return session


def close_session(session: Session) -> None:
    """Revert everything that `session` has changed since `open_session`."""
    session.revert_undispatched()
    session.room.reserve(None)


# --- one group -----------------------------------------------------------------------------


def _explain(
    session: Session, job: JobInfo, starts: Mapping[str, Instant] | None = None
) -> GroupExplanation:
    """Explain `job`; `starts` is the result of `estimate_starts`, if it is known already."""
    plugin = proportion_of(session)
    share = plugin.shares.get(job.queue) if plugin is not None else None
    own = None
    if plugin is not None and share is not None:
        own = queue_usage(session, plugin, share)
    trial = _Trial(session, job, starts)
    obstacle = trial.obstacle()
    return GroupExplanation(
        group=job.id,
        obstacle=obstacle,
        title=group_title(job),
        queue_name=job.queue,
        has_minimum=trial.has_minimum,
        min_member=job.min_available,
        members=len(job.tasks),
        ready=trial.ready,
        promised=trial.promised,
        placeable=trial.placeable,
        queue=own,
        member=trial.member_key,
        summary=trial.summary,
        nodes=trial.nodes,
        nodes_left_out=trial.nodes_left_out,
        starts_at=trial.starts_at,
        lacks_other=trial.lacks_other,
        is_too_large=trial.is_too_large,
        remedies=tuple(_remedies(obstacle, job, trial, _scarcity_for(session, job))),
    )


def is_uncreated(job: JobInfo) -> bool:
    """Return whether the pods of `job` do not exist because Volcano has not admitted the job."""
    is_volcano = job.group is not None and job.group.api_group == VOLCANO_API
    return is_volcano and not job.tasks and job.awaits_admission


def _task_name(task: TaskInfo) -> str:
    """Return `namespace/name` of the pod of `task`, or of the original pod that it replaces."""
    return original_key(task.info.pod)


def group_title(job: JobInfo) -> str:
    """Return the name of the group of `job`: namespace/name.

    If the pods have no PodGroup, return the workload of the pods.
    """
    if job.group is not None and job.group.ref is not None:
        return job.id
    return next((workload(task.info.pod) for task in job.tasks.values()), job.id)


class _Trial:
    """Places the group's tasks one by one, finds the obstacle, and reverts the placements."""

    def __init__(
        self, session: Session, job: JobInfo, starts: Mapping[str, Instant] | None
    ) -> None:
        self._session = session
        self._job = job
        self._starts = starts
        self.has_minimum = job.is_ready
        self.ready = job.ready_count
        self.promised = job.waiting_count
        self.placeable = 0
        self.placed: Counter[str] = Counter()  # by node
        self.member: TaskInfo | None = None
        self.summary = ""
        self.nodes: tuple[NodeFact, ...] = ()
        self.nodes_left_out = 0
        self.starts_at: Instant | None = None
        self.lacks_other = False
        self.is_too_large = False
        self.limits = _Limits()
        # the tasks of `_next_tasks` that would fit on no node if queues had no limits
        self.without_room: Sequence[TaskInfo] = ()

    @property
    def member_key(self) -> str:
        """The name of `member` (`_task_name`); "" if there is no member."""
        return "" if self.member is None else _task_name(self.member)

    @property
    def missing(self) -> int:
        """The number of wanted members for which there is no room.

        If the group has already reached its minimum, all its members are wanted. If not, only the
        minimum is wanted.
        """
        wanted = len(self._job.tasks) if self.has_minimum else self._job.min_available
        return wanted - self.ready - self.promised - self.placeable

    @property
    def exceeded_limits(self) -> _Limits:
        """The queue limits that prevent the start of the group, even if nodes have room."""
        queues = StartSearch(self._session).exceeded_limits(self._job)
        requested = total_request(lacking_tasks(self._session, self._job))
        return _limits(self._session, queues, requested)

    @property
    def weight(self) -> int:
        """The weight of the group's queue."""
        return self._session.queues[self._job.queue].weight

    @property
    def weight_can_suffice(self) -> bool:
        """Whether the queue would deserve what the group needs if its weight were high enough.

        The result is True if the queue needs less of each resource than the cluster has. A queue
        never deserves the whole cluster, whatever its weight, because other queues deserve a part.
        The requests of members that fit on no node are added to what the cluster has.
        """
        session, job = self._session, self._job
        plugin = proportion_of(session)
        share = None if plugin is None else plugin.shares.get(job.queue)
        if share is None:
            return True
        more = dict(total_request(self.without_room))
        total = dict(cluster_total(session.room, session.rules))
        return all(
            share.allocated_of(column) + amount < total.get(column, 0) + more.get(column, 0)
            for column, amount in _next_request(session, job)
            if amount
        )

    def obstacle(self) -> Obstacle:
        session, job = self._session, self._job
        if job.id not in session.jobs:
            return Obstacle.NO_QUEUE
        queue = session.queues[job.queue]
        if not queue.is_open:
            return Obstacle.CLOSED_QUEUE
        if job.id in session.outside:
            self.limits = _limits_of_admission(session, job)
            self.summary = self.limits.text(job.queue)
            self._try_without_limits()
            return Obstacle.NOT_LET_IN
        no_pods_yet = is_uncreated(job)
        if no_pods_yet or job.valid_count < job.min_available:
            return Obstacle.NO_PODS_YET if no_pods_yet else Obstacle.TOO_FEW_MEMBERS
        if not job.by_status[TaskStatus.PENDING]:
            return Obstacle.NOTHING
        if session.tiers.is_overused(queue):
            self.starts_at = self._start_within_limits()
            self._try_without_limits()
            return Obstacle.QUEUE_HAS_ITS_SHARE
        found = self._try()
        if found is Obstacle.QUEUE_IS_FULL:
            self.starts_at = self._start_within_limits()
        if found is Obstacle.QUEUE_IS_FULL or self.limits:
            return found
        self._estimate(found)
        return found

    def _estimate(self, found: Obstacle) -> None:
        """Set `starts_at`, `lacks_other` and `is_too_large`; `found` is the obstacle."""
        session, job = self._session, self._job
        search = StartSearch(session)
        if self._starts is None:
            reservation = search.plan(job)
            start = reservation.starts_at if reservation is not None else None
            self.lacks_other = _is_refuted(found, start, session.now)
            self.starts_at = None if self.lacks_other else start
        lacking = {task.info.shape.id for task in lacking_tasks(session, job)}
        # Members with other requests may fit although these do not.
        self.is_too_large = len(lacking) == 1 and search.is_too_large(job)
        if self.starts_at is None and not self.is_too_large:
            self.lacks_other |= not search.lacks_only_resources(job)

    def _start_within_limits(self) -> Instant | None:
        """Return the time at which `estimate_starts` expects the job to start; None if unknown."""
        if self._starts is None:
            self._starts = estimate_starts(self._session, len(self._session.jobs))
        return self._starts.get(self._job.id)

    def _try(self) -> Obstacle:
        session, job = self._session, self._job
        statement = Statement(session)
        waiting = sorted(job.with_status(TaskStatus.PENDING), key=session.tiers.task_key)
        unplaced = self._place_all(statement, waiting)
        self.member = unplaced[0] if unplaced else None
        self.placeable = len(statement)
        self.has_minimum = job.is_ready
        is_complete = job.is_ready and self.member is None
        found = Obstacle.NEXT_SESSION if is_complete else self._why_not(self.member)
        if self.limits:
            self.without_room = self._without_room(statement)
        statement.discard()
        return found

    def _try_without_limits(self) -> None:
        statement = Statement(self._session)
        self.without_room = self._without_room(statement)
        statement.discard()

    def _without_room(self, statement: Statement) -> Sequence[TaskInfo]:
        """Place `_next_tasks`, ignoring the limits of queues; return the tasks that do not fit."""
        tasks = _next_tasks(self._session, self._job)
        return self._place_all(statement, tasks, ignores_limits=True)

    def _place_all(
        self, statement: Statement, waiting: Sequence[TaskInfo], *, ignores_limits: bool = False
    ) -> Sequence[TaskInfo]:
        """Call `_place` until it places no more tasks; return the tasks that are not placed."""
        while waiting:
            unplaced = self._place(statement, waiting, ignores_limits=ignores_limits)
            if len(unplaced) == len(waiting) or not self._session.rules.tries_every_task:
                return unplaced
            # As in allocate, skipped tasks may have affinity to a member placed after them.
            waiting = unplaced
        return waiting

    def _place(
        self, statement: Statement, waiting: Sequence[TaskInfo], *, ignores_limits: bool
    ) -> list[TaskInfo]:
        """Place the tasks in `waiting` in order on idle resources; return the tasks not placed.

        Under kube-batch's rules, the first task that does not fit ends the attempt. If
        `ignores_limits` is set, the limits of queues do not count.
        """
        session, job = self._session, self._job
        unplaced, unplaceable = list[TaskInfo](), set[int]()
        for task in waiting:
            if not unplaced or session.rules.tries_every_task:
                fits = task.info.shape.id not in unplaceable
                fits = fits and (ignores_limits or session.may_take(task))
                node = session.choices(job).now.pick(task.info, session.tie_break) if fits else None
                if node is not None:
                    statement.allocate(task, node)
                    self.placed[node.name] += 1
                    continue
                unplaceable.add(task.info.shape.id)
            unplaced.append(task)
        return unplaced

    def _why_not(self, task: TaskInfo | None) -> Obstacle:
        session, job = self._session, self._job
        if task is None:
            return Obstacle.TOO_FEW_MEMBERS
        requested = task.request.running
        if not session.tiers.may_take(session.queues[job.queue], task):
            needed = total_request(lacking_tasks(session, job) or [task])
            full = session.tiers.exceeded_limits(job.queue, needed, {})
            self.limits = _limits(session, full, needed)
            self.summary = self.limits.text(job.queue)
            return Obstacle.QUEUE_IS_FULL
        if full := session.limits_held_for_another(task):
            assert session.reservation is not None
            total = [0] * len(session.table.resources.names)
            add_amounts(total, requested, 1)
            add_amounts(total, session.reservation.requested, 1)
            self.limits = _limits(session, full, tuple(enumerate(total)))
            self.summary = f"the capability of {_named(full)} is reserved"
            return Obstacle.RESERVED
        diagnosis = session.choices(job).now.find(task.info).diagnosis()
        self.summary = fit_error(diagnosis, "")
        facts = [
            replace(fact, members=self.placed[fact.node])
            for fact in _facts(session, task, diagnosis)
        ]
        self.nodes = tuple(facts[:_NODES_MAX])
        self.nodes_left_out = len(facts) - len(self.nodes)
        choices = session.policy.choices
        if len(choices.whole.now.find(task.info).positions()):
            return Obstacle.RESERVED
        if len(session.choices(job).later.find(task.info).positions()):
            return Obstacle.LEAVING
        return Obstacle.NO_NODE


def _facts(session: Session, task: TaskInfo, diagnosis: Diagnosis) -> list[NodeFact]:
    """Return the nodes on which `task` cannot run, each with the reason.

    Nodes that lack only resources come first. These nodes are sorted by the sum of missing amount ÷
    requested amount over all resources. The smallest sum comes first.
    """
    names = session.table.resources.names
    requests = {names[column]: amount for column, amount in task.request.starting}

    def shortage(fact: NodeFact) -> float:
        return float_sum(amount / max(requests[name], 1) for name, amount in fact.lacking.items())

    facts = [_fact(session, task, diagnosis, node) for node in session.table.nodes()]
    return sorted(facts, key=lambda fact: (not fact.lacking, shortage(fact), fact.node))


def _fact(session: Session, task: TaskInfo, diagnosis: Diagnosis, node: NodeInfo) -> NodeFact:
    view, names = session.view(task.job), session.table.resources.names
    status, starting = diagnosis.status_of(node.row), dict(task.request.starting)
    lacking = {  # without the tolerance, which would let the amounts look odd
        names[column]: starting[column] - view.idle(column, node.row)
        for column, floor in task.request.floors
        if view.idle(column, node.row) < floor
    }
    only_resources = status.plugin == "NodeResourcesFit"
    return NodeFact(node.name, status.message, lacking if only_resources else {})


class _Limits(Struct, frozen=True):
    """The limits of a queue: its own limits, and those of its ancestors.

    `capabilities` names the queues that are limited by their capability. `needs` contains a text
    for each of them, such as "at least 4 cpu, now 3", or "" if the amount is unknown. `guarantees`
    names the queues that are limited by the guarantees of other queues. `share` is set if the queue
    must not exceed its deserved amount.
    """

    capabilities: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    guarantees: tuple[str, ...] = ()
    share: bool = False

    def __bool__(self) -> bool:
        return bool(self.capabilities or self.guarantees or self.share)

    def text(self, queue: str) -> str:
        """Return the limits as a clause that says why `queue` cannot get more resources."""
        parts = []
        if self.capabilities:
            parts.append(f"{_named(self.capabilities)} would exceed {_its(self.capabilities)}")
        if self.guarantees:
            parts.append(f"{_named(self.guarantees)} would use the guarantees of other queues")
        if self.share:
            parts.append(f"queue {queue} would exceed the share that it deserves")
        return ", ".join(parts)

    def remedy(self) -> str:
        """Return the change that raises the limits; "" if only the deserved amount is a limit."""
        higher = [
            f"of queue {name} ({needs})" if needs else f"of queue {name}"
            for name, needs in zip(self.capabilities, self.needs, strict=True)
        ]
        parts = [f"a higher capability {' and '.join(higher)}"] if higher else []
        if self.guarantees:
            parts.append("lower guarantees of other queues")
        return " and ".join(parts)


def _limits(session: Session, queues: Sequence[str], requested: Amounts) -> _Limits:
    """Return the limits that `queues` would exceed if they also held `requested`.

    A limit that a user's plugin sets is treated as a capability.
    """
    plugin = proportion_of(session)
    if plugin is None:
        return _Limits(tuple(queues), ("",) * len(queues))
    columns = {
        name: [c for c, _ in plugin.shares[name].exceeded(requested)]
        for name in queues
        if name in plugin.shares
    }
    of_others = tuple(name for name in queues if name not in plugin.shares)
    limits = _limits_in(session, plugin, columns, dict.fromkeys(columns, requested))
    return replace(
        limits,
        capabilities=(*limits.capabilities, *of_others),
        needs=(*limits.needs, *("" for _ in of_others)),
        share=any(not exceeded for exceeded in columns.values()),
    )


def _limits_of_admission(session: Session, job: JobInfo) -> _Limits:
    """Return the limits of queues that keep `job` from being admitted.

    If the result has no limits, another condition keeps `job` from being admitted, such as the
    condition of the plugin overcommit.
    """
    plugin = proportion_of(session)
    if plugin is None or plugin.job_enqueueable(job):
        return _Limits()
    wanted = plugin.wanted_at_admission(job)
    columns = {
        name: [c for c, _ in plugin.shares[name].exceeded(amounts)]
        for name, amounts in wanted.items()
    }
    return _limits_in(session, plugin, columns, wanted)


def _limits_in(
    session: Session,
    plugin: Proportion,
    columns: Mapping[str, Sequence[int]],
    requested: Mapping[str, Amounts],
) -> _Limits:
    """Return the limits of the queues in `columns`, and the limits that `requested` would need.

    `columns` maps the name of each queue to the resource columns in which the queue is limited.
    `requested` maps the name of each queue to the amounts.
    """
    capabilities, guarantees = dict[str, str](), []
    for name, exceeded in columns.items():
        share = plugin.shares[name]
        limits, capability = dict(share.limits), dict(share.queue.capability)
        bounds = tuple((c, limits[c]) for c in exceeded if limits[c] == capability.get(c))
        if bounds:
            capabilities[name] = _needs(session, share, bounds, requested[name])
        elif exceeded:
            guarantees.append(name)
    return _Limits(tuple(capabilities), tuple(capabilities.values()), tuple(guarantees))


def _needs(session: Session, share: QueueShare, bounds: Amounts, requested: Amounts) -> str:
    """Return the amounts that the queue of `share` would hold if it also held `requested`.

    Only the amounts above `bounds` are returned, as a text; "" if there are none.
    """
    names, more = session.table.resources.names, dict(requested)
    held = [(c, share.allocated_of(c) + more.get(c, 0), now) for c, now in bounds]
    texts = [
        f"at least {amount_text(names[c], amount)} {names[c]}, now {amount_text(names[c], now)}"
        for c, amount, now in held
        if amount > now
    ]
    return "; ".join(texts)


class Scarcity(Struct, frozen=True):
    """The reasons why a queue deserves less than it requests.

    `limits` are the limits of the queue and of its ancestors that reduce the deserved amount.
    `other_queues` is set if only the requests of other queues reduce the deserved amount. If
    neither is set, the cluster is too small.
    """

    limits: _Limits = _Limits()
    other_queues: bool = False

    def text(self) -> str:
        """Return the reasons as a clause, such as "the cluster has no more"."""
        if self.limits.capabilities:
            return f"the capability of {_named(self.limits.capabilities)} is lower"
        if self.limits.guarantees:
            return "other queues have guarantees"
        if self.other_queues:
            return "other queues request resources, too"
        return "the cluster has no more"


def scarcity(session: Session, queue: str, needed: Amounts = ()) -> Scarcity:
    """Return why `queue` deserves less than it requests; `needed` is what a group lacks."""
    plugin = proportion_of(session)
    share = None if plugin is None else plugin.shares.get(queue)
    if plugin is None or share is None:
        return Scarcity()
    full: dict[str, list[int]] = {}
    for column, total in cluster_total(session.room, session.rules):
        deserved = share.deserved.get(column, 0.0)
        if deserved + 1 <= min(share.request.get(column, 0), total):
            limiting = [
                above.queue.name
                for above in reversed(plugin.lineage(queue))
                if above.deserved.get(column, 0.0) >= dict(above.limits).get(column, total + 1)
            ]
            if not limiting:
                return Scarcity(other_queues=True)
            for name in limiting:
                full.setdefault(name, []).append(column)
    return Scarcity(_limits_in(session, plugin, full, dict.fromkeys(full, needed)))


def _scarcity_for(session: Session, job: JobInfo) -> Scarcity:
    return scarcity(session, job.queue, _next_request(session, job))


def _next_request(session: Session, job: JobInfo) -> Amounts:
    """Return the total request of the members that `job` lacks to start.

    If `job` can already start, return the request of the next member that waits.
    """
    return total_request(_next_tasks(session, job))


def _next_tasks(session: Session, job: JobInfo) -> list[TaskInfo]:
    """Return the pending tasks that `job` lacks (`lacking_tasks`), or its next pending task."""
    pending = sorted(job.with_status(TaskStatus.PENDING), key=session.tiers.task_key)
    return lacking_tasks(session, job) or pending[:1]


def _remedies(obstacle: Obstacle, job: JobInfo, trial: _Trial, scarcity: Scarcity) -> list[str]:
    of_share = obstacle is Obstacle.QUEUE_HAS_ITS_SHARE
    limits = scarcity.limits if of_share else trial.limits
    of_share = of_share or limits.share
    room = [_room_for(len(tasks), tasks[0])] if (tasks := trial.without_room) else []
    match obstacle:
        case _ if remedy := limits.remedy():
            return [" and ".join((*room, remedy))]
        case Obstacle.NO_QUEUE:
            return [f"create queue {job.queue}"]
        case Obstacle.TOO_FEW_MEMBERS:
            missing = job.min_available - job.valid_count
            return [_more(missing) if missing > 0 else "members that can be scheduled"]
        case _ if of_share and scarcity.other_queues:
            weight = f"more weight for queue {job.queue}, now {trial.weight}"
            changes = [weight] if not limits.share or trial.weight_can_suffice else []
            changes.append("lower requests of other queues")
            return [" and ".join((*room, change)) for change in changes]
        case _ if of_share:
            return [f"room for {_more(trial.missing)}"]
        case Obstacle.NO_NODE | Obstacle.RESERVED if remedy := trial.exceeded_limits.remedy():
            return [" and ".join((*_room_remedies(trial)[:1], remedy))]
        case Obstacle.NO_NODE | Obstacle.RESERVED:
            return _room_remedies(trial)
        case _:
            return []


def _room_remedies(trial: _Trial) -> list[str]:
    missing = trial.missing
    remedies = [_room_for(missing, trial.member)] if trial.member else []
    nearest = next((fact for fact in trial.nodes if fact.lacking), None)
    # Room for one more member lets a gang start only if a single member is missing. A gang that has
    # its minimum number of members can always use the room.
    if nearest is not None and (trial.has_minimum or missing == 1):
        lacking = nearest.lacking.items()
        amounts = ", ".join(f"{amount_text(name, amount)} {name}" for name, amount in lacking)
        remedies.append(f"{amounts} more on node {nearest.node}")
    return remedies


def _room_for(members: int, task: TaskInfo) -> str:
    return f"room for {_more(members)} like {_task_name(task)}"


def _named(queues: Sequence[str]) -> str:
    return f"{'queue' if len(queues) == 1 else 'queues'} {' and '.join(queues)}"


def _its(queues: Sequence[str]) -> str:
    return "its capability" if len(queues) == 1 else "their capabilities"


def _more(members: int) -> str:
    return "1 more member" if members == 1 else f"{members} more members"
