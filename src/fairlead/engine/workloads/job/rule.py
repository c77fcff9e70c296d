"""JobRule: runs pods in parallel until enough of them have succeeded.

    running ──▶ SuccessCriteriaMet ──▶ Complete
       │
       └──────▶ FailureTarget ───────▶ Failed       once the last pods have ended

A failed pod is replaced after a backoff: 10 s, doubled for each consecutive failure up to 10 min.
Example: after failures at 0 s and 12 s, new pods are created at 10 s and at 12 + 20 = 32 s. A
success resets the backoff. When failures exceed backoffLimit, the Job fails.

A terminating pod that its Job did not delete counts as failed immediately, and is replaced before
it has finished. But if podReplacementPolicy is Failed, the terminating pod is counted and replaced
only after it has finished.

If restartPolicy is OnFailure, the Job also fails when its unfinished pods have backoffLimit
container restarts in total (1 if backoffLimit is 0). Restarts do not count as failed pods.

upstream: pkg/controller/job/job_controller.go:syncJob, manageJob
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Final

from fairlead.api.finalizer import JOB_TRACKING
from fairlead.api.json import Json
from fairlead.api.objects import Job, JobSpec, Pod
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant, floor_second
from fairlead.engine.workloads.job.finished_condition import deadline_of, finished_condition
from fairlead.engine.workloads.job.progress import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    JobProgress,
    index_of,
    is_indexed,
    replaces_failed_only,
)
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState
from fairlead.engine.workloads.pod_control.pod_template import (
    read_template,
    with_annotations,
    with_finalizer,
    with_labels,
)
from fairlead.engine.workloads.pod_control.rule import NOTHING, DesiredPod, Plan
from fairlead.engine.workloads.pod_control.scale_down import job_pods_to_delete

WHY_TOO_MANY: Final = "more pods than the Job needs"
WHY_OVER: Final = "the Job is over"
WHY_SUSPENDED: Final = "the Job is suspended"
OWN_CONTROLLER: Final = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class JobRule:
    """Decides which pods of `job` to create and delete; `progress` counts the finished pods.

    `is_over` is set if the Job's status has a final condition. `is_deleting` is set if the Job is
    being deleted.

    If a newer version of a Job has an equal rule, the Job's pods are not examined again
    (`PodSets`). `job` and `progress` are not compared. So all parts of the Job that can change the
    decision must be in the other fields.
    """

    reads_readiness: ClassVar[bool] = False

    job: Job = field(compare=False)
    spec: JobSpec
    is_over: bool
    is_deleting: bool
    progress: JobProgress = field(compare=False)

    @classmethod
    def of(cls, job: Job, pods: PodSet, *, is_tracked: bool) -> JobRule:
        """Return the rule of a newly observed Job with its existing `pods`.

        If `is_tracked` is set, new pods of the Job get the tracking finalizer.
        """
        pods.ended = []
        if job.spec.template.get("spec", {}).get("restartPolicy") == "OnFailure":
            pods.count_restarts()
        progress = JobProgress.of(job, pods, is_tracked=is_tracked)
        is_over = progress.was_over = is_finished(job)
        return cls(job, job.spec, is_over=is_over, is_deleting=False, progress=progress)

    def changed(self, job: Job) -> JobRule:
        """Return the rule for a newer version of the Job; both rules share one JobProgress.

        If the number of completions was reduced, indexes outside the new range no longer count.
        """
        is_deleting = job.metadata.deletion_timestamp != ""
        is_over = is_finished(job)
        if is_indexed(job) and (job.spec.completions or 0) < (self.spec.completions or 0):
            self.progress.limit_indexes(job.spec.completions or 0)
        return JobRule(
            job, job.spec, is_over=is_over, is_deleting=is_deleting, progress=self.progress
        )

    def slot_of(self, pod: Pod) -> str:
        """Return the pod's completion index as text, or "" if the Job is not indexed."""
        index = index_of(pod) if is_indexed(self.job) else None
        return "" if index is None else str(index)

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return the result of `slot_of` for each of `replicas`.

        The results are equal, because the replicas have equal annotations and labels.
        """
        return [self.slot_of(replicas[0])] * len(replicas)

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return whether `pod` has not succeeded; `after` is the new state of `pod`."""
        return after is not PodState.SUCCEEDED

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return a plan after which the Job has as many active pods as it needs.

        A Job that is suspended, has succeeded or has failed needs no active pods. The plan contains
        nothing if the Job has a final condition, or if another controller manages the Job. The plan
        also contains nothing if the Job's template does not describe a pod, or if the Job is being
        deleted before it has succeeded or failed.
        """
        ended, pods.ended = pods.ended or [], []
        self.progress.count_ended(ended, self.job, now)
        spec = self.spec
        if self.is_over or not is_own(self.job):
            return NOTHING
        if not spec.suspend:
            self._start(now)
        if read_template(spec.template) is None:
            return NOTHING
        if self.progress.finished is None:
            is_idle = not pods.active and not pods.creations_expected
            self.progress.finished = finished_condition(
                self.job,
                self.progress,
                restarts=pods.restarts_counted,
                is_idle=is_idle,
                now=now,
            )
        if self.progress.finished is not None:
            return self._delete_active_pods(pods, now)
        if self.is_deleting:
            return NOTHING
        if spec.suspend:
            self.progress.started_at = None
            return Plan(delete=tuple(pods.active.values()), why=WHY_SUSPENDED)
        return self._manage(pods, now)

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes, because no decision depends on the readiness of pods."""
        return NOTHING

    def wanted(self, running: int) -> int:
        """Return the number of pods that should be active.

        `running` is the number of pods that are active now.
        """
        is_ended = self.is_over or self.progress.finished is not None
        return 0 if is_ended or self.spec.suspend else self._wanted(running)

    # --- state -----------------------------------------------------------------------------------

    @property
    def deadline(self) -> Instant | None:
        """Time at which the Job exceeds activeDeadlineSeconds (see `deadline_of`)."""
        return deadline_of(self.job, self.progress)

    def _start(self, now: Instant) -> None:
        if self.progress.started_at is not None:
            return
        reported = self.job.status.start_time
        is_resumed = has_condition(self.job, "Suspended")
        self.progress.started_at = (
            parse_timestamp(reported) if reported and not is_resumed else floor_second(now)
        )

    def _delete_active_pods(self, pods: PodSet, now: Instant) -> Plan:
        """Return a plan that deletes the active pods of a finished Job.

        If the Job failed, also count these pods as failed (`fail_unfinished`). Once all pods have
        finished or are gone, record the end of the Job.
        """
        if self.progress.ended_at is None and not pods.pods_alive:
            self.progress.ended_at = now
        if self.progress.finished is not None and not self.progress.finished.is_success:
            self.progress.fail_unfinished(pods.active.values())
        return Plan(delete=tuple(pods.active.values()), why=WHY_OVER)

    # --- pods ------------------------------------------------------------------------------------

    def _manage(self, pods: PodSet, now: Instant) -> Plan:
        running = len(pods.active) + len(pods.creations_expected)
        wanted = self._wanted(running)
        superfluous = self._superfluous(pods, running - wanted)
        if superfluous:
            return Plan(delete=superfluous, why=WHY_TOO_MANY, again_at=self.deadline)
        missing = wanted - running
        awaited = (
            pods.terminating + len(pods.deletions_expected) if replaces_failed_only(self.job) else 0
        )
        if missing <= awaited:
            return Plan(again_at=self.deadline, awaits_creation=missing > 0)
        wait_until = 0 if is_by_index(self.job) else self.progress.backoff.until
        if wait_until > now:
            return Plan(again_at=_first(wait_until, self.deadline), awaits_creation=True)
        return self._creations(pods, missing - awaited, now)

    def _wanted(self, running: int) -> int:
        """Return the number of pods to keep active.

        `running` is the number of pods that are active or being created. If completions is not set,
        no pods are added after a success.
        """
        spec, succeeded = self.spec, self.progress.succeeded
        if spec.completions is None:
            return running if succeeded else spec.parallelism
        given_up = len(self.progress.failed_indexes) if is_by_index(self.job) else 0
        return max(0, min(spec.completions - succeeded - given_up, spec.parallelism))

    def _superfluous(self, pods: PodSet, excess: int) -> tuple[Pod, ...]:
        """Return the pods to delete; `excess` is the number of pods beyond the needed number.

        In an indexed Job, three kinds of pods are deleted whatever `excess` is: pods without an
        index, pods whose index needs no pod, and pods with the same index as an earlier pod. If
        fewer than `excess` pods are of these kinds, other pods are deleted too, but only while no
        creation is in flight.
        """
        surplus: dict[str, Pod] = {}
        if is_indexed(self.job):
            seen: set[int | None] = set()  # never iterated
            for name, pod in pods.active.items():
                index = index_of(pod)
                if index is None or index in seen or not self._is_open(index):
                    surplus[name] = pod
                seen.add(index)
        left = excess - len(surplus)
        if left > 0 and not pods.creations_expected:
            rest = [pod for name, pod in pods.active.items() if name not in surplus]
            surplus |= {pod.metadata.name: pod for pod in job_pods_to_delete(rest, left)}
        return tuple(surplus.values())

    def _is_open(self, index: int) -> bool:
        progress = self.progress
        is_given_up = is_by_index(self.job) and index in progress.failed_indexes
        is_wanted = index < (self.spec.completions or 0)
        return is_wanted and index not in progress.completed and not is_given_up

    def _creations(self, pods: PodSet, missing: int, now: Instant) -> Plan:
        missing = min(missing, pods.creations_allowed)
        template = job_template(self.job)
        # Without the finalizer, a pod could be gone before its status shows the exit codes.
        if self.progress.is_tracked or replaces_failed_only(self.job):
            template = with_finalizer(template, JOB_TRACKING)
        if not is_indexed(self.job):
            return Plan(create=(DesiredPod(template),) * missing, again_at=self.deadline)
        # An index in backoff keeps its place, so that a later index does not start earlier.
        # upstream: job_controller.go:getPodCreationInfoForIndependentIndexes
        chosen = {
            index: self._index_due(index) for index in islice(self._missing_indexes(pods), missing)
        }
        ready = [index for index, due in chosen.items() if due <= now]
        waits = [due for due in chosen.values() if due > now]
        due = min(waits, default=None)
        return Plan(
            create=tuple(self._indexed(template, index) for index in ready),
            again_at=self.deadline if due is None else _first(due, self.deadline),
            awaits_creation=not ready and due is not None,
        )

    def _index_due(self, index: int) -> Instant:
        """Return the time from which the next pod of `index` may be created."""
        backoff = self.progress.by_index.get(index)
        return 0 if backoff is None else backoff.until

    def _missing_indexes(self, pods: PodSet) -> Iterator[int]:
        """Yield the indexes that need a pod, in ascending order."""
        # upstream: pkg/controller/job/indexed_job_utils.go:firstPendingIndexes
        held = Counter(index_of(pod) for pod in pods.active.values())
        if replaces_failed_only(self.job):
            for name in pods.pods_alive:
                held[index_of(pods.pods[name])] += 1
        for index in range(self.spec.completions or 0):
            is_pending = str(index) not in pods.expected and index not in held
            if is_pending and self._is_open(index):
                yield index

    def _indexed(self, template: Json, index: int) -> DesiredPod:
        # upstream: pkg/controller/job/indexed_job_utils.go:addCompletionIndexEnvVariables
        name = f"{self.job.metadata.name}-{index}"
        notes = {INDEX: str(index)}
        if is_by_index(self.job):
            backoff = self.progress.by_index.get(index)
            notes[FAILURES] = str(backoff.counted if backoff is not None else 0)
            if backoff is not None and backoff.ignored:
                notes[IGNORED_FAILURES] = str(backoff.ignored)
        made = with_annotations(with_labels(template, {INDEX: str(index)}), notes)
        spec = made.get("spec", {})
        label = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
        env = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": label}}
        details = {
            key: [_with_env(one, env) for one in spec[key]]
            for key in ("initContainers", "containers")
            if spec.get(key)
        }
        spec = {"hostname": name} | spec | details
        return DesiredPod(made | {"spec": spec}, slot=str(index), prefix=name)


def is_by_index(job: Job) -> bool:
    """Return whether the Job is indexed and has backoffLimitPerIndex."""
    return job.spec.backoff_limit_per_index is not None and is_indexed(job)


def is_finished(job: Job) -> bool:
    """Return whether the Job's status has the condition Complete or Failed."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def is_own(job: Job) -> bool:
    """Return False if spec.managedBy of `job` names another controller, else True."""
    return job.spec.managed_by in ("", OWN_CONTROLLER)


def has_condition(job: Job, condition_type: str) -> bool:
    """Return whether the Job's condition of type `condition_type` is True."""
    return any(one.type == condition_type and one.status == "True" for one in job.status.conditions)


def job_template(job: Job) -> Json:
    """Return the Job's pod template with the labels that the controller adds."""
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


def _with_env(container: Json, env: Json) -> Json:
    own = container.get("env", [])
    if any(one.get("name") == env["name"] for one in own):
        return container
    return container | {"env": [*own, env]}


def _first(one: Instant, other: Instant | None) -> Instant:
    return one if other is None else min(one, other)
