"""Builds the status of a Job, and the events about its end.

upstream: pkg/controller/job/job_controller.go:syncJob, enactJobFinished, recordJobFinished
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import Job
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.identity import owner_event
from fairlead.engine.workloads.job.finished_condition import FAILURE_TARGET, SUCCESS_CRITERIA_MET
from fairlead.engine.workloads.job.index_set import format_indexes
from fairlead.engine.workloads.job.progress import JobProgress, is_held, is_indexed
from fairlead.engine.workloads.job.rule import has_condition, is_finished
from fairlead.engine.workloads.pod_control.pod_set import PodSet

SUSPENDED: Final = "Suspended"


def job_status(job: Job, progress: JobProgress, pods: PodSet, now: Instant) -> Json:
    """Return the new status of `job`; the status of a finished Job does not change."""
    before: Json = as_json(job.status)
    if is_finished(job):
        return before
    uncounted = _uncounted(progress, pods)
    numbers = {
        "active": len(pods.active),
        "succeeded": progress.succeeded - len(uncounted["succeeded"]),
        "failed": progress.failed - len(uncounted["failed"]),
    }
    status: Json = {key: number for key, number in numbers.items() if number}
    status |= {
        "ready": len(pods.ready),
        "terminating": pods.terminating,
        "uncountedTerminatedPods": {key: uids for key, uids in uncounted.items() if uids},
    }
    if progress.started_at is not None:
        status["startTime"] = format_timestamp(progress.started_at)
    elif job.status.start_time and not _is_suspending(job, progress):
        status["startTime"] = job.status.start_time
    if is_indexed(job):
        status |= _indexes(job, progress)
    ends = has_ended(job, progress, pods)
    conditions = _conditions(before.get("conditions", ()), job, progress, now, ends=ends)
    if conditions:
        status["conditions"] = conditions
    if ends and progress.finished is not None and progress.finished.is_success:
        status["completionTime"] = format_timestamp(now)
    return status


def _is_suspending(job: Job, progress: JobProgress) -> bool:
    """Return whether an unfinished Job is suspended but does not have the condition Suspended yet.

    In this state, upstream clears status.startTime if the feature gate
    MutableSchedulingDirectivesForSuspendedJobs is on (the default since 1.36).
    """
    # upstream: job_controller.go:syncJob
    is_reported = has_condition(job, SUSPENDED)
    return job.spec.suspend and progress.finished is None and not is_reported


def _uncounted(progress: JobProgress, pods: PodSet) -> dict[str, list[str]]:
    """Return the uids of the pods that ended but are not yet counted in the status.

    The uids are in the lists "succeeded" and "failed", sorted by the names of the pods.
    """
    ended: dict[str, list[str]] = {"succeeded": [], "failed": []}
    for _, pod in sorted(pods.pods.items()):
        is_success = progress.uncounted.get(pod.metadata.uid)
        if is_success is not None:
            ended["succeeded" if is_success else "failed"].append(pod.metadata.uid)
    return ended


def has_ended(job: Job, progress: JobProgress, pods: PodSet) -> bool:
    """Return whether the Job can get its final condition, Complete or Failed."""
    # upstream: job_controller.go:enactJobFinished
    has_target_condition = any(
        one.type in (SUCCESS_CRITERIA_MET, FAILURE_TARGET) and one.status == "True"
        for one in job.status.conditions
    )
    is_counted = not progress.uncounted and not any(map(is_held, pods.pods.values()))
    return has_target_condition and is_counted and progress.ended_at is not None


def job_events(ref: ObjectRef, job: Job, status: Json) -> list[Command]:
    """Return the events for conditions that the new `status` adds to the status of `job`."""
    known = {(one.type, one.status) for one in job.status.conditions}
    events: list[Command] = []
    for one in status.get("conditions", ()):
        if (one["type"], one["status"]) in known:
            continue
        match one["type"], one["status"]:
            case "Complete", "True":
                events.append(owner_event(ref, "Completed", "Job completed"))
            case "Failed", "True":
                events.append(owner_event(ref, one["reason"], one["message"], is_warning=True))
            case "Suspended", "True":
                events.append(owner_event(ref, SUSPENDED, "Job suspended"))
            case "Suspended", "False":
                events.append(owner_event(ref, "Resumed", "Job resumed"))
            case _:
                pass
    return events


def _indexes(job: Job, progress: JobProgress) -> Json:
    fields = {"completedIndexes": format_indexes(progress.completed)} if progress.completed else {}
    if job.spec.backoff_limit_per_index is not None:
        fields["failedIndexes"] = format_indexes(progress.failed_indexes)
    return fields


def _conditions(
    before: Iterable[Json], job: Job, progress: JobProgress, now: Instant, *, ends: bool
) -> list[Json]:
    conditions = list(before)
    if job.spec.suspend and progress.finished is None:
        _put(conditions, SUSPENDED, "True", "JobSuspended", "Job suspended", now)
    elif any(one["type"] == SUSPENDED for one in conditions):
        _put(conditions, SUSPENDED, "False", "JobResumed", "Job resumed", now)
    finished = progress.finished
    if finished is not None:
        interim, final = (
            (SUCCESS_CRITERIA_MET, "Complete")
            if finished.is_success
            else (FAILURE_TARGET, "Failed")
        )
        _put(conditions, interim, "True", finished.reason, finished.message, now)
        if ends:
            _put(conditions, final, "True", finished.reason, finished.message, now)
    return conditions


def _put(
    conditions: list[Json], kind: str, status: str, reason: str, message: str, now: Instant
) -> None:
    if any((one["type"], one["status"]) == (kind, status) for one in conditions):
        return
    stamp = format_timestamp(now)
    entry = {
        "type": kind,
        "status": status,
        "lastProbeTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }
    kept = [one for one in conditions if one["type"] != kind]
    conditions[:] = [*kept, entry]
