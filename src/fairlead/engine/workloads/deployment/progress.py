"""Computes the status of a Deployment: pod counts and the conditions Progressing and Available.

`kubectl rollout status` reads the counts and the reason of `Progressing`. As in upstream, the
content of a status write depends on its cause:

    a pause begins or ends             `pause_status`, before any other write
    a ReplicaSet is created or found   `progress_status`, in the same write as the new revision
    a ReplicaSet cannot be created     `progress_status`
    while scaled or paused             `sized_status`, which keeps the Progressing condition
    rollout in progress                `rollout_status`

upstream: pkg/controller/deployment/sync.go:calculateStatus, progress.go:syncRolloutStatus,
util/deployment_util.go:DeploymentComplete, DeploymentProgressing, DeploymentTimedOut
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import Deployment
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.rolling_update import Bounds

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
NOT_CREATED: Final = "ReplicaSetCreateError"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
NO_DEADLINE: Final = 2**31 - 1


class PodCounts(Struct, frozen=True, kw_only=True):
    """Numbers of pods of a Deployment's ReplicaSets.

    `requested` is the sum of the ReplicaSets' spec.replicas. `updated` is the status.replicas of
    the current ReplicaSet. The other fields are sums over the status of all ReplicaSets.
    """

    requested: int
    replicas: int
    updated: int
    ready: int
    available: int
    terminating: int


class ProgressInput(Struct, frozen=True, kw_only=True):
    """Inputs of the Progressing condition other than pod counts.

    `name` is the name of the current ReplicaSet, or "". `failure` is the ReplicaFailure condition
    of a ReplicaSet whose pods cannot be created, or None.
    """

    name: str = ""
    failure: Mapping[str, Any] | None = None


def pause_status(deployment: Deployment, now: Instant) -> Mapping[str, Any]:
    """Return the status with a new Progressing condition if the Deployment was paused or resumed.

    Otherwise return the status unchanged.
    """
    # upstream: sync.go:checkPausedConditions
    before = find(deployment.status.get("conditions", ()), PROGRESSING)
    reason = "" if before is None else before.get("reason", "")
    is_paused = deployment.spec.paused
    if not has_deadline(deployment) or reason == TIMED_OUT or is_paused == (reason == PAUSED):
        return deployment.status
    cause = (PAUSED, "Deployment is paused")
    if not is_paused:
        cause = ("DeploymentResumed", "Deployment is resumed")
    return progress_status(deployment, "Unknown", cause, now)


def progress_status(
    deployment: Deployment, status: str, cause: tuple[str, str], now: Instant
) -> Mapping[str, Any]:
    """Return the Deployment's status with a changed Progressing condition.

    The condition gets `status` ("True", "False" or "Unknown") and `cause`, which is (reason,
    message). If the Deployment has no progress deadline, the Deployment's status is returned
    unchanged.
    """
    if not has_deadline(deployment):
        return deployment.status
    conditions = _Conditions(deployment.status.get("conditions", ()), now)
    conditions.put(PROGRESSING, status, *cause)
    return {**deployment.status, "conditions": conditions.entries}


def sized_status(deployment: Deployment, count: PodCounts, collisions: int, now: Instant) -> Json:
    """Return the status with current pod counts and availability; keep the Progressing condition.

    `collisions` is the number of name collisions of ReplicaSets so far.
    """
    # upstream: sync.go:syncDeploymentStatus
    conditions = _Conditions(deployment.status.get("conditions", ()), now)
    _judge_availability(conditions, deployment, count)
    return {**_numbers(deployment, count, collisions), "conditions": conditions.entries}


def rollout_status(
    deployment: Deployment, count: PodCounts, collisions: int, inputs: ProgressInput, now: Instant
) -> Json:
    """Return the current status of a Deployment.

    The Deployment must not be paused, scaling or terminating.
    """
    conditions = _Conditions(deployment.status.get("conditions", ()), now)
    _judge_availability(conditions, deployment, count)
    if not has_deadline(deployment):
        conditions.remove(PROGRESSING)
    else:
        _judge_progress(conditions, deployment, count, inputs, now)
    if inputs.failure is not None:
        conditions.adopt(inputs.failure)
    else:
        conditions.remove(REPLICA_FAILURE)
    return {**_numbers(deployment, count, collisions), "conditions": conditions.entries}


def is_complete(deployment: Deployment, count: PodCounts) -> bool:
    """Return whether all replicas are updated and available, and no other pods exist."""
    return count.updated == count.replicas == count.available == deployment.spec.replicas


def is_reported_complete(deployment: Deployment) -> bool:
    """Return whether the status reports a complete rollout of the newest generation."""
    status, wanted = deployment.status, deployment.spec.replicas
    names = ("updatedReplicas", "replicas", "availableReplicas")
    is_observed = status.get("observedGeneration", 0) >= deployment.metadata.generation
    return is_observed and all(status.get(name, 0) == wanted for name in names)


def has_deadline(deployment: Deployment) -> bool:
    """Return whether the Deployment has a progress deadline."""
    return deployment.spec.progress_deadline_seconds != NO_DEADLINE


def overdue_at(deployment: Deployment) -> Instant | None:
    """Return the time at which a rollout without progress exceeds its deadline.

    Returns None if the Deployment has no deadline or no Progressing condition. Also returns None if
    the Deployment is complete or paused, or has already exceeded the deadline.
    """
    progress = find(deployment.status.get("conditions", ()), PROGRESSING)
    if progress is None or not has_deadline(deployment) or deployment.spec.paused:
        return None
    if progress.get("reason") in (NEW_AVAILABLE, TIMED_OUT):
        return None
    updated = progress.get("lastUpdateTime", "")
    if not updated:
        return None
    # strictly after the deadline; timestamps have whole seconds
    late = seconds(deployment.spec.progress_deadline_seconds)
    return parse_timestamp(updated) + late + seconds(1)


def find(entries: Any, condition_type: str) -> Json | None:
    """Return the condition of type `condition_type` in `entries`, or None if it is missing."""
    return next((one for one in entries if one.get("type") == condition_type), None)


class _Conditions:
    """The conditions in the status of a Deployment, with their update times."""

    def __init__(self, entries: Any, now: Instant) -> None:
        self.entries: list[Json] = list(entries)
        self._stamp = format_timestamp(now)

    def find(self, condition_type: str) -> Json | None:
        return find(self.entries, condition_type)

    def put(
        self, condition_type: str, status: str, reason: str, message: str, *, again: bool = False
    ) -> None:
        """Set the condition of type `condition_type`.

        By default, a condition that already has this status and reason stays unchanged. If `again`
        is set, even such a condition is written again.
        """
        # upstream: deployment_util.go:SetDeploymentCondition
        before = self.find(condition_type)
        previous = None if before is None else (before.get("status"), before.get("reason"))
        if previous == (status, reason) and not again:
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

    def adopt(self, row: Mapping[str, Any]) -> None:
        """Copy the ReplicaSet's condition `row` to `entries`, if its status or reason is new."""
        # upstream: deployment_util.go:ReplicaSetToDeploymentCondition
        before = self.find(row["type"])
        reported = (row.get("status"), row.get("reason"))
        if before is None or (before.get("status"), before.get("reason")) != reported:
            self.remove(row["type"])
            since = row.get("lastTransitionTime")
            self.entries.append({**row, "lastUpdateTime": since} if since else dict(row))

    def remove(self, condition_type: str) -> None:
        self.entries = [one for one in self.entries if one.get("type") != condition_type]


