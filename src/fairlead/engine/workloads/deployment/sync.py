"""RolloutSync: what is written of a Deployment at one look at it, in upstream's order.

    a pause noted ─▶ the current ReplicaSet numbered ─▶ sizes changed ─▶ status

Where a Deployment is watched, each of these is seen. So it is gone by what the ReplicaSets say
themselves, as their own controller has written it, and one look takes one step: it is looked again
when that step is seen. What the status tells after a step is how things were before it. Who has
just written the Deployment for another reason (a pause, a revision) leaves the status to the next
look: upstream's would be refused there as a conflict.

upstream: pkg/controller/deployment/deployment_controller.go:syncDeployment, rolling.go,
recreate.go, sync.go, progress.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.api.json import Json
from fairlead.api.objects import ReplicaSet
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.deployment.progress import (
    NOT_CREATED,
    PROGRESSING,
    REPLICA_FAILURE,
    Count,
    Course,
    find,
    has_deadline,
    is_told_complete,
    pause_noted,
    progress_noted,
    rollout_status,
    sized_status,
)
from fairlead.engine.workloads.deployment.revision import REVISION, revised, revision_of
from fairlead.engine.workloads.deployment.rolling_update import (
    RECREATE,
    Part,
    Sizes,
    grown,
    is_scaling,
    recreated,
    rolled,
)
from fairlead.engine.workloads.deployment.rollout import REPLICA_SET, Rollout, is_ending
from fairlead.engine.workloads.identity import happened
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.status_writer import StatusWriter, status_patch


@dataclass(frozen=True, slots=True)
class RolloutSync:
    """Looks at one Deployment after the other."""

    pod_sets: PodSets
    writer: StatusWriter

    def sync(self, rollout: Rollout, now: Instant) -> list[Command]:
        """What to write next; nothing while something written before is under way."""
        if rollout.birth or rollout.writing or self.writer.is_pending(rollout.ref):
            rollout.is_stale = True
            return []
        rollout.find_current()
        pause = [] if is_ending(rollout.deployment) else self._note_pause(rollout, now)
        revising = self._revise(rollout)
        if revising:
            return pause + revising
        written = pause or self._number(rollout, now)
        steps = self._steps(rollout)
        if steps is None or rollout.birth or written:
            return written + (steps or [])
        return steps + self._tell(rollout, now)

    def after_creation(self, rollout: Rollout, made: ReplicaSet, now: Instant) -> list[Command]:
        """The ReplicaSet for the newest template was `made`: the rest of the look that made it."""
        # upstream: sync.go:getNewReplicaSet
        name, size = made.metadata.name, made.spec.replicas
        commands = [scaled(rollout.ref, name, 0, size)] if size else []
        news = ("NewReplicaSetCreated", f'Created new replica set "{name}"')
        status = progress_noted(rollout.deployment, "True", news, now)
        commands += self._write(rollout, status, revision_of(made))
        return commands + (self._steps(rollout) or [])

    def not_created(self, rollout: Rollout, name: str, why: str, now: Instant) -> list[Command]:
        """The ReplicaSet for the newest template, `name`, was refused."""
        note = f'Failed to create new replica set "{name}": {why}'
        status = progress_noted(rollout.deployment, "False", (NOT_CREATED, note), now)
        told = happened(rollout.ref, NOT_CREATED, note, is_warning=True)
        return [*self._write(rollout, status), told]

    def collided(self, rollout: Rollout) -> list[Command]:
        """The name for the newest template is taken: say which one is tried next."""
        status = {**rollout.deployment.status, "collisionCount": rollout.collisions}
        return self._write(rollout, status)

    # --- before any step -----------------------------------------------------------------------

    def _note_pause(self, rollout: Rollout, now: Instant) -> list[Command]:
        return self._write(rollout, pause_noted(rollout.deployment, now))

    def _revise(self, rollout: Rollout) -> list[Command]:
        """Let the current ReplicaSet have the newest number, and what it copies."""
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

    def _number(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Let the Deployment have the number of its current ReplicaSet."""
        current, deployment = rollout.replica_sets.get(rollout.current), rollout.deployment
        if current is None:
            return []
        status = deployment.status
        if has_deadline(deployment) and find(status.get("conditions", ()), PROGRESSING) is None:
            news = ("FoundNewReplicaSet", f'Found new replica set "{current.metadata.name}"')
            status = progress_noted(deployment, "True", news, now)
        return self._write(rollout, status, revision_of(current))

    def _write(self, rollout: Rollout, status: Json, revision: int = 0) -> list[Command]:
        """Write `status`, and with it the number of the revision where it has changed."""
        deployment = rollout.deployment
        before, number = deployment.status, str(revision)
        if not revision or deployment.metadata.annotations.get(REVISION) == number:
            return self.writer.write(rollout.ref, before, status)
        patch: Json = {"metadata": {"annotations": {REVISION: number}}}
        if status != before:
            patch["status"] = status_patch(before, status)
        return [PatchObject(rollout.ref, patch)]

    # --- one step ------------------------------------------------------------------------------

    def _steps(self, rollout: Rollout) -> list[Command] | None:
        """The next step; None where there is one that cannot be made now."""
        deployment = rollout.deployment
        if is_ending(deployment) or not rollout.is_usable:
            return []
        new, old = rollout.told_parts()
        if _is_sized(rollout, new, old):
            commands = self._resize(rollout, [rollout.resized(new, old)])
            if deployment.spec.paused:
                commands += rollout.forgettable(self.pod_sets.sets)
            return commands
        if deployment.spec.strategy.type == RECREATE:
            return self._recreate(rollout, new, old)
        if new is None:
            total = sum(one.replicas for one in old)
            return _created(rollout, grown(0, total, rollout.bounds))
        steps = self._resize(rollout, rolled(new, old, rollout.bounds))
        return steps or self._forget(rollout)

    def _recreate(
        self, rollout: Rollout, new: Part | None, old: list[Part]
    ) -> list[Command] | None:
        # upstream: recreate.go:rolloutRecreate
        replicas = rollout.deployment.spec.replicas
        is_quiet = rollout.is_told_quiet and rollout.is_quiet(self.pod_sets.sets)
        is_over = not any(one.replicas for one in old) and is_quiet
        if is_over and new is None:
            return _created(rollout, replicas)
        steps = self._resize(rollout, [recreated(new, old, replicas, is_quiet=is_quiet)])
        return steps + (self._forget(rollout) if is_over else [])

    def _resize(self, rollout: Rollout, steps: list[Sizes]) -> list[Command]:
        commands: list[Command] = []
        sizes = {key: one.spec.replicas for key, one in rollout.replica_sets.items()}
        for step in steps:
            for key, size in step.items():
                commands.append(rollout.scale(key, size))
                if size != sizes[key]:
                    name = rollout.replica_sets[key].metadata.name
                    commands.append(scaled(rollout.ref, name, sizes[key], size))
                sizes[key] = size
        return commands

    def _forget(self, rollout: Rollout) -> list[Command]:
        if not is_told_complete(rollout.deployment):
            return []
        return rollout.forgettable(self.pod_sets.sets)

    # --- and what is told ----------------------------------------------------------------------

    def _tell(self, rollout: Rollout, now: Instant) -> list[Command]:
        deployment, count = rollout.deployment, _count(rollout)
        new, old = rollout.told_parts()
        if is_ending(deployment) or _is_sized(rollout, new, old):
            status = sized_status(deployment, count, rollout.collisions, now)
        else:
            status = rollout_status(deployment, count, rollout.collisions, _course(rollout), now)
        return self.writer.write(rollout.ref, deployment.status, status)


