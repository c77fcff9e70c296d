"""proportion: divides the cluster among queues by weight, up to the request of each queue.

    deserved      amount to which the queue is entitled: the cluster is divided by weight, up to the
                  queue's request; the rest is divided among the other queues
    allocated     sum of the requests of the tasks that have a node or are pipelined, in the queue
                  and in the queues below it
    share         largest allocated ÷ deserved of any resource; smaller shares are served first
    overused      allocated covers deserved in every resource: the queue gets no more resources

Queues may form a tree, with guarantees, explicit spec.deserved and capabilities
(`engine.batch.shares.queue_tree`).
upstream: pkg/scheduler/plugins/proportion/proportion.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.queue import QueueInfo
from fairlead.engine.batch.info.request import NO_SLACK, Slack
from fairlead.engine.batch.info.task_status import ALLOCATED_STATUSES, TaskStatus
from fairlead.engine.batch.session.plugin import ExclusionScope
from fairlead.engine.batch.shares.deserved import divide
from fairlead.engine.batch.shares.queue_tree import Claim, QueueTree
from fairlead.engine.batch.shares.share import cluster_total, needs_of, outstanding, share
from fairlead.engine.state.resource_columns import CPU, MEMORY, ResourceColumns
from fairlead.engine.state.shape import Amounts

if TYPE_CHECKING:
    from fairlead.engine.batch.session.session import Session

_UNBOUND: Final = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


class QueueShare(Struct):
    """The amounts of one queue in this session, by resource column.

    `limits` are the amounts that the queue must not exceed (`QueueTree.limits`). `limits` and
    `request` do not change after the session has opened. `expected` are the amounts that admitted
    jobs will need in addition to their allocated amounts.
    """

    queue: QueueInfo
    deserved: dict[int, float]
    request: dict[int, int]
    limits: Amounts = ()
    allocated: list[int] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)

    def allocated_of(self, column: int) -> int:
        """Return the amount of the resource in `column` that the queue's tasks have allocated."""
        return self.allocated[column] if column < len(self.allocated) else 0

    def exceeded(self, requested: Amounts) -> Amounts:
        """Return the limits in `limits` that the queue would exceed if it also held `requested`."""
        if not self.limits:
            return ()
        limits = dict(self.limits)
        return tuple(
            (c, limits[c])
            for c, amount in requested
            if c in limits and self.allocated_of(c) + amount > limits[c]
        )

    @property
    def share(self) -> float:
        """Largest ratio `allocated` ÷ `deserved` of any resource."""
        by_resource = (share(self.allocated_of(c), whole) for c, whole in self.deserved.items())
        return max(by_resource, default=0.0)


