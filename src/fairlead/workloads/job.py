"""Jobs: pods run in parallel until enough of them have succeeded.

Differs from upstream for now: no wait between failures, no indexes and no failure policies; the
number of failures a Job may have (backoffLimit) is kept, so that none goes on for ever.

upstream: pkg/controller/job/job_controller.go:manageJob, syncJob
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlead.api.objects import Job, Pod
from fairlead.core.instant import Instant
from fairlead.workloads.pod_set import PodSet, PodState
from fairlead.workloads.pod_template import with_labels
from fairlead.workloads.rule import NOTHING, Plan, Wish
from fairlead.workloads.scale_down import job_pods_to_delete

BACKOFF_LIMIT_DEFAULT: Final = 6
WHY_TOO_MANY: Final = "more than the Job wants"
WHY_FAILED: Final = "the Job failed"
WHY_SUSPENDED: Final = "the Job is suspended"


@dataclass(frozen=True, slots=True)
class JobPods:
    """The pods of `job`, of which some ended before any of its pods were seen."""

    is_watchful: ClassVar[bool] = False

    job: Job
    template: dict[str, Any]
    succeeded_before: int
    failed_before: int

    @classmethod
    def of(cls, job: Job, pods: PodSet) -> JobPods:
        """The rule for a Job first seen now, when `pods` are those that still exist."""
        return cls(
            job,
            job_template(job),
            succeeded_before=max(0, job.status.succeeded - pods.succeeded),
            failed_before=max(0, job.status.failed - pods.failed),
        )

    def changed(self, job: Job) -> JobPods:
        """The rule after the Job's specification has changed."""
        return JobPods(job, job_template(job), self.succeeded_before, self.failed_before)

    def slot_of(self, pod: Pod) -> str:
        """A Job's pods are interchangeable."""
        return ""

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """A pod that succeeded has done its work."""
        return after is not PodState.SUCCEEDED

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Keep as many pods active as are still wanted."""
        if self._has("Complete") or self._has("Failed"):
            return NOTHING
        if self._has("Suspended"):
            return Plan(delete=tuple(pods.active.values()), why=WHY_SUSPENDED)
        limit = self.job.spec.backoff_limit
        if self.failed_before + pods.failed > (BACKOFF_LIMIT_DEFAULT if limit is None else limit):
            return Plan(delete=tuple(pods.active.values()), why=WHY_FAILED)
        running = len(pods.active) + len(pods.births)
        missing = self._wanted(running, self.succeeded_before + pods.succeeded) - running
        if missing > 0:
            return Plan(create=(Wish(self.template),) * missing)
        if missing < 0 and not pods.births:
            going = job_pods_to_delete(pods.active.values(), -missing)
            return Plan(delete=tuple(going), why=WHY_TOO_MANY)
        return NOTHING

    def _wanted(self, running: int, succeeded: int) -> int:
        """How many pods should be active; without completions the first success ends the intake."""
        spec = self.job.spec
        if spec.completions is None:
            return running if succeeded else spec.parallelism
        return max(0, min(spec.completions - succeeded, spec.parallelism))

    def _has(self, condition_type: str) -> bool:
        return any(
            one.type == condition_type and one.status == "True"
            for one in self.job.status.conditions
        )


def job_template(job: Job) -> dict[str, Any]:
    """The Job's template with the labels that tell its pods."""
    # upstream: pkg/registry/batch/job/strategy.go:generateSelector
    meta = job.metadata
    labels = {
        "batch.kubernetes.io/controller-uid": meta.uid,
        "batch.kubernetes.io/job-name": meta.name,
        "controller-uid": meta.uid,
        "job-name": meta.name,
    }
    own = job.spec.template.get("metadata", {}).get("labels", {})
    return with_labels(job.spec.template, labels | own)
