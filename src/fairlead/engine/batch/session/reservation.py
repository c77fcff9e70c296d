"""Reservation: resources on nodes that are reserved for a gang that has waited too long.

Without a reservation, a large gang could wait forever, because smaller jobs take all resources that
become free. Of the gangs for which `StartSearch` finds a start, the one that has waited longest
gets the reservation. Suppose that a gang's queue already has its share, and that a job of a queue
with less than its share could start. Then the gang gets no reservation, because that job would
reclaim the reserved resources immediately. The reservation is computed again in each session:

    1  Find the earliest time at which the gang could start if no other task were started. A task
       with a declared run time ends when this time is over. A task without a declared run time
       never ends if its controller, such as a ReplicaSet, replaces it when it ends. Otherwise, the
       task is assumed to end after all tasks with a declared run time.
    2  Choose nodes for that time. Nodes that were reserved before come first. So the resources that
       have become free there stay reserved.
    3  Hide the resources that the gang needs on these nodes from all other jobs. Count these
       resources as held by the gang's queue, so that other jobs of this queue do not use up its
       limits.

There are two exceptions to step 3. The action `backfill` may place tasks on the hidden resources if
these tasks end before the gang can start. Jobs that would preempt the gang in the session after its
start may use the hidden resources, too. Otherwise, they would preempt the gang as soon as it runs.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.runtime import expected_end, never_ends, runtime_of
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.room import Ints
from fairlead.engine.batch.session.session import Reservation, Session
from fairlead.engine.batch.session.tier import without_gang_protection
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.resource_columns import CPU
from fairlead.engine.state.shape import Amounts

_REMEMBERED = 1 << 40  # larger than the free amount of any node
# Filter plugins whose rejection of a node can end with the pods that run now.
_DEPENDING_ON_PODS: Final = frozenset(
    (
        "DynamicResources",
        "InterPodAffinity",
        "NodePorts",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "VolumeBinding",
        "VolumeRestrictions",
    )
)


class PodUsage(Struct, frozen=True):
    """The resources that a pod occupies: `amounts`, by column, on the node at `row`.

    `end` is the time at which the pod ends, None if unknown. `never_ends` is set if the pod
    declares no end, and its controller replaces it when it ends. `queue` is "" if the pod belongs
    to no queue.
    """

    end: Instant | None
    row: int
    amounts: Amounts
    queue: str = ""
    never_ends: bool = False


def reserve(session: Session) -> Reservation | None:
    """Reserve resources for a gang that has waited too long, and end the earlier reservation.

    The module docstring explains which gang is chosen. Returns the reservation, or None if no gang
    gets one.
    """
    session.room.reserve(None)
    session.reservation = found = _find_reservation(session)
    if found is not None:
        session.room.reserve(found.reserved)
    for other in session.jobs.values():
        other.reserved_nodes = ()
    if found is not None:
        found.job.reserved_nodes = found.nodes
    return found


def _find_reservation(session: Session) -> Reservation | None:
    bound = session.policy.starvation_bound
    if bound is None:
        return None
    starving = [
        (job.waiting_since, job.id, job)
        for job in session.candidates()
        if job.waiting_since is not None
        and session.now - job.waiting_since >= bound
        and job.min_available > 1
        and not session.tiers.is_overused(session.queues[job.queue])
    ]
    if not starving:
        return None
    search = StartSearch(session)
    below_share = [one for one in starving if _is_below_share(session, one[2])]
    found = _first_found(search, below_share)
    if found is None and not any(_would_reclaim(search, job) for job in session.candidates()):
        found = _first_found(search, starving)
    return None if found is None else replace(found, ahead=_jobs_ahead(session, found.job))


def _jobs_ahead(session: Session, gang: JobInfo) -> frozenset[str]:
    """Return the ids of the waiting jobs that would preempt `gang` if it ran."""
    return frozenset(job.id for job in session.candidates() if would_preempt(session, job, gang))


def would_preempt(session: Session, job: JobInfo, gang: JobInfo) -> bool:
    """Return whether the action preempt may evict all members of `gang` for a task of `job`.

    The members are examined as if they ran. The result is False if no tasks of `job` are pending,
    or if `job` is `gang` itself.
    """
    task = next(iter(job.by_status[TaskStatus.PENDING].values()), None)
    is_rival = job is not gang and job.queue == gang.queue
    if task is None or not is_rival or not session.preempts_whole_gangs:
        return False
    voters = without_gang_protection(session.tiers.preempt_voters)
    plugins = [plugin for tier in voters for plugin in tier]
    if not plugins:
        return False
    members = list(gang.tasks.values())
    return all(len(plugin.preemptable(task, members)) == len(members) for plugin in plugins)


def _first_found(
    search: StartSearch, starving: Sequence[tuple[Instant, str, JobInfo]]
) -> Reservation | None:
    """Return the reservation for the job that has waited longest among those that can start."""
    return next((found for *_, job in sorted(starving) if (found := search.plan(job))), None)


def _would_reclaim(search: StartSearch, job: JobInfo) -> bool:
    """Return whether two conditions hold: the queue may reclaim, and `search` finds a start."""
    return _is_below_share(search.session, job) and search.plan(job) is not None


def _is_below_share(session: Session, job: JobInfo) -> bool:
    """Return whether the job's queue may reclaim resources for every pending task of `job`.

    Each task is checked by itself, as if it were the only pending task. Best-effort tasks do not
    count. The result is False if only best-effort tasks, or no tasks, are pending.
    """
    queue, waiting = session.queues[job.queue], job.with_status(TaskStatus.PENDING)
    pending = [task for task in waiting if not task.request.is_best_effort]
    return bool(pending) and all(session.tiers.may_reclaim(queue, task) for task in pending)


class StartSearch:
    """Finds the earliest start of a job, assuming that no tasks of other jobs are started.

    A job can start as soon as `place` finds a node for each of its `lacking_tasks` and its queue
    stays within its limits. At a pod's declared end, the pod's resources become free on its node,
    and its queue no longer holds them.
    """

    def __init__(self, session: Session) -> None:
        """Prepare searches in `session`, whose state must not change between the searches."""
        self.session = session
        self._pods = pod_usages(session)
        self._with_end = [one for one in self._pods if one.end is not None]

    def plan(self, job: JobInfo) -> Reservation | None:
        """Return a reservation for the earliest start of `job`.

        Returns None in three cases. First, `job` has no `lacking_tasks`. Second, these tasks would
        not fit even if all placed pods without `never_ends` had ended. Third, the queue would
        exceed its limits even if all pods with a declared end had ended.
        """
        lacking = lacking_tasks(self.session, job)
        if not lacking or self.exceeded_limits(job, self._with_end):
            return None
        if not self._fits(job, lacking, self._free_after_declared_ends):
            rows = place(self.session, job, lacking, self._free_after_all_ends)
            return None if rows is None else _reservation(self.session, job, lacking, rows, None)
        fewest, most = 0, len(self._with_end)
        while fewest < most:  # binary search: more ended pods never prevent a start
            middle = (fewest + most) // 2
            gone = self._with_end[:middle]
            if self.exceeded_limits(job, gone) or not self._fits(job, lacking, self._free(gone)):
                fewest = middle + 1
            else:
                most = middle
        rows = place(self.session, job, lacking, self._free(self._with_end[:fewest]))
        assert rows is not None
        start = self._with_end[fewest - 1].end if fewest else self.session.now
        return _reservation(self.session, job, lacking, rows, start)

    def is_too_large(self, job: JobInfo) -> bool:
        """Return whether the `lacking_tasks` of `job` do not fit even into an empty cluster.

        Devices, volumes, ports and rules about other pods are ignored, because they may be no
        obstacle in an empty cluster.
        """
        lacking = lacking_tasks(self.session, job)
        free = self._free_without_pods
        return place(self.session, job, lacking, free, ignored=_DEPENDING_ON_PODS) is None

    def lacks_only_resources(self, job: JobInfo) -> bool:
        """Return whether the `lacking_tasks` of `job` would fit if all placed pods had no requests.

        These pods would still occupy their devices, volumes and ports, and would still count for
        rules about other pods. So if the result is False, the obstacle is a device, a volume, a
        port or a rule about other pods, or `job` is too large.
        """
        lacking = lacking_tasks(self.session, job)
        return self._fits(job, lacking, self._free_without_pods)

    def exceeded_limits(self, job: JobInfo, gone: Sequence[PodUsage] = ()) -> list[str]:
        """Return the queues that would exceed their limits if `job` started.

        Each of these queues is the job's queue or one of its ancestors. The limits are checked as
        if the pods in `gone` had ended and all `lacking_tasks` of `job` had started.
        """
        changes: dict[str, list[int]] = {}
        for one in gone:
            add_amounts(changes.setdefault(one.queue, []), one.amounts, -1)
        requested = total_request(lacking_tasks(self.session, job))
        return self.session.tiers.exceeded_limits(
            job.queue, requested, {queue: tuple(enumerate(c)) for queue, c in changes.items()}
        )

    def _fits(self, job: JobInfo, lacking: Sequence[TaskInfo], free: Ints) -> bool:
        return place(self.session, job, lacking, free) is not None

    @cached_property
    def _free_after_declared_ends(self) -> Ints:
        return self._free(self._with_end)

    @cached_property
    def _free_after_all_ends(self) -> Ints:
        return self._free([one for one in self._pods if not one.never_ends])

    @cached_property
    def _free_without_pods(self) -> Ints:
        return self._free(self._pods)

    def _free(self, gone: Sequence[PodUsage]) -> Ints:
        """Return the free amounts, shape (resources, rows), after the pods in `gone` have ended."""
        free: Ints = self.session.room.idle + self.session.room.releasing
        for one in gone:
            for column, amount in one.amounts:
                free[column, one.row] += amount
        return free


def total_request(tasks: Sequence[TaskInfo]) -> Amounts:
    """Return the sum of the requests of `tasks`; resources whose sum is 0 are left out."""
    total: list[int] = []
    for task in tasks:
        add_amounts(total, task.request.running, 1)
    return tuple((column, amount) for column, amount in enumerate(total) if amount)


def lacking_tasks(session: Session, job: JobInfo) -> list[TaskInfo]:
    """Return the pending tasks with which `job` would reach its minimum, in task order.

    If too few tasks are pending, all of them are returned. Best-effort tasks are not included.
    """
    pending = [t for t in job.with_status(TaskStatus.PENDING) if not t.request.is_best_effort]
    pending.sort(key=session.tiers.task_key)
    return pending[: max(job.min_available - job.ready_count, 0)]


def pod_usages(session: Session) -> list[PodUsage]:
    """Return the pods on nodes, sorted by expected end; pods without an expected end come last.

    Pods that are being deleted are left out.
    """
    requests, leaving = session.job_table.requests, session.job_table.releasing_pods
    tasks = session.job_table.tasks
    found = [
        PodUsage(
            expected_end(pod, session.now),
            node.row,
            requests.of(pod).running,
            tasks[pod.id].job.queue if pod.id in tasks else "",
            never_ends(pod),
        )
        for node in session.table.nodes()
        for pod in node.pods.values()
        if pod.id not in leaving
    ]
    late = max((one.end for one in found if one.end is not None), default=0) + 1
    return sorted(found, key=lambda one: (late if one.end is None else one.end, one.row))


def place(
    session: Session,
    job: JobInfo,
    lacking: Sequence[TaskInfo],
    free: Ints,
    *,
    ignored: Container[str] = (),
) -> list[int] | None:
    """Choose a node for each task in `lacking`; return the nodes' rows in the node table.

    `lacking` are the pending tasks that `job` needs to reach its minimum (`lacking_tasks`). The
    result has one row for each of them, in the same order. Returns None if one of the tasks fits on
    no node. `free` contains the free amounts, shape (resources, rows), and is not changed. Nodes
    that were reserved for `job` are preferred, then nodes with more idle cpu. `ignored` are the
    names of Filter plugins whose verdicts are ignored.
    """
    free = free.copy()
    preference = session.room.idle[CPU].copy()
    for name in job.reserved_nodes:
        node = session.table.find(name)
        if node is not None:
            preference[node.row] += _REMEMBERED
    rows: list[int] = []
    for task in lacking:
        found = session.choices(job).ignoring_resources.find(task.info)
        open_rows = found.plan.rows[found.positions()]
        if ignored:
            open_rows = np.union1d(open_rows, found.diagnosis().rows_rejected_by(ignored))
        for column, floor in task.request.floors:
            open_rows = open_rows[free[column, open_rows] >= floor]
        if not len(open_rows):
            return None
        row = int(open_rows[np.argmax(preference[open_rows])])
        for column, amount in task.request.running:
            free[column, row] -= amount
        rows.append(row)
    return rows


def _reservation(
    session: Session,
    job: JobInfo,
    lacking: Sequence[TaskInfo],
    rows: Sequence[int],
    start: Instant | None,
) -> Reservation:
    held = np.zeros_like(session.room.idle)
    for task, row in zip(lacking, rows, strict=True):
        for column, amount in task.request.running:
            held[column, row] += amount
    names = [session.table.at(row).name for row in dict.fromkeys(rows)]
    return Reservation(job, tuple(names), held, start, total_request(lacking))


def ends_in_time(task: TaskInfo, reservation: Reservation, now: Instant) -> bool:
    """Return whether `task` would end by `reservation.starts_at` if it started now.

    Returns False if the runtime of `task` or `starts_at` is unknown.
    """
    runtime = runtime_of(task.info)
    return (
        runtime is not None
        and reservation.starts_at is not None
        and now + runtime <= reservation.starts_at
    )
