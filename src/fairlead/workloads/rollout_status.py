"""What a Deployment's status says: its pods by what they count as, and how its rollout goes.

`kubectl rollout status` reads the numbers and the reason of `Progressing`.

upstream: pkg/controller/deployment/sync.go:calculateStatus, progress.go:syncRolloutStatus,
util/deployment_util.go:DeploymentComplete, DeploymentProgressing, DeploymentTimedOut
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.objects import Deployment
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.core.instant import Instant, seconds
from fairlead.workloads.rolling_update import Bounds

Json = dict[str, Any]

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
NO_DEADLINE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The pods of all ReplicaSets of a Deployment; `asked` is what these want in all."""

    asked: int
    replicas: int
    updated: int
    ready: int
    available: int
    terminating: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a rollout has come to besides its pods.

    `name` is the current ReplicaSet's, "" while there is none; `news` is the reason and message of
    something that happened to it just now; `refusal` is why one cannot be made, or its pods cannot.
    """

    name: str
    collisions: int = 0
    news: tuple[str, str] | None = None
    refusal: str = ""
    is_set_refused: bool = False


def with_news(deployment: Deployment, course: Course, now: Instant) -> Json:
    """The status of `deployment` as it is, and what has just happened to its current ReplicaSet."""
    # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet
    before = dict(deployment.status)
    if course.news is None or deployment.spec.progress_deadline_seconds == NO_DEADLINE:
        return before
    conditions = _Conditions(before.get("conditions", ()), now)
    conditions.put(PROGRESSING, "True", *course.news)
    return {**before, "conditions": conditions.entries}


def status_of(
    deployment: Deployment, before: Json, count: Count, course: Course, now: Instant
) -> Json:
    """The status that `deployment`, whose status is `before`, should have."""
    status: Json = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": count.replicas,
        "updatedReplicas": count.updated,
        "readyReplicas": count.ready,
        "availableReplicas": count.available,
        "unavailableReplicas": max(0, count.asked - count.available),
        "collisionCount": course.collisions,
    }
    status = {key: number for key, number in status.items() if number}
    status["terminatingReplicas"] = count.terminating
    conditions = _Conditions(before.get("conditions", ()), now)
    _judge_availability(conditions, deployment, count)
    if deployment.spec.progress_deadline_seconds == NO_DEADLINE:
        conditions.remove(PROGRESSING)
    else:
        _judge_progress(conditions, deployment, count, course, now)
    if course.refusal:
        conditions.put(REPLICA_FAILURE, "True", "FailedCreate", course.refusal)
    else:
        conditions.remove(REPLICA_FAILURE)
    return {**status, "conditions": conditions.entries} if conditions.entries else status


def is_complete(deployment: Deployment, count: Count) -> bool:
    """Whether the rollout has nothing left to do."""
    return count.updated == count.replicas == count.available == deployment.spec.replicas


def overdue_at(deployment: Deployment) -> Instant | None:
    """When a rollout without progress will be called stuck, None where it cannot be."""
    progress = _find(deployment.status.get("conditions", ()), PROGRESSING)
    spec = deployment.spec
    if progress is None or spec.progress_deadline_seconds == NO_DEADLINE or spec.paused:
        return None
    if progress.get("reason") in (NEW_AVAILABLE, TIMED_OUT):
        return None
    updated = progress.get("lastUpdateTime", "")
    if not updated:
        return None
    # strictly after the deadline; stamps have whole seconds
    return parse_timestamp(updated) + seconds(spec.progress_deadline_seconds) + seconds(1)


class _Conditions:
    """status.conditions of a Deployment, whose entries also say when they were last updated."""

    def __init__(self, entries: Any, now: Instant) -> None:
        self.entries: list[Json] = list(entries)
        self._stamp = format_timestamp(now)

    def find(self, condition_type: str) -> Json | None:
        return _find(self.entries, condition_type)

    def put(
        self, condition_type: str, status: str, reason: str, message: str, *, again: bool = False
    ) -> None:
        """Set a condition; one of the same status and reason stays as it is, unless `again`."""
        # upstream: deployment_util.go:SetDeploymentCondition
        before = self.find(condition_type)
        said = None if before is None else (before.get("status"), before.get("reason"))
        if said == (status, reason) and not again:
            return
        since = self._stamp
        if before is not None and before.get("status") == status:
            since = before.get("lastTransitionTime", since)
        self.remove(condition_type)
        self.entries.append(
            {
                "type": condition_type,
                "status": status,
                "lastUpdateTime": self._stamp,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )

    def remove(self, condition_type: str) -> None:
        self.entries = [one for one in self.entries if one.get("type") != condition_type]


def _find(entries: Any, condition_type: str) -> Json | None:
    return next((one for one in entries if one.get("type") == condition_type), None)


def _judge_availability(conditions: _Conditions, deployment: Deployment, count: Count) -> None:
    bounds = Bounds.of(deployment.spec.strategy, deployment.spec.replicas)
    if count.available >= bounds.least:
        message = "Deployment has minimum availability."
        conditions.put(AVAILABLE, "True", "MinimumReplicasAvailable", message)
    else:
        message = "Deployment does not have minimum availability."
        conditions.put(AVAILABLE, "False", "MinimumReplicasUnavailable", message)


def _judge_progress(
    conditions: _Conditions, deployment: Deployment, count: Count, course: Course, now: Instant
) -> None:
    before = conditions.find(PROGRESSING)
    reason = "" if before is None else before.get("reason", "")
    if deployment.spec.paused:
        if reason != TIMED_OUT:  # upstream: sync.go:checkPausedConditions
            conditions.put(PROGRESSING, "Unknown", PAUSED, "Deployment is paused")
        return
    if reason == PAUSED:
        conditions.put(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed")
    if course.is_set_refused:
        conditions.put(PROGRESSING, "False", "ReplicaSetCreateError", course.refusal)
        return
    if course.news is not None:
        conditions.put(PROGRESSING, "True", *course.news)
    if count.replicas == count.updated and reason == NEW_AVAILABLE and course.news is None:
        return
    # upstream: progress.go:syncRolloutStatus
    subject = (
        f'ReplicaSet "{course.name}"'
        if course.name
        else (f'Deployment "{deployment.metadata.name}"')
    )
    if is_complete(deployment, count):
        message = f"{subject} has successfully progressed."
        conditions.put(PROGRESSING, "True", NEW_AVAILABLE, message)
    elif _has_progressed(deployment.status, count):
        message = f"{subject} is progressing."
        conditions.put(PROGRESSING, "True", "ReplicaSetUpdated", message, again=True)
    elif (due := overdue_at(deployment)) is not None and due <= now:
        message = f"{subject} has timed out progressing."
        conditions.put(PROGRESSING, "False", TIMED_OUT, message)


def _has_progressed(before: Mapping[str, Any], count: Count) -> bool:
    """Whether there are more new pods, fewer old ones, or more that work."""
    updated = before.get("updatedReplicas", 0)
    return bool(
        count.updated > updated
        or count.replicas - count.updated < before.get("replicas", 0) - updated
        or count.ready > before.get("readyReplicas", 0)
        or count.available > before.get("availableReplicas", 0)
    )