def _numbers(deployment: Deployment, count: PodCounts, collisions: int) -> Json:
    # upstream: sync.go:calculateStatus
    numbers = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": count.replicas,
        "updatedReplicas": count.updated,
        "readyReplicas": count.ready,
        "availableReplicas": count.available,
        "unavailableReplicas": max(0, count.requested - count.available),
        "collisionCount": collisions,
    }
    reported = {key: number for key, number in numbers.items() if number}
    return {**reported, "terminatingReplicas": count.terminating}


def _judge_availability(conditions: _Conditions, deployment: Deployment, count: PodCounts) -> None:
    bounds = Bounds.of(deployment.spec.strategy, deployment.spec.replicas)
    if count.available >= bounds.min_available:
        message = "Deployment has minimum availability."
        conditions.put(AVAILABLE, "True", "MinimumReplicasAvailable", message)
    else:
        message = "Deployment does not have minimum availability."
        conditions.put(AVAILABLE, "False", "MinimumReplicasUnavailable", message)


def _judge_progress(
    conditions: _Conditions,
    deployment: Deployment,
    count: PodCounts,
    inputs: ProgressInput,
    now: Instant,
) -> None:
    # upstream: progress.go:syncRolloutStatus
    before = conditions.find(PROGRESSING)
    reason = "" if before is None else before.get("reason", "")
    if count.replicas == count.updated and reason == NEW_AVAILABLE:
        return
    subject = f'Deployment "{deployment.metadata.name}"'
    if inputs.name:
        subject = f'ReplicaSet "{inputs.name}"'
    if is_complete(deployment, count):
        message = f"{subject} has successfully progressed."
        conditions.put(PROGRESSING, "True", NEW_AVAILABLE, message)
    elif _has_progressed(deployment.status, count):
        message = f"{subject} is progressing."
        conditions.put(PROGRESSING, "True", "ReplicaSetUpdated", message, again=True)
    elif (due := overdue_at(deployment)) is not None and due <= now:
        message = f"{subject} has timed out progressing."
        conditions.put(PROGRESSING, "False", TIMED_OUT, message)


def _has_progressed(before: Mapping[str, Any], count: PodCounts) -> bool:
    """Return whether the rollout has progressed since the status `before` was written."""
    updated = before.get("updatedReplicas", 0)
    return bool(
        count.updated > updated
        or count.replicas - count.updated < before.get("replicas", 0) - updated
        or count.ready > before.get("readyReplicas", 0)
        or count.available > before.get("availableReplicas", 0)
    )
