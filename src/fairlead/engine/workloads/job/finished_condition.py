"""Decides whether a Job is finished, and whether it has succeeded.

The condition in the Job's status is checked first, then failures (backoff limit, deadline, failed
indexes), then success (success policy, or all completions). Failed indexes make a Job fail when
there are more than maxFailedIndexes, or when all other indexes have succeeded.

upstream: pkg/controller/job/job_controller.go:syncJob, success_policy.go:matchSuccessPolicy
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from fairlead.api.objects import Job
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.job.index_set import parse_index_set
from fairlead.engine.workloads.job.progress import (
    FinishedCondition,
    JobProgress,
    are_restarts_past_limit,
    is_indexed,
)

REACHED: Final = FinishedCondition(
    "CompletionsReached", "Reached expected number of succeeded pods", is_success=True
)
EXCEEDED: Final = FinishedCondition(
    "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
TOO_LATE: Final = FinishedCondition(
    "DeadlineExceeded", "Job was active longer than specified deadline"
)
TOO_MANY_INDEXES: Final = FinishedCondition(
    "MaxFailedIndexesExceeded",
    "Job has exceeded the specified maximal number of failed indexes",
)
FAILED_INDEXES: Final = FinishedCondition("FailedIndexes", "Job has failed indexes")
POLICY_MET: Final = "SuccessPolicy"
FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"


def finished_condition(
    job: Job, progress: JobProgress, *, restarts: int, is_idle: bool, now: Instant
) -> FinishedCondition | None:
    """Return the condition with which `job` is finished, or None if it is not finished.

    `restarts` is the number of container restarts of unfinished pods if restartPolicy is OnFailure,
    otherwise 0. `is_idle` is set if no pod is active or being created.
    """
    return (
        _reported(job)
        or _failure(job, progress, restarts, now)
        or _success(job, progress, is_idle=is_idle)
    )


def deadline_of(job: Job, progress: JobProgress) -> Instant | None:
    """Return the time at which the Job exceeds activeDeadlineSeconds.

    Returns None if the Job has no activeDeadlineSeconds or has not started.
    """
    limit, started = job.spec.active_deadline_seconds, progress.started_at
    return None if limit is None or started is None else started + seconds(limit)


def _reported(job: Job) -> FinishedCondition | None:
    """Return the condition SuccessCriteriaMet or FailureTarget in the Job's status, or None.

    The status may have one of these interim conditions after a restart of the controller.
    """
    for one in job.status.conditions:
        if one.type in (FAILURE_TARGET, SUCCESS_CRITERIA_MET) and one.status == "True":
            return FinishedCondition(
                one.reason, one.message, is_success=one.type == SUCCESS_CRITERIA_MET
            )
    return None


def _failure(
    job: Job, progress: JobProgress, restarts: int, now: Instant
) -> FinishedCondition | None:
    if progress.is_past_limit(job) or are_restarts_past_limit(job, restarts):
        return EXCEEDED
    deadline = deadline_of(job, progress)
    if deadline is not None and deadline <= now and not job.spec.suspend:
        return TOO_LATE
    limit = job.spec.max_failed_indexes
    if limit is not None and len(progress.failed_indexes) > limit:
        return TOO_MANY_INDEXES
    given_up, completions = len(progress.failed_indexes), job.spec.completions
    is_finished = completions is not None and progress.succeeded + given_up >= completions
    return FAILED_INDEXES if given_up and is_finished else None


def _success(job: Job, progress: JobProgress, *, is_idle: bool) -> FinishedCondition | None:
    completions = job.spec.completions
    if is_indexed(job) and (met := _met_policy(job, progress)) is not None:
        return met
    if not is_idle:
        return None
    if completions is None:
        return REACHED if progress.succeeded else None
    return REACHED if progress.succeeded >= completions else None


def can_only_fail(job: Job, progress: JobProgress) -> bool:
    """Return whether failed indexes make `job` fail as soon as its other indexes have ended.

    Returns False if the other indexes can still meet the success policy.
    """
    failed = progress.failed_indexes
    return bool(failed) and not any(
        maximum - given_up >= needed for maximum, given_up, needed in _policy(job, failed)
    )


def _policy(job: Job, indexes: Collection[int]) -> Iterator[tuple[int, int, int]]:
    """Yield three counts of indexes for each rule of the success policy.

    These are the number of all indexes of the rule, the number of its indexes that are in
    `indexes`, and the number of indexes that must succeed.
    """
    policy, completions = job.spec.success_policy, job.spec.completions or 0
    for rule in policy.rules if policy is not None else ():
        maximum, found = completions, len(indexes)
        if rule.succeeded_indexes is not None:
            wanted = parse_index_set(rule.succeeded_indexes, completions)
            maximum, found = len(wanted), sum(index in wanted for index in indexes)
        yield maximum, found, maximum if rule.succeeded_count is None else rule.succeeded_count


def _met_policy(job: Job, progress: JobProgress) -> FinishedCondition | None:
    for index, (_, done, needed) in enumerate(_policy(job, progress.completed)):
        if done >= needed:
            return FinishedCondition(POLICY_MET, f"Matched rules at index {index}", is_success=True)
    return None
