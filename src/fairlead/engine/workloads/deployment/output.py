"""RolloutOutput: the parts of Deployments and ReplicaSets that only API clients read.

These parts are the Deployment's status with its conditions, and the revision numbers and revision
history of its ReplicaSets. Because they do not affect the steps of a rollout, a simulation uses
NoRolloutOutput, which writes none of them.

upstream: pkg/controller/deployment/progress.go, sync.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.objects import ReplicaSet
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.deployment.progress import (
    NOT_CREATED,
    PROGRESSING,
    REPLICA_FAILURE,
    PodCounts,
    ProgressInput,
    find,
    has_deadline,
    is_reported_complete,
    overdue_at,
    pause_status,
    progress_status,
    rollout_status,
    sized_status,
)
from fairlead.engine.workloads.deployment.revision import REVISION, revised, revision_of
from fairlead.engine.workloads.deployment.rollout import REPLICA_SET, Rollout, is_ending
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.status_writer import StatusWriter, status_patch


class RolloutOutput(Protocol):
    """Builds the writes of data that only API clients read; one method per stage of a rollout."""

    def is_pending(self, rollout: Rollout) -> bool:
        """Return whether a status write is in flight; the sync must then wait for its outcome."""
        ...

    def note_pause(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Write the Progressing condition if the Deployment was paused or resumed."""
        ...

    def write_replica_set_revision(self, rollout: Rollout) -> list[Command]:
        """Patch the current ReplicaSet with its revision and the Deployment's annotations."""
        ...

    def write_deployment_revision(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Write the current ReplicaSet's revision to the Deployment."""
        ...

    def write(self, rollout: Rollout, now: Instant, *, is_scaling: bool) -> list[Command]:
        """Write the Deployment's status after a sync.

        If `is_scaling` is set, the sync only changed sizes, and the Progressing condition is kept.
        """
        ...

    def created(self, rollout: Rollout, replica_set: ReplicaSet, now: Instant) -> list[Command]:
        """Return the commands that record the creation of the ReplicaSet `replica_set`."""
        ...

    def not_created(self, rollout: Rollout, note: str, now: Instant) -> list[Command]:
        """Write that the new ReplicaSet could not be created; `note` is the error message."""
        ...

    def collided(self, rollout: Rollout) -> list[Command]:
        """Write the new collision count, from which the name of the next ReplicaSet is computed."""
        ...

    def prune(self, rollout: Rollout, *, if_complete: bool) -> list[Command]:
        """Delete empty old ReplicaSets that exceed revisionHistoryLimit.

        If `if_complete` is set, delete them only if the status reports that the rollout is
        complete.
        """
        ...

    def overdue_at(self, rollout: Rollout) -> Instant | None:
        """Return the time at which the rollout exceeds its progress deadline, or None."""
        ...


class RolloutWriter(Struct, frozen=True):
    """Writes status, revisions and history of Deployments, as upstream does."""

    pod_sets: PodSets
    writer: StatusWriter

    def is_pending(self, rollout: Rollout) -> bool:
        """Return whether a status write of the Deployment is in flight."""
        return self.writer.is_pending(rollout.ref)

    def note_pause(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Write the Progressing condition of a Deployment that was paused or resumed."""
        if is_ending(rollout.deployment):
            return []
        return self._write(rollout, pause_status(rollout.deployment, now))

    def write_replica_set_revision(self, rollout: Rollout) -> list[Command]:
        """Patch the revision, annotations and minReadySeconds of the current ReplicaSet."""
        current = rollout.replica_sets.get(rollout.current)
        if current is None:
            return []
        deployment = rollout.deployment
        others = [one for key, one in rollout.replica_sets.items() if key != rollout.current]
        patch: Json = {}
        changes = revised(current, others, deployment.metadata.annotations)
        if changes:
            patch["metadata"] = {"annotations": dict(changes)}
        min_ready_s = deployment.spec.min_ready_seconds
        if current.spec.min_ready_seconds != min_ready_s:
            patch["spec"] = {"minReadySeconds": min_ready_s}
        if not patch:
            return []
        rollout.writing[rollout.current] = None
        meta = current.metadata
        ref = ObjectRef(REPLICA_SET, meta.namespace, meta.name, meta.uid)
        return [PatchObject(ref, patch)]

    def write_deployment_revision(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Write the Deployment's revision; add the Progressing condition if it is missing."""
        current, deployment = rollout.replica_sets.get(rollout.current), rollout.deployment
        if current is None:
            return []
        status: Mapping[str, Any] = deployment.status
        if has_deadline(deployment) and find(status.get("conditions", ()), PROGRESSING) is None:
            cause = ("FoundNewReplicaSet", f'Found new replica set "{current.metadata.name}"')
            status = progress_status(deployment, "True", cause, now)
        return self._write(rollout, status, revision_of(current))

    def write(self, rollout: Rollout, now: Instant, *, is_scaling: bool) -> list[Command]:
        """Write counts and conditions; keep the Progressing condition if `is_scaling` is set.

        The condition is also kept while the Deployment is being deleted.
        """
        deployment, count = rollout.deployment, _count(rollout)
        if is_ending(deployment) or is_scaling:
            status = sized_status(deployment, count, rollout.collisions, now)
        else:
            status = rollout_status(
                deployment, count, rollout.collisions, _progress_input(rollout), now
            )
        return self.writer.write(rollout.ref, deployment.status, status)

    def created(self, rollout: Rollout, replica_set: ReplicaSet, now: Instant) -> list[Command]:
        """Write the Progressing condition and the Deployment's new revision."""
        cause = ("NewReplicaSetCreated", f'Created new replica set "{replica_set.metadata.name}"')
        status = progress_status(rollout.deployment, "True", cause, now)
        return self._write(rollout, status, revision_of(replica_set))

    def not_created(self, rollout: Rollout, note: str, now: Instant) -> list[Command]:
        """Set the Progressing condition to False, with `note` as its message."""
        status = progress_status(rollout.deployment, "False", (NOT_CREATED, note), now)
        return self._write(rollout, status)

    def collided(self, rollout: Rollout) -> list[Command]:
        """Write `rollout.collisions` as the status's collision count."""
        status = {**rollout.deployment.status, "collisionCount": rollout.collisions}
        return self._write(rollout, status)

    def prune(self, rollout: Rollout, *, if_complete: bool) -> list[Command]:
        """Delete empty old ReplicaSets that exceed revisionHistoryLimit."""
        if if_complete and not is_reported_complete(rollout.deployment):
            return []
        return rollout.cleanup_commands(self.pod_sets.sets)

    def overdue_at(self, rollout: Rollout) -> Instant | None:
        """Return the time at which the rollout exceeds its progress deadline, or None."""
        return overdue_at(rollout.deployment)

    def _write(
        self, rollout: Rollout, status: Mapping[str, Any], revision: int = 0
    ) -> list[Command]:
        """Write `status`; also write `revision` if it is not 0 and has changed."""
        deployment = rollout.deployment
        before, wanted = deployment.status, str(revision)
        if not revision or deployment.metadata.annotations.get(REVISION) == wanted:
            return self.writer.write(rollout.ref, before, status)
        patch: Json = {"metadata": {"annotations": {REVISION: wanted}}}
        if status != before:
            patch["status"] = status_patch(before, status)
        return [PatchObject(rollout.ref, patch)]


class NoRolloutOutput:
    """Writes nothing: no API client would read the data."""

    def is_pending(self, rollout: Rollout) -> bool:
        """Return False, because no status write is ever in flight."""
        return False

    def note_pause(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Return no commands."""
        return []

    def write_replica_set_revision(self, rollout: Rollout) -> list[Command]:
        """Return no commands."""
        return []

    def write_deployment_revision(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Return no commands."""
        return []

    def write(self, rollout: Rollout, now: Instant, *, is_scaling: bool) -> list[Command]:
        """Return no commands."""
        return []

    def created(self, rollout: Rollout, replica_set: ReplicaSet, now: Instant) -> list[Command]:
        """Return no commands."""
        return []

    def not_created(self, rollout: Rollout, note: str, now: Instant) -> list[Command]:
        """Return no commands."""
        return []

    def collided(self, rollout: Rollout) -> list[Command]:
        """Return no commands."""
        return []

    def prune(self, rollout: Rollout, *, if_complete: bool) -> list[Command]:
        """Return no commands, because empty ReplicaSets do no harm in a simulation."""
        return []

    def overdue_at(self, rollout: Rollout) -> Instant | None:
        """Return None, because progress deadlines are not tracked."""
        return None


def _count(rollout: Rollout) -> PodCounts:
    """Return the pod counts of the rollout, from the spec and status of its ReplicaSets."""
    sets = rollout.replica_sets
    statuses = [one.status for one in sets.values()]
    current = sets.get(rollout.current)
    return PodCounts(
        requested=sum(one.spec.replicas for one in sets.values()),
        replicas=_sum(statuses, "replicas"),
        updated=0 if current is None else current.status.get("replicas", 0),
        ready=_sum(statuses, "readyReplicas"),
        available=_sum(statuses, "availableReplicas"),
        terminating=_sum(statuses, "terminatingReplicas"),
    )


def _progress_input(rollout: Rollout) -> ProgressInput:
    # upstream: progress.go:getReplicaFailures prefers the condition of the new ReplicaSet
    current = rollout.replica_sets.get(rollout.current)
    ordered = ([] if current is None else [current]) + list(rollout.replica_sets.values())
    failures = (find(one.status.get("conditions", ()), REPLICA_FAILURE) for one in ordered)
    failure: Mapping[str, Any] | None = next((one for one in failures if one), None)
    return ProgressInput(name="" if current is None else current.metadata.name, failure=failure)


def _sum(statuses: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(one.get(name, 0) for one in statuses)