def scaled(owner: ObjectRef, name: str, before: int, after: int) -> Command:
    """The event that tells of a ReplicaSet's new size."""
    # upstream: pkg/controller/deployment/sync.go:scaleReplicaSet
    word = "up" if after > before else "down"
    note = f"Scaled {word} replica set {name} from {before} to {after}"
    return happened(owner, "ScalingReplicaSet", note)


def _is_sized(rollout: Rollout, new: Part | None, old: list[Part]) -> bool:
    """Whether its size is all that is seen to."""
    parts = old if new is None else [*old, new]
    spec = rollout.deployment.spec
    return spec.paused or is_scaling(parts, spec.replicas)


def _created(rollout: Rollout, size: int) -> list[Command] | None:
    return None if rollout.retry_at is not None else [rollout.create(size)]


def _count(rollout: Rollout) -> Count:
    """As the ReplicaSets say themselves."""
    sets = rollout.replica_sets
    statuses = [one.status for one in sets.values()]
    current = sets.get(rollout.current)
    return Count(
        asked=sum(one.spec.replicas for one in sets.values()),
        replicas=_sum(statuses, "replicas"),
        updated=0 if current is None else current.status.get("replicas", 0),
        ready=_sum(statuses, "readyReplicas"),
        available=_sum(statuses, "availableReplicas"),
        terminating=_sum(statuses, "terminatingReplicas"),
    )


def _course(rollout: Rollout) -> Course:
    # upstream: progress.go:getReplicaFailures prefers the new one's
    current = rollout.replica_sets.get(rollout.current)
    ordered = ([] if current is None else [current]) + list(rollout.replica_sets.values())
    failures = (find(one.status.get("conditions", ()), REPLICA_FAILURE) for one in ordered)
    failure: Mapping[str, Any] | None = next((one for one in failures if one), None)
    return Course(name="" if current is None else current.metadata.name, failure=failure)


def _sum(statuses: list[Json], name: str) -> int:
    return sum(one.get(name, 0) for one in statuses)