class Proportion:
    """Orders queues, limits them, and chooses reclaim victims, by deserved amounts."""

    name = "proportion"
    exclusion_scope = ExclusionScope.QUEUE

    def __init__(self, defects: BatchDefects) -> None:
        """Read `defects`; shares are valid after `on_session_open`."""
        self._defects = defects
        self._slack: Slack = NO_SLACK
        self._columns = ResourceColumns()
        self.shares: dict[str, QueueShare] = {}
        self._lineages: dict[str, list[QueueShare]] = {}
        # {queue: its tasks that this session allocated or pipelined, by id; some may be bound now}
        self._placed: dict[str, dict[str, TaskInfo]] = {}
        # {queue: the result of `_held`}, until a task of the queue is allocated or deallocated
        self._bound: dict[str, list[int]] = {}

    # --- the session -----------------------------------------------------------------------

    def on_session_open(self, session: Session) -> None:
        """Compute the shares of the queues with jobs or a guarantee, and of their ancestors."""
        self._slack = session.rules.slack
        self._columns = session.table.resources
        jobs: dict[str, list[JobInfo]] = {}
        for job in session.jobs.values():
            jobs.setdefault(job.queue, []).append(job)
        names = session.table.resources.names
        uncounted = {c for c, name in enumerate(names) if name in session.rules.uncounted}
        self.shares = {
            queue.name: QueueShare(queue, {}, self._request(jobs.get(queue.name, []), uncounted))
            for queue in self._sharing_queues(session.queues, jobs)
        }
        claims = {name: self._claim(found) for name, found in self.shares.items()}
        self._placed, self._bound = {}, {}
        tree = QueueTree(claims)
        self._lineages = {name: [self.shares[n] for n in tree.path_of(name)] for name in claims}
        for name, own in jobs.items():
            for job in own:
                self._add(name, tuple(enumerate(job.held)), 1)
                self._expect(name, outstanding(job, self._columns))
        total = dict(cluster_total(session.room, session.rules))
        for name, deserved in divide(total, claims, self._slack, self._defects).items():
            self.shares[name].deserved = deserved
        for name, limits in tree.limits(total).items():
            self.shares[name].limits = limits

    def _sharing_queues(
        self, queues: Mapping[str, QueueInfo], jobs: Mapping[str, list[JobInfo]]
    ) -> list[QueueInfo]:
        """Return the queues that have jobs or a guarantee, and the ancestors of these queues.

        If only weights are used (`_is_flat`), return only the queues that have jobs.
        """
        found = dict.fromkeys(jobs)
        if not self._is_flat:
            found |= dict.fromkeys(q.name for q in queues.values() if q.guarantee)
            for name in list(found):
                at = queues[name].parent
                while at in queues and at not in found:
                    found[at] = None
                    at = queues[at].parent
        return [queues[name] for name in found]

    @property
    def _is_flat(self) -> bool:
        """Whether only weights are used, without guarantees and parents, as in kube-batch."""
        return self._defects.has(Defect.PROPORTION_LESS)

    def _claim(self, found: QueueShare) -> Claim:
        queue = found.queue
        bound = () if self._defects.has(Defect.CAPABILITY) else queue.capability
        if self._is_flat:
            return Claim(queue.weight, found.request, bound)
        return Claim(
            queue.weight, found.request, bound, queue.guarantee, queue.deserved, queue.parent
        )

    def _add(self, queue: str, amounts: Amounts, sign: int) -> None:
        for found in self._lineages[queue]:
            add_amounts(found.allocated, amounts, sign)

    def _request(self, jobs: Sequence[JobInfo], uncounted: set[int]) -> dict[int, int]:
        """Return {column: amount that `jobs` have allocated plus amount of their pending requests}.

        The resources in `uncounted` are left out. Of the resources with the amount 0, only those
        that `_named` returns are included.
        """
        named = self._named(jobs)
        total: list[int] = []
        for job in jobs:
            add_amounts(total, tuple(enumerate(job.held)), 1)
            add_amounts(total, tuple(enumerate(job.pending)), 1)
        total += [0] * (max(named) + 1 - len(total))
        return {
            c: amount
            for c, amount in enumerate(total)
            if c not in uncounted and (amount or c in named)
        }

    def _named(self, jobs: Sequence[JobInfo]) -> set[int]:
        """Return the columns of the resources that `_request` includes even if their amount is 0.

        By default these are cpu and memory. If kube-batch's defect `proportion-less` is reproduced,
        the result also includes all resources that a task of `jobs` requests, even if it requests
        0.
        """
        if not self._defects.has(Defect.PROPORTION_LESS):
            return {CPU, MEMORY}
        asking = (*ALLOCATED_STATUSES, TaskStatus.PENDING)
        return named_columns(task for job in jobs for s in asking for task in job.with_status(s))

    def allocated(self, task: TaskInfo) -> None:
        """Add `task` to the allocated amounts of its queue and the queue's ancestors."""
        self._add(task.job.queue, task.request.running, 1)
        self._bound.pop(task.job.queue, None)
        if task.status in _UNBOUND:
            self._placed.setdefault(task.job.queue, {})[task.id] = task

    def deallocated(self, task: TaskInfo) -> None:
        """Subtract `task` from the allocated amounts of its queue and the queue's ancestors."""
        self._add(task.job.queue, task.request.running, -1)
        self._bound.pop(task.job.queue, None)
        self._placed.get(task.job.queue, {}).pop(task.id, None)

    # --- queries ---------------------------------------------------------------------------

    def lineage(self, queue: str) -> Sequence[QueueShare]:
        """Return the queue `queue` and its ancestors, the topmost ancestor first."""
        return self._lineages.get(queue, ())

    def queue_order(self, queue: QueueInfo) -> tuple[float, ...]:
        """Return the sort key of a queue: the shares of its ancestors, top first, then its own."""
        return tuple(found.share for found in self._lineages.get(queue.name, ()))

    def overused(self, queue: QueueInfo) -> bool:
        """Return whether the queue has allocated its deserved amount of every resource."""
        found = self.shares[queue.name]
        return self._covers(found, found.deserved, found.allocated)

    def allocatable(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether the queue can take `task` and stay within its limits.

        The limits are the capabilities of the queue and its ancestors, and the guarantees of other
        queues. The defect `capability`, which is off by default, ignores the capabilities. The
        queue's deserved amounts are also limits if the defect `overshoot` is off. `overshoot` is on
        by default, except in configurations of Volcano.
        """
        requested = task.request.running
        return all(
            self._may_hold(found, requested, is_own=found.queue.name == queue.name)
            for found in self._lineages[queue.name]
        )

    def exceeded_limits(
        self, queue: str, requested: Amounts, changes: Mapping[str, Amounts]
    ) -> list[str]:
        """Return the queues that would exceed their limits if `queue` also held `requested`.

        The limits are those of the method `allocatable`. See `QueueLimits` for the arguments.
        """
        more: dict[str, list[int]] = {}
        for changed, amounts in changes.items():
            for found in self._lineages.get(changed, ()):
                add_amounts(more.setdefault(found.queue.name, []), amounts, 1)
        return [
            found.queue.name
            for found in reversed(self._lineages[queue])
            if not self._may_hold(
                found, _sum(requested, more.get(found.queue.name)), is_own=found.queue.name == queue
            )
        ]

    def _may_hold(self, found: QueueShare, requested: Amounts, *, is_own: bool) -> bool:
        if found.exceeded(requested):
            return False
        is_free = not is_own or self._defects.has(Defect.OVERSHOOT)
        return is_free or self._within_deserved(found, requested)

    def _within_deserved(self, found: QueueShare, requested: Amounts) -> bool:
        return all(
            found.allocated_of(c) + amount - found.deserved[c] < self._slack.least_part(c)
            for c, amount in requested
            if c in found.deserved
        )

    def _covers(
        self, found: QueueShare, deserved: dict[int, float], allocated: Sequence[int]
    ) -> bool:
        known = len(allocated)
        return all(
            whole - (allocated[c] if c < known else 0) < self._slack.least_part(c)
            for c, whole in deserved.items()
        )

    def reclaimable(
        self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that may be evicted because their queue has more than it deserves.

        A candidate may be evicted if its queue then keeps the deserved amount of at least one
        resource that the candidate uses. Only the bound tasks of the queue count. If kube-batch's
        defect `reclaim-all-dims` is reproduced, the queue must keep the deserved amount of every
        resource, and allocated and pipelined tasks count, too.

        When a candidate is checked, the candidates already chosen count as evicted. If kube-batch's
        defect `proportion-reclaim-sub` is reproduced, all earlier candidates count as evicted.
        """
        left: dict[str, list[int]] = {}
        victims = []
        for task in candidates:
            found = self.shares[task.job.queue]
            held = left.setdefault(task.job.queue, list(self._held(found)))
            without = list(held)
            add_amounts(without, task.request.running, -1)
            chosen = self._may_lose(found, without, task)
            if chosen:
                victims.append(task)
            if chosen or self._defects.has(Defect.PROPORTION_RECLAIM_SUB):
                left[task.job.queue] = without
        return victims

    def reclaimable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs whose queue has its deserved amount, or more, of at least one resource.

        Only bound tasks of the queue count. If kube-batch's defect `reclaim-all-dims` is
        reproduced, return all jobs.
        """
        if self._defects.has(Defect.RECLAIM_ALL_DIMS):
            return list(jobs)
        above = {name: self._is_above_share(name) for name in {job.queue: None for job in jobs}}
        return [job for job in jobs if above[job.queue]]

    def _is_above_share(self, queue: str) -> bool:
        found = self.shares[queue]
        held = self._held(found)
        known = len(held)
        return any(
            (held[c] if c < known else 0) + self._slack.least_part(c) > whole
            for c, whole in found.deserved.items()
        )

    def preemptive(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Return whether the queue is below its deserved amount of every resource of `task`.

        Without this condition, two queues could evict each other's tasks forever. If kube-batch's
        defect `reclaim-all-dims` is reproduced, the result is always True.
        """
        found = self.shares[queue.name]
        return self._defects.has(Defect.RECLAIM_ALL_DIMS) or all(
            found.deserved.get(c, 0.0) - found.allocated_of(c) >= self._slack.least_part(c)
            for c, _ in task.request.running
        )

    # --- admission -------------------------------------------------------------------------

    def job_enqueueable(self, job: JobInfo) -> bool:
        """Return whether the queue and its ancestors can admit `job` within their limits.

        For each resource in the job's minResources, `allocated` + `expected` + minResources must
        not exceed the limit. `expected` is the amount that already admitted jobs will still need.
        If kube-batch's defect `capability` is reproduced, the result is always True.
        """
        if self._defects.has(Defect.CAPABILITY):
            return True
        wanted = self.wanted_at_admission(job)
        return not any(self.shares[name].exceeded(amounts) for name, amounts in wanted.items())

    def wanted_at_admission(self, job: JobInfo) -> dict[str, Amounts]:
        """Return {queue: amounts that it would need in addition to its allocated amounts}.

        The queues are the queue of `job` and its ancestors. The amounts are the job's minResources
        plus the amounts of these resources that already admitted jobs will still need.
        """
        needs = needs_of(job, self._columns)
        return {
            found.queue.name: _sum(needs, found.expected)
            for found in reversed(self._lineages[job.queue])
        }

    def job_enqueued(self, job: JobInfo) -> None:
        """Add minResources of `job` to `expected` of its queue and of the queue's ancestors."""
        self._expect(job.queue, needs_of(job, self._columns))

    def _expect(self, queue: str, amounts: Amounts) -> None:
        for found in self._lineages[queue]:
            add_amounts(found.expected, tuple(sorted(amounts)), 1)

    # --- reclaim ---------------------------------------------------------------------------

    def _held(self, found: QueueShare) -> Sequence[int]:
        """Return the amounts, by column, that the queue holds when reclaim checks its share.

        Allocated and pipelined tasks count only if kube-batch's defect `reclaim-all-dims` is
        reproduced. If they always counted, a gang that waits for room could put its queue above its
        share. The queue's running tasks could then be evicted, although they alone hold less than
        the share.
        """
        if self._defects.has(Defect.RECLAIM_ALL_DIMS):
            return found.allocated
        name = found.queue.name
        if name not in self._bound:
            bound = self._bound[name] = list(found.allocated)
            for task in self._placed.get(name, {}).values():
                if task.status in _UNBOUND:
                    add_amounts(bound, task.request.running, -1)
        return self._bound[name]

    def _may_lose(self, found: QueueShare, without: list[int], task: TaskInfo) -> bool:
        if self._defects.has(Defect.RECLAIM_ALL_DIMS):
            return self._covers(found, found.deserved, without)
        return self._stays_fair(found, without, task)

    def _stays_fair(self, found: QueueShare, remaining: list[int], task: TaskInfo) -> bool:
        """Return whether the queue keeps its deserved amount of at least one resource of `task`.

        `remaining` contains the amounts, by column, that the queue holds after the eviction of
        `task`.
        """
        known = len(remaining)
        taken = dict(task.request.running)
        return any(
            taken.get(c, 0)
            and (remaining[c] if c < known else 0) + self._slack.least_part(c) > whole
            for c, whole in found.deserved.items()
        )


def _sum(amounts: Amounts, additions: Sequence[int] | None) -> Amounts:
    """Add `additions` to `amounts`, column by column; return the sums for the columns of `amounts`.

    A column that `additions` lacks counts as 0.
    """
    if additions is None:
        return amounts
    return tuple((c, amount + (additions[c] if c < len(additions) else 0)) for c, amount in amounts)


def named_columns(tasks: Iterable[TaskInfo]) -> set[int]:
    """Return the columns of cpu, memory, and all resources in the requests of `tasks`.

    A resource that a task requests with the amount 0 is included.
    """
    return {CPU, MEMORY}.union(c for task in tasks for c, _ in task.request.running)
