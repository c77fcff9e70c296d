"""Job tracking: finalizers keep pods until they are counted, and status writes are batched.

    a pod ends ──▶ the status lists its uid ──▶ its finalizer is removed ──▶ the status counts it

A new, changed or deleted Job is synced immediately. A Job whose pods changed is synced after one
second. The remaining steps follow without delay. If the Job does not exist or no longer owns the
pod, only the finalizer is removed.

In a simulation without CronJobs, the status is not written, and the end of a pod is counted
immediately (`progress`). Pods of a dump may have the finalizer. Of the new pods, only pods of Jobs
with podReplacementPolicy Failed get the finalizer. `EndedJobPods` removes all these finalizers.

upstream: pkg/controller/job/job_controller.go:trackJobStatusAndRemoveFinalizers,
flushUncountedAndRemoveFinalizers, syncJobBatchPeriod, syncOrphanPod
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec import Struct, field

from fairlead.api.finalizer import JOB_TRACKING
from fairlead.api.objects import Job, Pod
from fairlead.api.pods.facts import controller_of, is_terminal
from fairlead.engine.core.command import Command, PatchObject, pod_ref
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import (
    JOB_BATCH_PERIOD,
    JOB_RETRY_INITIAL,
    JOB_RETRY_MAX,
)
from fairlead.engine.workloads.job.progress import JobProgress, is_held, replaces_failed_only
from fairlead.engine.workloads.job.rule import is_finished
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState, pod_state
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff


class JobSyncSchedule(Struct):
    """The times at which Jobs must be synced, by the key of their pod set."""

    _generations: dict[str, int] = field(default_factory=dict)
    _busy: dict[str, None] = field(default_factory=dict)  # Jobs whose steps follow without delay
    _due: dict[str, Instant] = field(default_factory=dict)

    def learn(self, key: str, job: Job) -> None:
        """Store the generation of `job`; a Job with a new generation is synced immediately."""
        generation = job.metadata.generation
        if self._generations.get(key) != generation:
            self._generations[key] = generation
            self._busy[key] = None

    def forget(self, key: str) -> None:
        """Drop the schedule of a deleted Job."""
        self._generations.pop(key, None)
        self.end(key)

    def waits_until(self, key: str, now: Instant) -> Instant | None:
        """Return the time at which to sync the changed Job `key`; None means immediately."""
        if key in self._busy:
            return None
        due = self._due.setdefault(key, now + JOB_BATCH_PERIOD)
        if due > now:
            return due
        self._busy[key] = None
        return None

    def end(self, key: str) -> None:
        """Record that all steps of the sync of the Job `key` are done.

        After the next change of a pod of the Job, the sync waits for JOB_BATCH_PERIOD again.
        """
        self._busy.pop(key, None)
        self._due.pop(key, None)


def release_counted(progress: JobProgress, pods: PodSet) -> None:
    """Remove pods without a tracking finalizer from `progress.uncounted`.

    The status may then count these pods as succeeded or failed.
    """
    held = {pod.metadata.uid for pod in pods.pods.values() if is_held(pod)}  # never iterated
    for uid in [uid for uid in progress.uncounted if uid not in held]:
        progress.release(uid)


def releases(job: Job, progress: JobProgress, pods: PodSet) -> Iterator[Command]:
    """Yield the commands that remove the tracking finalizers of counted pods.

    For a finished or deleted Job, the finalizers of all its pods are removed.
    """
    is_over = progress.finished is not None or job.metadata.deletion_timestamp != ""
    for pod in pods.pods.values():
        if is_held(pod) and (is_over or progress.is_counted(pod.metadata.uid)):
            yield released(pod)


def released(pod: Pod) -> Command:
    """Return the command that removes the tracking finalizer of `pod`."""
    kept = [one for one in pod.metadata.finalizers if one != JOB_TRACKING]
    return PatchObject(pod_ref(pod), {"metadata": {"finalizers": kept or None}})


class JobOrphans(Struct):
    """Removes tracking finalizers from pods whose Job does not exist or no longer controls them.

    A pod that an object of another kind controls keeps its finalizer.
    """

    issuer: ClassVar[Issuer] = controller_account("job-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Job, Pod), deleted=(Job, Pod), succeeded=(), failed=(PatchObject,)
    )

    _jobs: dict[str, None] = field(default_factory=dict)  # by uid
    _held: dict[str, dict[str, Pod]] = field(default_factory=dict)  # by uids of Job and pod
    _orphans: dict[str, Pod] = field(default_factory=dict)  # by uid, until the finalizer is gone
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)
    # upstream: job_controller.go: orphanQueue, DefaultJobApiBackOff, MaxJobApiBackOff
    _backoff: RefusalBackoff[str] = field(
        default_factory=lambda: RefusalBackoff(JOB_RETRY_INITIAL, JOB_RETRY_MAX)
    )

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Remove the finalizers of pods that have lost their Job because of `stimulus`."""
        match stimulus:
            case ObjectChanged(Job() as job):
                self._jobs[job.metadata.uid] = None
            case ObjectChanged(Pod() as pod):
                return self._observe(pod)
            case ObjectDeleted(Job() as job):
                self._jobs.pop(job.metadata.uid, None)
                held = self._held.pop(job.metadata.uid, {})
                self._orphans |= held
                return [released(pod) for pod in held.values()]
            case ObjectDeleted(Pod() as pod):
                self._forget(pod)
                self._backoff.reset(pod.metadata.uid)
            case CommandFailed(PatchObject(target)) if target.uid in self._orphans:
                self._retries.add(self._backoff.next_try(target.uid, now), target.uid)
            case ObjectsLoaded():
                return self._load(stimulus)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        return self._observe(pod)

    def next_deadline(self) -> Instant | None:
        """Return the time at which a refused write is repeated next.

        Returns None if no write is to be repeated.
        """
        return self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the due retries of refused writes, for the pods that still have the finalizer."""
        due = dict.fromkeys(self._retries.pop_due(now))
        return [released(self._orphans[uid]) for uid in due if uid in self._orphans]

    def _load(self, loaded: ObjectsLoaded) -> list[Command]:
        for one in loaded.others:
            if isinstance(one, Job):
                self._jobs[one.metadata.uid] = None
        held = (pods for pods in loaded.replicas if is_held(pods[0]))
        return [command for pods in held for pod in pods for command in self._observe(pod)]

    def _observe(self, pod: Pod) -> list[Command]:
        self._forget(pod)
        if not is_held(pod):
            self._backoff.reset(pod.metadata.uid)
            return []
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind != "Job":
            return []
        if owner is None or owner.uid not in self._jobs:
            self._orphans[pod.metadata.uid] = pod
            return [released(pod)]
        self._held.setdefault(owner.uid, {})[pod.metadata.uid] = pod
        return []

    def _forget(self, pod: Pod) -> None:
        self._orphans.pop(pod.metadata.uid, None)
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind == "Job":
            self._held.get(owner.uid, {}).pop(pod.metadata.uid, None)


class EndedJobPods(NoDeadlines, Struct):
    """Removes the tracking finalizers of pods in a simulation without CronJobs.

    In such a simulation, the status of a Job is not written. So a pod keeps its finalizer only
    until it is finished or terminating, not until the status counts the pod. Jobs with
    podReplacementPolicy Failed are an exception, because they count only finished pods. The
    terminating pods of such a Job keep the finalizer until they have finished. Invariant: the Job
    controller handles each change of a pod before this class does. So the Job controller has
    already counted the pod when this class removes its finalizer.
    """

    issuer: ClassVar[Issuer] = controller_account("job-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Job, Pod), deleted=(Job, Pod), succeeded=(), failed=(), readiness=False
    )

    # The uids of the Jobs that count a pod only when it has ended.
    _awaiting_ends: dict[str, None] = field(default_factory=dict)
    _waiting: dict[str, dict[str, Pod]] = field(default_factory=dict)  # by uids of Job and pod

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Remove the finalizers of pods that have ended, or have lost their Job."""
        if type(stimulus) is ObjectDeleted and type(stimulus.object) is Pod:  # the most frequent
            self._forget(stimulus.object)
            return []
        match stimulus:
            case ObjectChanged(Pod() as pod):
                return [*self.handle_pod(pod, now)]
            case ObjectChanged(Job() as job):
                return self._learn(job)
            case ObjectDeleted(Job() as job):
                return self._release_waiting(job.metadata.uid)
            case ObjectsLoaded():
                for one in stimulus.others:
                    if isinstance(one, Job):
                        self._learn(one)
                ended = (pods for pods in stimulus.replicas if _is_held_after_end(pods[0]))
                return [command for pods in ended for pod in pods for command in self._end(pod)]
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Return the patch that removes the finalizer of `pod`, or nothing if the pod keeps it."""
        return self._end(pod) if _is_held_after_end(pod) else ()

    def _learn(self, job: Job) -> list[Command]:
        uid = job.metadata.uid
        if job.metadata.deletion_timestamp or is_finished(job) or not replaces_failed_only(job):
            return self._release_waiting(uid)
        self._awaiting_ends[uid] = None
        return []

    def _release_waiting(self, job: str) -> list[Command]:
        self._awaiting_ends.pop(job, None)
        return [released(pod) for pod in self._waiting.pop(job, {}).values()]

    def _end(self, pod: Pod) -> list[Command]:
        owner = controller_of(pod.metadata)
        if owner is None or owner.uid not in self._awaiting_ends or is_terminal(pod):
            self._forget(pod)
            return [released(pod)]
        self._waiting.setdefault(owner.uid, {})[pod.metadata.uid] = pod
        return []

    def _forget(self, pod: Pod) -> None:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.uid in self._waiting:
            self._waiting[owner.uid].pop(pod.metadata.uid, None)


def _is_held_after_end(pod: Pod) -> bool:
    """Return whether `pod` has the tracking finalizer, and has ended or is terminating."""
    if not is_held(pod) or pod_state(pod) is PodState.ACTIVE:
        return False
    owner = controller_of(pod.metadata)
    return owner is None or owner.kind == "Job"
