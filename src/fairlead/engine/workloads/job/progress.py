"""JobProgress: counts the finished pods of a Job.

Each pod is counted once, when it finishes. Pods that the Job itself deletes are not counted.
But if a Job fails, its unfinished pods with a tracking finalizer are counted as failed before the
Job deletes them (`fail_unfinished`). When the Job is first observed, the counts in its status are
the initial counts.

If `is_tracked` is set, pods have a tracking finalizer, as in upstream. So no pod disappears before
the status counts it (see `tracking_finalizer`):

    1 pod finishes             it is counted here, and its uid is in `uncounted`
    2 status is written        uncountedTerminatedPods contains the uid
    3 finalizer is removed     `release` removes the uid from `uncounted`
    4 status is written        the status counts the pod in `succeeded` or `failed`

Invariant: a finished pod has its finalizer, or its uid is in uncountedTerminatedPods, or the status
counts it. So the controller may restart at any point. After a restart, `JobProgress.of` counts
every pod exactly once.

If `is_tracked` is not set (in a simulation without CronJobs), every end of a pod is observed and
counted immediately.

upstream: pkg/controller/job/job_controller.go:trackJobStatusAndRemoveFinalizers, syncJob;
backoff_utils.go; success_policy.go
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Final

from msgspec import Struct, field

from fairlead.api.finalizer import JOB_TRACKING
from fairlead.api.objects import Job, Pod
from fairlead.api.text.integer import parse_int64
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.job.index_set import parse_indexes
from fairlead.engine.workloads.job.pod_failure_policy import Consequence, match_policy
from fairlead.engine.workloads.pod_control.pod_set import EndedPod, PodSet, PodState, pod_state

INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
BACKOFF_LIMIT_DEFAULT: Final = 6
BACKOFF_INITIAL: Final[DurationNs] = seconds(10)
BACKOFF_MAX: Final[DurationNs] = seconds(600)


class FinishedCondition(Struct, frozen=True):
    """Reason and message of a finished Job's condition, and whether the Job succeeded."""

    reason: str
    message: str
    is_success: bool = False


class Backoff(Struct):
    """The number of consecutive failures of a Job or index, and the time of the last failure."""

    failures: int = 0
    last: Instant = 0

    def fail(self, now: Instant) -> None:
        """Count a failure at `now`."""
        self.failures += 1
        self.last = now

    @property
    def until(self) -> Instant:
        """Time from which the next pod may be created; 0 if there was no failure."""
        # upstream: backoff_utils.go:getRemainingTimeForFailuresCount
        if not self.failures:
            return 0
        return self.last + min(BACKOFF_INITIAL << min(self.failures - 1, 10), BACKOFF_MAX)


class IndexBackoff(Backoff):
    """The backoff of one index; `counted` is the number of failures that podFailurePolicy counts.

    The wait before the next pod depends on all failures, including failures that the policy
    ignores.
    """

    counted: int = 0

    def count(self, consequence: Consequence, now: Instant) -> None:
        """Count a failure at `now` whose consequence is `consequence`."""
        self.fail(now)
        self.counted += consequence is not Consequence.IGNORE

    @property
    def ignored(self) -> int:
        """The number of failures that podFailurePolicy ignores."""
        return self.failures - self.counted


