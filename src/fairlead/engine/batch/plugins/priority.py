"""priority: more important jobs and tasks come first, and may preempt less important jobs.

upstream: pkg/scheduler/plugins/priority/priority.go
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.batch.defect import BatchDefects, Defect
from fairlead.engine.batch.info.job import JobInfo, TaskInfo


class Priority:
    """Orders tasks and jobs, and chooses preemption victims, by priority."""

    name = "priority"

    def __init__(self, defects: BatchDefects) -> None:
        """`defects` determines whether `preemptable` compares tasks of the same job."""
        self._compares_tasks = not defects.has(Defect.INTRA_JOB_PRIORITY)

    def task_order(self, task: TaskInfo) -> int:
        """Return the sort key of a task: a higher priority comes first."""
        return -task.priority

    def job_order(self, job: JobInfo) -> int:
        """Return the sort key of a job: a higher priority comes first."""
        return -job.priority

    def preemptable(
        self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        """Return the candidates with a lower priority than the preemptor.

        If a candidate is in another job, the priorities of the two jobs are compared. If it is in
        the preemptor's own job, the priorities of the two tasks are compared. If kube-batch's
        defect `intra-job-priority` is reproduced, no candidate in the preemptor's job is returned.
        """
        return [task for task in candidates if self._is_lower(task, preemptor)]

    def preemptable_jobs(self, preemptor: JobInfo, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Return the jobs with a lower priority than `preemptor`.

        If `jobs` contains `preemptor`, the result also contains `preemptor`, because a task may
        preempt less important tasks of its own job. If kube-batch's defect `intra-job-priority` is
        reproduced, the result does not contain `preemptor`.
        """
        priority = preemptor.priority
        return [
            job
            for job in jobs
            if job.priority < priority or (job is preemptor and self._compares_tasks)
        ]

    def _is_lower(self, task: TaskInfo, preemptor: TaskInfo) -> bool:
        if task.job is preemptor.job and self._compares_tasks:
            return task.priority < preemptor.priority
        return task.job.priority < preemptor.job.priority
