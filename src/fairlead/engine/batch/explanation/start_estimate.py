"""Estimates the start times of waiting jobs from the run times that pods declare.

    running tasks   end after their declared run time, or never if they declare none
    at each end     waiting jobs get the freed resources in allocate's order: the queue with the
                    smallest share first, its jobs in order; each job starts as a whole or not at
                    all
    started jobs    end after their declared run time, or never if they declare none

The estimate ignores jobs that arrive later, and reservations for starving gangs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo, add_amounts
from fairlead.engine.batch.info.runtime import runtime_of
from fairlead.engine.batch.nodes.room import Ints
from fairlead.engine.batch.plugins.proportion import QueueShare
from fairlead.engine.batch.queue_usage import proportion_of
from fairlead.engine.batch.session.reservation import lacking_tasks, place, pod_usages
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.shares.share import share
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.shape import Amounts

INSTANTS_MAX: Final = 2_000
"""Maximum number of task ends to simulate; later starts are unknown."""


def estimate_starts(session: Session, jobs_max: int) -> dict[str, Instant]:
    """Return {job id: time at which the waiting job could start}.

    Only the first `jobs_max` jobs of each queue are considered. Jobs without a known start are
    missing from the result.
    """
    return _Simulation(session, _waiting(session, jobs_max)).starts()


class _WaitingJob(Struct):
    """A job, the members that it lacks, and the sum of the requests of these members."""

    job: JobInfo
    lacking: Sequence[TaskInfo]
    requested: list[int]


def _waiting(session: Session, jobs_max: int) -> dict[str, list[_WaitingJob]]:
    """Return {queue: its first `jobs_max` waiting jobs}.

    "First" refers to the order in which the action `allocate` takes the jobs.
    """
    found: dict[str, list[_WaitingJob]] = {}
    for job in sorted(session.candidates(), key=session.tiers.job_key):
        lacking = lacking_tasks(session, job)
        line = found.setdefault(job.queue, [])
        if lacking and len(line) < jobs_max:
            requested: list[int] = []
            for task in lacking:
                add_amounts(requested, task.request.running, 1)
            line.append(_WaitingJob(job, lacking, requested))
    return found


@dataclass(order=True, slots=True)
class _End:
    """The end of a task: the time, the row of the task's node, the freed amounts, and the queue."""

    at: Instant
    row: int
    amounts: Amounts = field(compare=False)
    queue: str = field(compare=False)


class _Simulation:
    """The simulated cluster; `_free` has the free amounts at `_now`, shape (resources, rows)."""

    def __init__(self, session: Session, waiting: dict[str, list[_WaitingJob]]) -> None:
        self._session = session
        self._waiting = waiting
        self._now = session.now
        self._free: Ints = session.room.idle + session.room.releasing
        self._ends: list[_End] = []
        self._proportion = plugin = proportion_of(session)
        shares = {} if plugin is None else plugin.shares
        self._deserved = {name: found.deserved for name, found in shares.items()}
        self._held = {name: list(found.allocated) for name, found in shares.items()}
        for one in pod_usages(session):
            if one.end is not None:
                self._add_end(one.end, one.row, one.amounts, one.queue)

    def starts(self) -> dict[str, Instant]:
        """Start each waiting job as soon as it fits; return {job id: start time}."""
        found: dict[str, Instant] = {}
        for _ in range(INSTANTS_MAX):
            while (started := self._start_one()) is not None:
                found[started.id] = self._now
            if not self._ends or not any(self._waiting.values()):
                break
            self._pass()
        return found

    def _start_one(self) -> JobInfo | None:
        """Start the first job that can start now, and return it; None if no job can start."""
        totals = self._free.clip(min=0).sum(axis=1).tolist()
        for queue in sorted(self._waiting, key=self._share):
            line = self._waiting[queue]
            for at, waiter in enumerate(line):
                if any(a > totals[c] for c, a in enumerate(waiter.requested)):
                    continue
                if self._may_have(waiter) and self._place(waiter):
                    return line.pop(at).job
        return None

    def _share(self, queue: str) -> tuple[float, str]:
        held, deserved = self._held.get(queue, []), self._deserved.get(queue, {})
        return max((share(_of(held, c), w) for c, w in deserved.items()), default=0.0), queue

    def _may_have(self, waiter: _WaitingJob) -> bool:
        """Return whether the job's queue stays within its limits if the job starts.

        The queue and its ancestors must not exceed `QueueShare.limits`. The queue must also not
        exceed its deserved amounts. If kube-batch's defect `overshoot` is reproduced, there is an
        exception: a queue that now holds less than its deserved amount of at least one resource may
        exceed its deserved amounts.
        """
        deserved = self._deserved.get(waiter.job.queue)
        if deserved is None:
            return True
        if not all(self._is_within(found, waiter) for found in self._lineage(waiter.job.queue)):
            return False
        held = self._held[waiter.job.queue]
        if self._session.defects.has(Defect.OVERSHOOT):
            return any(_of(held, c) < whole for c, whole in deserved.items())
        requested = enumerate(waiter.requested)
        return all(not a or _of(held, c) + a <= deserved.get(c, 0.0) for c, a in requested)

    def _is_within(self, found: QueueShare, waiter: _WaitingJob) -> bool:
        held, more = self._held[found.queue.name], waiter.requested
        return all(
            not _of(more, c) or _of(held, c) + _of(more, c) <= most for c, most in found.limits
        )

    def _lineage(self, queue: str) -> Sequence[QueueShare]:
        return () if self._proportion is None else self._proportion.lineage(queue)

    def _place(self, waiter: _WaitingJob) -> bool:
        rows = place(self._session, waiter.job, waiter.lacking, self._free)
        if rows is None:
            return False
        for task, row in zip(waiter.lacking, rows, strict=True):
            amounts = task.request.running
            self._occupy(row, amounts, waiter.job.queue, 1)
            runtime = runtime_of(task.info)
            if runtime is not None:
                self._add_end(self._now + runtime, row, amounts, waiter.job.queue)
        return True

    def _add_end(self, at: Instant, row: int, amounts: Amounts, queue: str) -> None:
        heapq.heappush(self._ends, _End(at, row, amounts, queue))

    def _pass(self) -> None:
        """Advance the time to the next end of a task; free the resources of tasks that end then."""
        self._now = max(self._now, self._ends[0].at)
        while self._ends and self._ends[0].at <= self._now:
            end = heapq.heappop(self._ends)
            self._occupy(end.row, end.amounts, end.queue, -1)

    def _occupy(self, row: int, amounts: Amounts, queue: str, sign: int) -> None:
        for column, amount in amounts:
            self._free[column, row] -= sign * amount
        for found in self._lineage(queue):
            add_amounts(self._held[found.queue.name], amounts, sign)


def _of(amounts: Sequence[int], column: int) -> int:
    return amounts[column] if column < len(amounts) else 0