class JobProgress(Struct):
    """Counts of a Job's pods."""

    succeeded: int = 0
    failed: int = 0
    completed: dict[int, None] = field(default_factory=dict)  # indexes
    failed_indexes: dict[int, None] = field(default_factory=dict)  # indexes
    backoff: Backoff = field(default_factory=Backoff)
    # The backoff of each index with a failed pod, if backoffLimitPerIndex is set.
    by_index: dict[int, IndexBackoff] = field(default_factory=dict)
    started_at: Instant | None = None
    ended_at: Instant | None = None
    finished: FinishedCondition | None = None  # set once and not changed afterwards
    # Whether the Job's status had a final condition when the Job was first observed.
    was_over: bool = False
    is_tracked: bool = False
    uncounted: dict[str, bool] = field(default_factory=dict)  # uid -> whether it succeeded
    _counted: dict[str, None] = field(default_factory=dict)  # by uid, while the pod exists
    _dismissed: dict[str, None] = field(default_factory=dict)  # by uid: not to be counted

    def copied(self) -> JobProgress:
        """Return an independent copy. For many indexes, `deepcopy` would take far longer."""
        made = copy(self)
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), dict):
                setattr(made, name, value.copy())
        made.backoff = copy(self.backoff)
        made.by_index = {index: copy(one) for index, one in self.by_index.items()}
        return made

    @classmethod
    def of(cls, job: Job, pods: PodSet, *, is_tracked: bool) -> JobProgress:
        """Return the counts of a newly observed Job with its existing `pods`."""
        progress, status = cls(is_tracked=is_tracked), job.status
        ended = {pod.metadata.uid: pod_state(pod) for pod in pods.pods.values()}
        free = [ended[pod.metadata.uid] for pod in pods.pods.values() if not is_held(pod)]
        terminating = 0 if replaces_failed_only(job) else free.count(PodState.TERMINATING)
        progress.succeeded = max(status.succeeded, free.count(PodState.SUCCEEDED))
        progress.failed = max(status.failed, free.count(PodState.FAILED) + terminating)
        listed = status.uncounted_terminated_pods
        held = {pod.metadata.uid for pod in pods.pods.values() if is_held(pod)}  # never iterated
        progress.succeeded += sum(uid not in held for uid in listed.succeeded)
        progress.failed += sum(uid not in held for uid in listed.failed)
        completions = job.spec.completions or 0
        progress.completed = dict.fromkeys(parse_indexes(status.completed_indexes, completions))
        progress.failed_indexes = dict.fromkeys(parse_indexes(status.failed_indexes, completions))
        for pod in pods.pods.values():
            state = ended[pod.metadata.uid]
            index = index_of(pod)
            progress._take_index_failures(pod, state, job)
            if is_held(pod) and progress._take_held(pod, state, job):
                continue
            if state is PodState.SUCCEEDED and index is not None:
                progress.completed[index] = None
            if state in (PodState.SUCCEEDED, PodState.FAILED) or (
                state is PodState.TERMINATING and terminating
            ):
                progress._counted[pod.metadata.uid] = None
        return progress

    def count_ended(self, ends: Iterable[EndedPod], job: Job, now: Instant) -> None:
        """Count the pods in `ends`, which have ended since the last call.

        Pods that the Job deleted are not counted. If `is_tracked` is set, pods without the tracking
        finalizer are not counted either.
        """
        for end in ends:
            uid = end.pod.metadata.uid
            if end.is_ours or (self.is_tracked and not is_held(end.pod)):
                self._dismissed[uid] = None  # no effect if it is counted already
            if uid not in self._dismissed and uid not in self._counted:
                self._count(end, job, now)
            if end.after is None:
                self._dismissed.pop(uid, None)
                self._counted.pop(uid, None)

    def fail_unfinished(self, pods: Iterable[Pod]) -> None:
        """If a pod in `pods` has the Job tracking finalizer, count this pod as failed.

        `pods` are the active pods of a failed Job.
        """
        # upstream: job_controller.go:trackJobStatusAndRemoveFinalizers
        for pod in pods:
            uid = pod.metadata.uid
            if is_held(pod) and uid not in self._counted and uid not in self._dismissed:
                self._counted[uid] = None
                self.failed += 1
                self.uncounted[uid] = False

    def limit_indexes(self, completions: int) -> None:
        """Forget the completed and failed indexes that are not below `completions`."""
        # upstream: indexed_job_utils.go:calculateSucceededIndexes, calculateFailedIndexes
        self.completed = {index: None for index in self.completed if index < completions}
        self.failed_indexes = {index: None for index in self.failed_indexes if index < completions}
        self.succeeded = len(self.completed)

    def release(self, uid: str) -> None:
        """Record that the finalizer of the pod `uid` was removed: the status may count the pod."""
        self.uncounted.pop(uid, None)

    def is_counted(self, uid: str) -> bool:
        """Return whether the pod `uid` was counted already or must not be counted."""
        return uid in self._counted or uid in self._dismissed

    def replaces(self, pod: Pod, job: Job) -> bool:
        """Return whether `job` would replace the active pod `pod` if this pod failed now.

        upstream: job_controller.go: syncJob, indexed_job_utils.go: isIndexFailed
        """
        consequence = match_policy(job.spec.pod_failure_policy, pod).consequence
        if consequence is not Consequence.COUNT:
            return consequence is Consequence.IGNORE
        limit, index = job.spec.backoff_limit_per_index, index_of(pod)
        if limit is not None and index is not None:
            known = self.by_index.get(index)
            if (known.counted if known is not None else 0) >= limit:
                return False
        return not self.is_past_limit(job, further=1)

    def is_past_limit(self, job: Job, *, further: int = 0) -> bool:
        """Return whether the number of failed pods plus `further` exceeds backoffLimit."""
        limit = backoff_limit(job)
        return limit is not None and self.failed + further > limit

    def _take_index_failures(self, pod: Pod, state: PodState, job: Job) -> None:
        """Store the number of failures of the index of `pod`.

        The annotations of `pod` contain the number of earlier failures. If `pod` itself has failed,
        its failure is added.

        upstream: indexed_job_utils.go: getNewIndexFailureCounts, isIndexFailed
        """
        limit, index, notes = job.spec.backoff_limit_per_index, index_of(pod), pod.metadata
        if limit is None or index is None or FAILURES not in notes.annotations:
            return
        counted = _number(notes.annotations[FAILURES])
        ignored = _number(notes.annotations.get(IGNORED_FAILURES, ""))
        found = IndexBackoff(failures=counted + ignored, counted=counted)
        if _is_failed(state, job):
            decision = match_policy(job.spec.pod_failure_policy, pod)
            found.count(decision.consequence, 0)
            if decision.consequence is Consequence.FAIL_INDEX or counted < found.counted > limit:
                self.failed_indexes[index] = None
        known = self.by_index.get(index)
        if found.failures and (known is None or known.failures < found.failures):
            self.by_index[index] = found

    def _take_held(self, pod: Pod, state: PodState, job: Job) -> bool:
        """Count `pod` if it has ended; return whether it has ended.

        `pod` still has the Job controller's finalizer.
        """
        if state is PodState.SUCCEEDED:
            self._succeed(pod, job)
        elif _is_failed(state, job):
            self.failed += 1
            self.uncounted[pod.metadata.uid] = False
        else:
            return False
        self._counted[pod.metadata.uid] = None
        return True

    def _count(self, end: EndedPod, job: Job, now: Instant) -> None:
        match end.after:
            case PodState.SUCCEEDED:
                self._succeed(end.pod, job)
            case PodState.TERMINATING if replaces_failed_only(job):
                return  # counted when it has finished
            case _:
                self._fail(end.pod, job, now)
        self._counted[end.pod.metadata.uid] = None

    def _succeed(self, pod: Pod, job: Job) -> None:
        self.backoff = Backoff()
        if not is_indexed(job):
            self.succeeded += 1
            if is_held(pod):
                self.uncounted[pod.metadata.uid] = True
            return
        index = index_of(pod)
        if index is not None and index < (job.spec.completions or 0):
            self.completed[index] = None
        self.succeeded = len(self.completed)

    def _fail(self, pod: Pod, job: Job, now: Instant) -> None:
        self.backoff.fail(now)
        decision, index = match_policy(job.spec.pod_failure_policy, pod), index_of(pod)
        limit = job.spec.backoff_limit_per_index
        if limit is not None and index is not None:
            backoff = self.by_index.setdefault(index, IndexBackoff())
            backoff.count(decision.consequence, now)
            if backoff.counted > limit and index not in self.completed:
                self.failed_indexes[index] = None
        match decision.consequence:
            case Consequence.IGNORE:
                return
            case Consequence.FAIL_JOB if self.finished is None:
                self.finished = FinishedCondition("PodFailurePolicy", decision.message)
            case Consequence.FAIL_INDEX if index is not None:
                self.failed_indexes[index] = None
            case _:
                pass
        self.failed += 1
        if is_held(pod):
            self.uncounted[pod.metadata.uid] = False


