"""gang: a job runs with at least its minimum number of members, or does not run.

upstream: pkg/scheduler/plugins/gang/gang.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo
from fairlead.engine.batch.session.plugin import ExclusionScope, Unschedulable

NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
NOT_ENOUGH_TASKS: Final = "NotEnoughTasks"


class Gang:
    """Decides about readiness, job order, victims, and the condition of jobs that cannot start."""

    name = "gang"
    exclusion_scope = ExclusionScope.JOB
    # This plugin has no vote on the eviction of a whole gang (`without_gang_protection`), because
    # no broken gang remains.
    protects_gangs = True

    def __init__(self, defects: BatchDefects) -> None:
        """Prepare the plugin; `defects` are the bugs of kube-batch that are switched on.

        The defects determine which members of a gang are surplus and may be evicted.
        """
        self._counts_each_alone = defects.has(Defect.GANG_VICTIMS_NOT_CUMULATIVE)
        self._last_may_go = defects.has(Defect.GANG_MIN_ONE_EVICTABLE)

    def job_order(self, job: JobInfo) -> bool:
        """Return the sort key of a job: jobs that are not ready come first."""
        return job.is_ready

    def job_ready(self, job: JobInfo) -> bool:
        """Return whether at least the minimum number of members have a node or have succeeded."""
        return job.is_ready

    def job_pipelined(self, job: JobInfo) -> bool:
        """Return whether the ready and the pipelined members together reach the job's minimum."""
        return job.is_pipelined

    def job_valid(self, job: JobInfo) -> Unschedulable | None:
        """Return an objection if `job.valid_count` is below the job's minimum, else None."""
        valid, minimum = job.valid_count, job.min_available
        if valid >= minimum:
            return None
        text = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"
        return Unschedulable(NOT_ENOUGH_TASKS, text)

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates whose eviction leaves their job at or above its minimum.

        When a candidate is checked, the candidates that were already chosen count as evicted. If
        kube-batch's defect `gang-victims-not-cumulative` is reproduced, they do not count as
        evicted. If kube-batch's defect `gang-min-one-evictable` is reproduced, the last member of a
        job with minMember 1 can be evicted, too.
        """
        return self._surplus(candidates)

    def reclaimable(
        self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates that `preemptable` would return."""
        return self._surplus(candidates)

    def preemptable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs that have more ready members than their minimum.

        If kube-batch's defect `gang-min-one-evictable` is reproduced, all jobs with minMember 1 are
        included.
        """
        return [
            job for job in jobs if job.ready_count > job.min_available or self._last_may_go_of(job)
        ]

    def reclaimable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs that `preemptable_jobs` would return."""
        return self.preemptable_jobs(preemptor, jobs)

    def _last_may_go_of(self, job: JobInfo) -> bool:
        return self._last_may_go and job.min_available == 1

    def _surplus(self, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        left: dict[str, int] = {}
        victims = []
        for task in candidates:
            job = task.job
            ready = left.setdefault(job.id, job.ready_count)
            if ready > job.min_available or self._last_may_go_of(job):
                victims.append(task)
                if not self._counts_each_alone:
                    left[job.id] = ready - 1
        return victims

    def unschedulable(self, job: JobInfo, fit_error: str) -> Unschedulable | None:
        """Return the condition of a job that is not ready, or None if the job is ready.

        `fit_error` is the reason why tasks of the job were not placed.
        """
        missing = job.min_available - job.ready_count
        if missing <= 0:
            return None
        text = f"{missing}/{len(job.tasks)} tasks in gang unschedulable: {fit_error}"
        return Unschedulable(NOT_ENOUGH_RESOURCES, text)
