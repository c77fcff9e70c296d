"""RolloutSync: syncs Deployments; each sync takes at most one step of a rollout.

The stages of a sync are in upstream's order:

    1 wait        for writes in flight; a change meanwhile leads to another sync
    2 find        the ReplicaSet with the Deployment's template
    3 record      a pause, and the revision of that ReplicaSet (for API clients)
    4 step        scale ReplicaSets, or create the new ReplicaSet
    5 write       the Deployment's status, computed without the step's effects (for API clients)

If stage 3 writes a pause or a revision to the Deployment, stage 5 is left to the next sync. In
upstream, the status write of such a sync fails with a conflict.

upstream: pkg/controller/deployment/deployment_controller.go:syncDeployment, rolling.go,
recreate.go, sync.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.objects import ReplicaSet
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.deployment.output import RolloutOutput
from fairlead.engine.workloads.deployment.progress import NOT_CREATED
from fairlead.engine.workloads.deployment.replica_set_view import ReplicaSetView
from fairlead.engine.workloads.deployment.rolling_update import (
    RECREATE,
    ReplicaSetState,
    Sizes,
    grown,
    is_scaling,
    recreated,
    rolled,
)
from fairlead.engine.workloads.deployment.rollout import Rollout, is_ending
from fairlead.engine.workloads.event_sink import EventSink
from fairlead.engine.workloads.identity import owner_event

_TEMPLATE_MISMATCH: Final = "TemplateMismatch"  # an event reason of Fairlead; upstream has none
_TEMPLATE_MISMATCH_NOTE: Final = (
    "The new ReplicaSet {name} does not have the template of this Deployment, so it is not used. "
    "If a webhook or an admission policy changes each new ReplicaSet, this Deployment creates "
    "ReplicaSets without end"
)


class RolloutSync(Struct, frozen=True):
    """Syncs Deployments, one at a time.

    `view` reads the ReplicaSets' pod counts, `output` writes data for API clients, and `events`
    records events.
    """

    view: ReplicaSetView
    output: RolloutOutput
    events: EventSink

    def sync(self, rollout: Rollout, now: Instant, *, is_loaded: bool = False) -> list[Command]:
        """Return the next writes of the Deployment, or [] while a previous write is in flight.

        `is_loaded` is set if the objects come from a snapshot.
        """
        if rollout.creating or rollout.writing or self.output.is_pending(rollout):
            rollout.is_stale = True
            return []
        self.view.find_current(rollout, is_loaded=is_loaded)
        pause = self.output.note_pause(rollout, now)
        revising = self.output.write_replica_set_revision(rollout)
        if revising:
            return pause + revising
        written = pause or self.output.write_deployment_revision(rollout, now)
        new, old = self.view.states(rollout, now)
        steps = self._steps(rollout, new, old)
        if steps is None or rollout.creating or written:
            return written + (steps or [])
        return steps + self.output.write(rollout, now, is_scaling=_is_scaled(rollout, new, old))

    def created(self, rollout: Rollout, replica_set: ReplicaSet, now: Instant) -> list[Command]:
        """Continue the sync that created the ReplicaSet `replica_set`."""
        # upstream: sync.go:getNewReplicaSet
        self.view.find_current(rollout, is_loaded=False)
        name, size = replica_set.metadata.name, replica_set.spec.replicas
        commands = self.events.record(scaled(rollout.ref, name, 0, size)) if size else []
        commands += self.output.created(rollout, replica_set, now)
        new, old = self.view.states(rollout, now)
        return commands + (self._steps(rollout, new, old) or [])

    def not_created(self, rollout: Rollout, name: str, why: str, now: Instant) -> list[Command]:
        """Report that the new ReplicaSet `name` was not created; `why` is the error message."""
        note = f'Failed to create new replica set "{name}": {why}'
        event = owner_event(rollout.ref, NOT_CREATED, note, is_warning=True)
        return [*self.output.not_created(rollout, note, now), event]

    def collided(self, rollout: Rollout, name: str) -> list[Command]:
        """Report that `name`, the name of the new ReplicaSet, is taken.

        If the ReplicaSet with this name belongs to the Deployment, something has changed the
        template of the ReplicaSet. An event reports this change once; upstream has no such event.
        """
        is_own = any(one.metadata.name == name for one in rollout.replica_sets.values())
        commands: list[Command] = []
        if is_own and not rollout.is_mismatch_reported:
            rollout.is_mismatch_reported = True
            note = _TEMPLATE_MISMATCH_NOTE.format(name=name)
            event = owner_event(rollout.ref, _TEMPLATE_MISMATCH, note, is_warning=True)
            commands = self.events.record(event)
        return commands + self.output.collided(rollout)

    # --- steps ---------------------------------------------------------------------------------

    def _steps(
        self, rollout: Rollout, new: ReplicaSetState | None, old: list[ReplicaSetState]
    ) -> list[Command] | None:
        """Return the commands of the next step.

        Returns None if the step creates a ReplicaSet, but must wait for the backoff of a failed
        write.
        """
        deployment = rollout.deployment
        if is_ending(deployment) or not rollout.is_usable:
            return []
        if _is_scaled(rollout, new, old):
            commands = self._resize(rollout, [rollout.resized(new, old)])
            if deployment.spec.paused:
                commands += self.output.prune(rollout, if_complete=False)
            return commands
        if deployment.spec.strategy.type == RECREATE:
            return self._recreate(rollout, new, old)
        if new is None:
            total = sum(one.replicas for one in old)
            return _created(rollout, grown(0, total, rollout.bounds))
        steps = self._resize(rollout, rolled(new, old, rollout.bounds))
        return steps or self.output.prune(rollout, if_complete=True)

    def _recreate(
        self, rollout: Rollout, new: ReplicaSetState | None, old: list[ReplicaSetState]
    ) -> list[Command] | None:
        # upstream: recreate.go:rolloutRecreate
        replicas = rollout.deployment.spec.replicas
        is_quiet = not self.view.has_old_pods(rollout)
        is_over = not any(one.replicas for one in old) and is_quiet
        if is_over and new is None:
            return _created(rollout, replicas)
        steps = self._resize(rollout, [recreated(new, old, replicas, is_quiet=is_quiet)])
        return steps + (self.output.prune(rollout, if_complete=True) if is_over else [])

    def _resize(self, rollout: Rollout, steps: list[Sizes]) -> list[Command]:
        """Apply `steps` in order; return patches of ReplicaSets, and events about new sizes."""
        commands: list[Command] = []
        sizes = {key: one.spec.replicas for key, one in rollout.replica_sets.items()}
        for step in steps:
            for key, size in step.items():
                if key in rollout.implied:
                    rollout.sizes[key] = size
                    continue
                commands.append(rollout.scale(key, size))
                if size != sizes[key]:
                    name = rollout.replica_sets[key].metadata.name
                    event = scaled(rollout.ref, name, sizes[key], size)
                    commands += self.events.record(event)
                sizes[key] = size
        return commands


def scaled(owner: ObjectRef, name: str, before: int, after: int) -> RecordEvent:
    """Return the event about a ReplicaSet that was scaled from `before` to `after` replicas."""
    # upstream: pkg/controller/deployment/sync.go:scaleReplicaSet
    word = "up" if after > before else "down"
    note = f"Scaled {word} replica set {name} from {before} to {after}"
    return owner_event(owner, "ScalingReplicaSet", note)


def _is_scaled(rollout: Rollout, new: ReplicaSetState | None, old: list[ReplicaSetState]) -> bool:
    """Return whether the Deployment is paused, or has a new number of replicas (`is_scaling`).

    In both cases, this sync does not continue the rollout.
    """
    states = old if new is None else [*old, new]
    spec = rollout.deployment.spec
    return spec.paused or is_scaling(states, spec.replicas)


def _created(rollout: Rollout, size: int) -> list[Command] | None:
    return None if rollout.retry_at is not None else [rollout.create(size)]
