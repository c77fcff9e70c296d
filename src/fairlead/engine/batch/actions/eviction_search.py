"""EvictionSearch: finds victims for a task, evicts them, and pipelines the task onto their node.

The *candidates* are the running tasks that may be evicted. Preempt (within a queue) and reclaim
(between queues) differ in the candidates and in the plugin methods that they call (`EvictionKind`).
Both use the same search:

    1  find the nodes on which the task would fit if the candidates there were gone; rank these
       nodes, best node first
    2  if a node already has enough idle and releasing resources, pipeline the task there
    3  otherwise, take the first node on which allowed evictions make the task fit; evict the
       candidates there, least important first, until the task fits
    4  otherwise, if the rules allow it, evict the least important gang whose eviction makes the
       task fit on a node

A task fits only if its queue also stays within its limits once the victims are gone. So a task
whose queue is at its capability evicts tasks of its own queue even if nodes have idle resources.

If nothing was evicted for a job, its placements from step 2 are undone (`commit_or_discard`). The
action `allocate` places these tasks.

In step 3, all plugins must allow an eviction, and they are called for each node. To save most of
these calls, plugins first exclude whole jobs (`VictimPool`). The search then skips a node if
evicting all members of the remaining jobs would not make the task fit there.

upstream: actions/preempt/preempt.go: preempt; actions/reclaim/reclaim.go: Execute
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import Struct

from fairlead.engine.batch.actions.victim_pool import VictimPool, VictimPools
from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.node_choice import RankedNodes
from fairlead.engine.batch.nodes.room import Bools, Ints
from fairlead.engine.batch.session.plugin import PreemptableJobs, ReclaimableJobs
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import TaskOperations
from fairlead.engine.batch.session.tier import Tiers, Voters, without_gang_protection
from fairlead.engine.framework.interface import Rows
from fairlead.engine.state.node_info import NodeInfo

Filter = Callable[[TaskInfo, TaskInfo], bool]
_BEFORE_RUNNING = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND)
AllowedBy = Callable[[Any], Sequence[TaskInfo]]
_Lacking = Mapping[int, Ints]  # amounts by resource column, each of shape (rows,)


def preemptor_tasks(session: Session, job: JobInfo) -> deque[TaskInfo]:
    """Return, in task order, the pending tasks of `job` for which other tasks may be evicted."""
    waiting = job.with_status(TaskStatus.PENDING)
    if not session.defects.has(Defect.BESTEFFORT_PREEMPTOR):
        waiting = [task for task in waiting if not task.request.is_best_effort]
    return deque(sorted(waiting, key=session.tiers.task_key))


class EvictionKind(Struct, frozen=True):
    """The plugins and plugin methods that choose victims for one action.

    `voters(tiers)` returns these plugins, grouped by tier. `allowed_by(plugin, task, candidates)`
    returns the candidates that `plugin` allows to be evicted for `task`. Before that, a plugin of
    type `excluding` can exclude whole jobs: `not_excluded_by(plugin, preemptor, jobs)` returns the
    jobs in `jobs` that are not excluded. `why` is the reason in events and reports.
    """

    why: str
    voters: Callable[[Tiers], Voters]
    allowed_by: Callable[[Any, TaskInfo, Sequence[TaskInfo]], Sequence[TaskInfo]]
    excluding: type[Any]
    not_excluded_by: Callable[[Any, JobInfo, Sequence[JobInfo]], list[JobInfo]]


PREEMPTION: Final = EvictionKind(
    "preempt",
    lambda tiers: tiers.preempt_voters,
    lambda plugin, task, candidates: plugin.preemptable(task, candidates),
    PreemptableJobs,
    lambda plugin, preemptor, jobs: plugin.preemptable_jobs(preemptor, jobs),
)
RECLAIM: Final = EvictionKind(
    "reclaim",
    lambda tiers: tiers.reclaim_voters,
    lambda plugin, task, candidates: plugin.reclaimable(task, candidates),
    ReclaimableJobs,
    lambda plugin, preemptor, jobs: plugin.reclaimable_jobs(preemptor, jobs),
)


class EvictionSearch:
    """Makes room for the tasks of one job, one task at a time."""

    def __init__(
        self,
        session: Session,
        kind: EvictionKind,
        pools: VictimPools,
        job: JobInfo,
        is_candidate: Filter,
    ) -> None:
        """Prepare to search for running tasks that can be evicted for the tasks of `job`.

        A running task may be evicted for a task of `job` only if `is_candidate(task of job,
        running task)` is true. `pools` contains the jobs that may lose members.
        """
        self._session = session
        self._kind = kind
        self._is_candidate = is_candidate
        self._voters = kind.voters(session.tiers)
        self._ignores_idle = session.defects.has(Defect.EVICT_IGNORES_IDLE)
        self._view = session.view(job)
        self._surplus = pools.for_job(job, self._voters)
        self._whole: VictimPool | None = None
        if session.rules.takes_whole_gangs:
            self._whole = pools.for_job(job, without_gang_protection(self._voters))
        self._most = self._whole or self._surplus
        self._without_victims: set[tuple[int, int]] = set()

    def make_room(self, steps: TaskOperations, task: TaskInfo) -> bool:
        """Pipeline `task` onto a node, after evicting victims there if that is necessary.

        The operations are added to `steps`. Returns whether `task` was pipelined. If operations
        take effect immediately (`steps.is_final`) and `task` fits on idle resources, nothing is
        done and the result is False. The action `allocate` places such a task. If kube-batch's
        defect `evict-ignores-idle` is reproduced, idle resources make no difference here.
        """
        kind = (task.info.shape.id, task.priority)
        most = self._most
        if not most.jobs or kind in self._without_victims:
            return False
        lacking = self._lacking(task)
        possible = self._possible_rows(most, lacking)
        if not possible.any():
            self._without_victims.add(kind)
            return False
        nodes = self._session.choices(task.job).ignoring_resources.ranked(task.info, possible)
        if not self._ignores_idle and steps.is_final and self._fits_now(task, nodes.rows):
            return False
        if self._pipeline(steps, task, nodes, lacking):
            return True
        if self._take_surplus(steps, task, nodes, lacking) or self._take_gang(steps, task, nodes):
            self._without_victims.clear()
            return True
        self._without_victims.add(kind)
        return False

    # --- nodes -----------------------------------------------------------------------------

    def _lacking(self, task: TaskInfo) -> _Lacking:
        """Return the amount of each resource that each node lacks for `task`.

        An amount is 0 or less if nothing is missing. If kube-batch's defect `evict-ignores-idle` is
        reproduced, each node lacks the complete request.
        """
        floors = task.request.floors
        if self._ignores_idle:
            rows = self._session.table.capacity
            return {column: np.full(rows, floor, np.int64) for column, floor in floors}
        return {column: floor - self._view.future_idle_many(column) for column, floor in floors}

    def _possible_rows(self, pool: VictimPool, lacking: _Lacking) -> Bools:
        """Return a mask of the nodes at which `pool.potential` is at least `lacking`."""
        possible = np.ones(self._session.table.capacity, np.bool_)
        for column, amounts in lacking.items():
            possible &= pool.potential[column] >= amounts
        return possible

    def _fits_now(self, task: TaskInfo, rows: Rows) -> bool:
        return any(self._view.fits_now(task.request, row) for row in rows.tolist())

    def _pipeline(
        self, steps: TaskOperations, task: TaskInfo, nodes: RankedNodes, lacking: _Lacking
    ) -> bool:
        """Pipeline `task` on the best of the `nodes` that lack nothing.

        A node lacks nothing if all its amounts in `lacking` are 0 or less.

        Returns whether the task was pipelined. The result is False if the queue of `task` would
        exceed its limits. If kube-batch's defect `evict-ignores-idle` is reproduced, no task is
        pipelined.
        """
        if self._ignores_idle or not self._is_within_limits(task, ()):
            return False
        enough = np.ones(len(nodes.rows), np.bool_)
        for amounts in lacking.values():
            enough &= amounts.take(nodes.rows) <= 0
        best = next(iter(nodes.where(enough)), None)
        if best is None:
            return False
        steps.pipeline(task, self._session.table.at(best))
        return True

    # --- victims ---------------------------------------------------------------------------

    def _running_on(self, task: TaskInfo, node: NodeInfo) -> list[TaskInfo]:
        """Return the candidates for `task` that run on `node`, least important first."""
        found = [
            other
            for other in self._session.tasks_on(node)
            if other.status is TaskStatus.RUNNING and self._is_candidate(task, other)
        ]
        return sorted(found, key=self._session.tiers.task_key, reverse=True)

    def _vote(self, voters: Voters, task: TaskInfo, who: Sequence[TaskInfo]) -> list[TaskInfo]:
        allowed_by = partial(_allowed_by, self._kind, task, who)
        return vote(voters, allowed_by, self._session.defects)

    def _take_surplus(
        self, steps: TaskOperations, task: TaskInfo, nodes: RankedNodes, lacking: _Lacking
    ) -> bool:
        """Make room for `task` by evicting single tasks on one node, and pipeline `task` there.

        Tries the nodes by rank, and uses the first node on which these evictions free enough
        resources. Returns False if no node qualifies.
        """
        if not self._surplus.jobs:
            return False
        table = self._session.table
        if self._surplus.potential is not self._most.potential:
            nodes = nodes.where(self._possible_rows(self._surplus, lacking)[nodes.rows])
        return any(self._take_on(steps, task, table.at(row)) for row in nodes)

    def _take_on(self, steps: TaskOperations, task: TaskInfo, node: NodeInfo) -> bool:
        victims = self._vote(self._voters, task, self._running_on(task, node))
        if not victims or not self._covers(task, node, victims):
            return False
        steps.displace(task, node, self._fewest_victims(task, node, victims), self._kind.why)
        return True

    def _covers(
        self,
        task: TaskInfo,
        node: NodeInfo,
        victims: Sequence[TaskInfo],
        leaving: Sequence[TaskInfo] = (),
    ) -> bool:
        """Return whether `task` fits on `node` once `victims`, which run on it, are gone.

        The queue of `task` must also stay within its limits. If victims on other nodes are evicted
        too, `leaving` contains the victims on all nodes, and the limits are checked without them.
        If kube-batch's defect `evict-ignores-idle` is reproduced, the victims alone must free
        enough resources.
        """
        freed: dict[int, int] = {}
        for victim in victims:
            for column, amount in victim.request.running:
                freed[column] = freed.get(column, 0) + amount
        if not self._ignores_idle:
            for column, _ in task.request.floors:
                free = self._view.future_idle(column, node.row)
                freed[column] = freed.get(column, 0) + free
        has_room = all(freed.get(column, 0) >= floor for column, floor in task.request.floors)
        return has_room and self._is_within_limits(task, leaving or victims)

    def _is_within_limits(self, task: TaskInfo, victims: Iterable[TaskInfo]) -> bool:
        """Return whether the queue of `task` stays within its limits if `task` replaces `victims`.

        upstream: volcano: pkg/scheduler/actions/preempt/preempt.go: normalPreempt
        """
        changes: dict[str, list[int]] = {}
        for victim in victims:
            add_amounts(changes.setdefault(victim.job.queue, []), victim.request.running, -1)
        left = {queue: tuple(enumerate(amounts)) for queue, amounts in changes.items()}
        return not self._session.tiers.exceeded_limits(task.job.queue, task.request.running, left)

    def _fewest_victims(
        self, task: TaskInfo, node: NodeInfo, victims: Sequence[TaskInfo]
    ) -> list[TaskInfo]:
        """Return the shortest prefix of `victims` whose removal makes `task` fit on `node`.

        If kube-batch's defect `evict-ignores-idle` is reproduced, the prefix contains at least one
        task.
        """
        leaving: list[TaskInfo] = []
        for victim in victims:
            if (leaving or not self._ignores_idle) and self._covers(task, node, leaving):
                break
            leaving.append(victim)
        return leaving

    # --- whole gangs -----------------------------------------------------------------------

    def _take_gang(self, steps: TaskOperations, task: TaskInfo, ranked: RankedNodes) -> bool:
        """Evict a gang to make room for `task` on a node in `ranked`, and pipeline `task` there.

        A pipelined task starts when terminating pods have released the resources that it needs.

        The gang is the least important one whose eviction makes enough room. Gangs with allocated
        or bound members that do not run yet are skipped. Returns whether a gang was evicted.
        """
        if self._whole is None:
            return False
        voters = without_gang_protection(self._voters)
        nodes = [self._session.table.at(row) for row in ranked]
        for job in sorted(self._whole.jobs, key=self._session.tiers.job_key, reverse=True):
            members = job.with_status(TaskStatus.RUNNING)
            if not members or any(job.by_status[status] for status in _BEFORE_RUNNING):
                continue
            node = self._node_of_gang(task, nodes, members)
            if node is None or not self._all_may_leave(voters, task, members):
                continue
            steps.displace(task, node, members, self._kind.why)
            return True
        return False

    def _node_of_gang(
        self, task: TaskInfo, nodes: list[NodeInfo], members: Sequence[TaskInfo]
    ) -> NodeInfo | None:
        """Return the first of `nodes` on which the eviction of `members` makes room for `task`.

        Only nodes with at least one of `members` are considered. Returns None if there is no such
        node.
        """
        by_node: dict[str, list[TaskInfo]] = {}
        for member in members:
            by_node.setdefault(member.node, []).append(member)
        return next(
            (
                n
                for n in nodes
                if n.name in by_node and self._covers(task, n, by_node[n.name], members)
            ),
            None,
        )

    def _all_may_leave(self, voters: Voters, task: TaskInfo, members: Sequence[TaskInfo]) -> bool:
        if not all(self._is_candidate(task, member) for member in members):
            return False
        return len(self._vote(voters, task, members)) == len(members)


def victim_pools(session: Session, kind: EvictionKind, jobs: Iterable[JobInfo]) -> VictimPools:
    """Return the VictimPools for an action of `kind`; only members of `jobs` can be victims."""
    return VictimPools(session, kind.excluding, kind.not_excluded_by, jobs)


def commit_or_discard(session: Session, steps: TaskOperations, job: JobInfo) -> None:
    """Commit `steps` if they include an eviction and `job` can start; otherwise discard them."""
    if steps.evicts and session.tiers.is_pipelined(job):
        steps.commit()
    else:
        steps.discard()


def _allowed_by(
    kind: EvictionKind, task: TaskInfo, who: Sequence[TaskInfo], plugin: object
) -> Sequence[TaskInfo]:
    return kind.allowed_by(plugin, task, who)


def vote(
    voters: Iterable[tuple[Any, ...]], allowed_by: AllowedBy, defects: BatchDefects
) -> list[TaskInfo]:
    """Return the victims that the plugins agree on, in the order of the first plugin's result.

    Each plugin returns the candidates that may be evicted. By default every plugin can veto: the
    victims are the candidates that all plugins return. If kube-batch's defect `tier-first-wins` is
    reproduced, only the first tier that returns a victim counts. If the defect `tier-carry` is
    reproduced, too, only the first tier with plugins counts, even if it returns no victim. If there
    are no plugins, there are no victims.

    Example: in tier 1, plugin 1 returns [a, b] and plugin 2 returns [b]. In tier 2, plugin 3
    returns []. By default the result is []. If tier-first-wins is reproduced, tier 1 determines the
    result: [b].

    upstream: framework/session_plugins.go: Preemptable, Reclaimable
    """
    first_wins = defects.has(Defect.TIER_FIRST_WINS)
    carries = not first_wins or defects.has(Defect.TIER_CARRY)
    left: list[TaskInfo] | None = None
    for tier in voters:
        if not carries:
            left = None
        for plugin in tier:
            named = allowed_by(plugin)
            left = list(named) if left is None else _intersection(left, named)
            if not left and not first_wins:
                return []
        if left and first_wins:
            return left
    return left or []


def _intersection(left: list[TaskInfo], named: Sequence[TaskInfo]) -> list[TaskInfo]:
    uids = {task.id for task in named}
    return [task for task in left if task.id in uids]
