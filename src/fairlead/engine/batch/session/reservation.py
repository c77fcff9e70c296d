"""Reservation: resources on nodes that are reserved for a gang that has waited too long.

Without a reservation, a large gang could wait forever, because smaller jobs take all resources that
become free. The gang that has waited longest gets the reservation. A gang that would exceed the
limits of its queue gets none, because the reserved resources would stay idle. If a
job waits in a queue that is below its share, gangs of queues that already have their share get
none: the waiting job would reclaim the reserved resources at once. The reservation is computed
again in each session:

    1  Find the earliest time at which the gang could start if no other task were started. Running
       tasks end at the time that they declared; tasks without a declared end are assumed to end
       last.
    2  Choose nodes for that time. Nodes that were reserved before come first, so that the resources
       that have become free there stay reserved.
    3  Hide these resources from all other jobs.

Tasks that end before the gang can start may use the resources (`backfill`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from msgspec import Struct

from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.runtime import expected_end, runtime_of
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.room import Ints
from fairlead.engine.batch.session.session import Reservation, Session
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.resource_columns import CPU
from fairlead.engine.state.shape import Amounts

_REMEMBERED = 1 << 40  # larger than the free amount of any node


@runtime_checkable
class QueueLimits(Protocol):
    """A plugin that limits the total resources that the tasks of a queue use."""

    def takes(self, queue: str, requested: Amounts) -> bool:
        """Return whether `queue` stays within its limits if it also uses `requested`."""
        ...


class PodUsage(Struct, frozen=True):
    """The resources that a pod occupies: amounts by column, the node's row, and the end.

    `end` is the time at which the pod ends, None if unknown. `queue` is "" for a pod outside all
    queues.
    """

    end: Instant | None
    row: int
    amounts: Amounts
    queue: str = ""


def reserve(session: Session) -> Reservation | None:
    """Reserve resources for the gang that has waited longest, if it has waited for too long.

    Returns the reservation, or None if no gang needs one.
    """
    session.room.hold_back(None)
    job = _longest_waiting(session)
    found = None if job is None else plan(session, job)
    session.reservation = found
    if found is not None:
        session.room.hold_back(found.held_back)
    for other in session.jobs.values():
        other.reserved_nodes = ()
    if found is not None:
        found.job.reserved_nodes = found.nodes
    return found


def _longest_waiting(session: Session) -> JobInfo | None:
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
        and is_within_limits(session, job)
    ]
    if not starving:
        return None
    below_share = [one for one in starving if _is_below_share(session, one[2])]
    if not below_share and any(_would_reclaim(session, job) for job in session.candidates()):
        return None
    return min(below_share or starving)[2]


def is_within_limits(session: Session, job: JobInfo) -> bool:
    """Return whether the job's queue stays within its limits if all `lacking_tasks` start now."""
    requested: list[int] = []
    for task in lacking_tasks(session, job):
        add_amounts(requested, task.request.running, 1)
    amounts = tuple((column, amount) for column, amount in enumerate(requested) if amount)
    limiting = (plugin for plugin in session.tiers.plugins if isinstance(plugin, QueueLimits))
    return all(plugin.takes(job.queue, amounts) for plugin in limiting)


def _would_reclaim(session: Session, job: JobInfo) -> bool:
    """Return whether the job's queue may reclaim, and `plan` finds a reservation for `job`."""
    return _is_below_share(session, job) and plan(session, job) is not None


def _is_below_share(session: Session, job: JobInfo) -> bool:
    """Return whether the job's queue may reclaim resources for every pending task of `job`.

    Best-effort tasks do not count. The result is False if no other task is pending.
    """
    queue, waiting = session.queues[job.queue], job.with_status(TaskStatus.PENDING)
    asking = [task for task in waiting if not task.request.is_best_effort]
    return bool(asking) and all(session.tiers.may_reclaim(queue, task) for task in asking)


def plan(session: Session, job: JobInfo) -> Reservation | None:
    """Return a reservation for the earliest start of `job`.

    Returns None if `job` already has enough members, or does not fit even into an empty cluster.
    """
    lacking = lacking_tasks(session, job)
    ends = pod_usages(session)
    known = [one for one in ends if one.end is not None]
    fewest, most = 0, len(known)
    if not lacking:
        return None
    if _place(session, job, lacking, known) is None:
        rows = _place(session, job, lacking, ends)
        return None if rows is None else _reservation(session, job, lacking, rows, None)
    while fewest < most:  # binary search: more ended tasks never make placement worse
        middle = (fewest + most) // 2
        if _place(session, job, lacking, known[:middle]) is None:
            fewest = middle + 1
        else:
            most = middle
    rows = _place(session, job, lacking, known[:fewest])
    assert rows is not None
    start = known[fewest - 1].end if fewest else session.now
    return _reservation(session, job, lacking, rows, start)


def lacking_tasks(session: Session, job: JobInfo) -> list[TaskInfo]:
    """Return the pending tasks that `job` still needs to reach its minimum, in task order.

    If too few tasks are pending, all of them are returned. Best-effort tasks are not included.
    """
    asking = [t for t in job.with_status(TaskStatus.PENDING) if not t.request.is_best_effort]
    asking.sort(key=session.tiers.task_key)
    return asking[: max(job.min_available - job.ready_count, 0)]


def pod_usages(session: Session) -> list[PodUsage]:
    """Return the pods on nodes, sorted by their end; pods without a known end come last.

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
        )
        for node in session.table.nodes()
        for pod in node.pods.values()
        if pod.id not in leaving
    ]
    late = max((one.end for one in found if one.end is not None), default=0) + 1
    return sorted(found, key=lambda one: (late if one.end is None else one.end, one.row))


def _place(
    session: Session, job: JobInfo, lacking: Sequence[TaskInfo], gone: Sequence[PodUsage]
) -> list[int] | None:
    """Choose a node for each task in `lacking`, assuming that the pods in `gone` have ended.

    Returns the rows of the nodes, in the order of the tasks; None if a task fits on no node.
    """
    free = session.room.idle + session.room.releasing
    for one in gone:
        for column, amount in one.amounts:
            free[column, one.row] += amount
    return place(session, job, lacking, free)


def place(
    session: Session, job: JobInfo, lacking: Sequence[TaskInfo], free: Ints
) -> list[int] | None:
    """Choose a node for each task of `job` in `lacking`; return the rows of these nodes.

    The result has one row for each task, in order, and is None if a task fits on no node. `free`
    contains the free amounts, shape (resources, rows), and is not changed. Nodes that were
    reserved for `job` are preferred, then nodes with more idle cpu.
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
    return Reservation(job, tuple(names), held, start)


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