def backoff_limit(job: Job) -> int | None:
    """Return backoffLimit of `job`, or its default; None if there is no limit."""
    # upstream: pkg/apis/batch/v1/defaults.go:SetDefaults_Job
    limit = job.spec.backoff_limit
    if limit is None and job.spec.backoff_limit_per_index is None:
        return BACKOFF_LIMIT_DEFAULT
    return limit


def are_restarts_past_limit(job: Job, restarts: int) -> bool:
    """Return whether `restarts`, the number of container restarts, reaches backoffLimit.

    A backoffLimit of 0 acts like a backoffLimit of 1: the first restart reaches it.
    """
    # upstream: pkg/controller/job/job_controller.go:pastBackoffLimitOnFailure
    limit = backoff_limit(job)
    return limit is not None and restarts >= max(1, limit)


def _is_failed(state: PodState, job: Job) -> bool:
    """Return whether a pod in `state` counts as failed (job_controller.go: isPodFailed)."""
    return state is PodState.FAILED or (
        state is PodState.TERMINATING and not replaces_failed_only(job)
    )


def _number(text: str) -> int:
    """Return the number of failures in an annotation; 0 if it is invalid (parseInt32)."""
    found = parse_int64(text) if text.isdecimal() else None
    return found if found is not None and found < 2**31 else 0


def is_held(pod: Pod) -> bool:
    """Return whether `pod` has the tracking finalizer."""
    return JOB_TRACKING in pod.metadata.finalizers


def is_indexed(job: Job) -> bool:
    """Return whether the Job has completion mode Indexed and a number of completions."""
    return job.spec.completion_mode == "Indexed" and job.spec.completions is not None


def index_of(pod: Pod) -> int | None:
    """Return the completion index of `pod`, or None if it has no index."""
    text = pod.metadata.annotations.get(INDEX, "")
    return parse_int64(text) if text.isdecimal() else None


def replaces_failed_only(job: Job) -> bool:
    """Return whether a terminating pod is replaced only after it has finished."""
    # upstream: pkg/apis/batch/v1/defaults.go: the default is Failed if podFailurePolicy is set
    policy = job.spec.pod_replacement_policy
    return policy == "Failed" or (not policy and job.spec.pod_failure_policy is not None)
