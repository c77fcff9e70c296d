"""VictimPools: the jobs that may lose members to another job, and the resources of these members.

Before a search examines single members, plugins exclude whole jobs. If the result of any plugin
depends on the job that needs resources, every search calls all plugins for every job. Otherwise,
fewer calls are enough:

- If the result of a plugin depends only on the job to be excluded, the first search calls the
  plugin for every job. A later search calls it only for jobs whose tasks have moved since the last
  search.
- If the result depends only on the queue of the job to be excluded, each search calls the plugin
  for one job of each queue.

Example: 500 gangs reclaim from queue a, which has 1,000 jobs. The result of the plugin `gang`
depends only on the job to be excluded. The result of `proportion` depends only on the queue of that
job. The first search calls `gang` for 1,000 jobs and `proportion` for one job of queue a. This
search evicts a member of job 7. The second search then calls `gang` only for job 7, and
`proportion` again for one job of queue a.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.room import Ints
from fairlead.engine.batch.session.plugin import ExclusionScope
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.tier import Voters

NotExcludedBy = Callable[[Any, JobInfo, Sequence[JobInfo]], list[JobInfo]]


class VictimPool(Struct, frozen=True):
    """The jobs that may lose members to another job, and the amounts that their members occupy.

    `potential[resource, row]` is at least the sum of the requests of the running tasks of `jobs`
    on the node at `row`.
    """

    jobs: Collection[JobInfo]
    potential: Ints


class VictimPools:
    """Computes and caches the `VictimPool` of each job that needs resources."""

    def __init__(
        self,
        session: Session,
        excluding: type[Any],
        not_excluded_by: NotExcludedBy,
        jobs: Iterable[JobInfo],
    ) -> None:
        """Store the jobs in `jobs` that have running tasks.

        `excluding` and `not_excluded_by` are as in `EvictionKind`.
        """
        self._session = session
        self._excluding = excluding
        self._not_excluded_by = not_excluded_by
        self._jobs = [job for job in jobs if job.by_status[TaskStatus.RUNNING]]
        self._known: dict[tuple[str, ...], VictimPool] = {}
        self._decisive: dict[Voters, list[Any]] = {}
        self._by_queue: dict[Voters, _JobsByQueue] = {}

    def for_job(self, preemptor: JobInfo, voters: Voters) -> VictimPool:
        """Return the pool of the jobs that no plugin in `voters` excludes for `preemptor`.

        The pool is valid until the next call.
        """
        if voters not in self._decisive:
            self._decisive[voters] = self._decisive_among(voters)
        plugins = self._decisive[voters]
        scopes = [
            getattr(plugin, "exclusion_scope", ExclusionScope.PREEMPTOR) for plugin in plugins
        ]
        if ExclusionScope.PREEMPTOR not in scopes:
            return self._grouped(preemptor, voters, plugins)
        found = self._not_excluded(preemptor, plugins, self._jobs)
        key = tuple([job.id for job in found])
        pool = self._known.get(key)
        if pool is None:
            freed = np.zeros_like(self._session.room.idle)
            _add_running(freed, self._session, found)
            pool = self._known[key] = VictimPool(found, freed)
        return pool

    def _not_excluded(
        self, preemptor: JobInfo, plugins: Iterable[Any], jobs: Sequence[JobInfo]
    ) -> Sequence[JobInfo]:
        for plugin in plugins:
            jobs = self._not_excluded_by(plugin, preemptor, jobs)
        return jobs

    def _decisive_among(self, voters: Voters) -> list[Any]:
        """Return the plugins in `voters` whose veto is enough to exclude a job.

        Only plugins of the class `self._excluding` can veto a job. By default the veto of any such
        plugin is enough. If kube-batch's defect `tier-first-wins` is reproduced, the result is
        empty: after a veto in one tier, another tier may still return members of the job as
        victims. If the defect `tier-carry` is reproduced, too, only the first tier with plugins
        counts, and a veto in this tier is enough.
        """
        speaking, defects = voters, self._session.defects
        if defects.has(Defect.TIER_FIRST_WINS):
            first = next((tier for tier in voters if tier), ())
            speaking = (first,) if defects.has(Defect.TIER_CARRY) else ()
        return [one for tier in speaking for one in tier if isinstance(one, self._excluding)]

    # --- by queue --------------------------------------------------------------------------

    def _grouped(self, preemptor: JobInfo, voters: Voters, plugins: Sequence[Any]) -> VictimPool:
        by_job = [one for one in plugins if one.exclusion_scope is ExclusionScope.JOB]
        by_queue = [one for one in plugins if one.exclusion_scope is ExclusionScope.QUEUE]
        known = self._by_queue.get(voters)
        if known is None:
            known = self._by_queue[voters] = _JobsByQueue(self._session, self._jobs)
        known.refresh(lambda jobs: self._not_excluded(preemptor, by_job, jobs))
        giving = [
            queue
            for queue in known.queues.values()
            if queue.jobs
            and self._not_excluded(preemptor, by_queue, [next(iter(queue.jobs.values()))])
        ]
        if len(giving) == 1:
            return VictimPool(giving[0].jobs.values(), giving[0].potential)
        jobs = [job for queue in giving for job in queue.jobs.values()]
        potential = sum((queue.potential for queue in giving), np.zeros_like(known.nothing))
        return VictimPool(jobs, potential)


class _QueueJobs(Struct):
    """The jobs of one queue that may lose members, keyed by id.

    `potential` is an array [resource, row of a node]. It contains the sum of the requests of the
    running tasks of all jobs in `counted`. A job that is removed from `jobs` stays in `counted`.
    """

    potential: Ints
    jobs: dict[str, JobInfo] = field(default_factory=dict)
    counted: dict[str, None] = field(default_factory=dict)


class _JobsByQueue:
    """The jobs of each queue, without those that a plugin with ExclusionScope.JOB excludes."""

    def __init__(self, session: Session, jobs: Sequence[JobInfo]) -> None:
        """Store `jobs`. The first call of `refresh` finds the jobs that plugins exclude."""
        self._session = session
        self._all = {job.id: job for job in jobs}
        self._moves: int | None = None
        self.nothing = np.zeros_like(session.room.idle)
        self.queues: dict[str, _QueueJobs] = {}

    def refresh(self, not_excluded: Callable[[Sequence[JobInfo]], Sequence[JobInfo]]) -> None:
        """Call `not_excluded` with the jobs whose tasks have changed since the last refresh.

        The first refresh passes all jobs. A task changes when it gets another status or node.
        """
        moved = self._session.moved_jobs
        changed = self._all.values() if self._moves is None else moved[self._moves :]
        self._moves = len(moved)
        changed_jobs = list({job.id: job for job in changed if job.id in self._all}.values())
        if not changed_jobs:
            return
        for job in changed_jobs:
            if job.queue in self.queues:
                self.queues[job.queue].jobs.pop(job.id, None)
        for job in not_excluded(changed_jobs):
            queue = self.queues.get(job.queue)
            if queue is None:
                queue = self.queues[job.queue] = _QueueJobs(self.nothing.copy())
            queue.jobs[job.id] = job
            if job.id not in queue.counted:
                queue.counted[job.id] = None
                _add_running(queue.potential, self._session, [job])


def _add_running(amounts: Ints, session: Session, jobs: Iterable[JobInfo]) -> None:
    """Add the requests of the running tasks of `jobs` to `amounts`, shape (resources, rows)."""
    for job in jobs:
        for task in job.by_status[TaskStatus.RUNNING].values():
            node = session.table.find(task.node)
            if node is not None:
                for column, amount in task.request.running:
                    amounts[column, node.row] += amount
