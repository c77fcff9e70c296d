"""Rollouts: all Deployments, one step at a time, and when they ask again what was refused.

    something changed ──▶ settle: a ReplicaSet to make, sizes to change
            ▲                         │
            └── their pods changed ◀──┘      until old and new have changed places

While a rollout is under way its ReplicaSets' pods are watched, because each one that becomes
available, or stops being so, allows or forbids the next step. Where somebody watches the rollout
itself, `rollout_sync` makes its steps, by what the ReplicaSets say, and tells of them.

upstream: pkg/controller/deployment/deployment_controller.go:syncDeployment
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Final

from fairlead.api.objects import Deployment, ReplicaSet
from fairlead.api.pods.facts import controller_of
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.deployment.progress import overdue_at
from fairlead.engine.workloads.deployment.rolling_update import (
    RECREATE,
    Part,
    grown,
    is_scaling,
    recreated,
    rolled,
)
from fairlead.engine.workloads.deployment.rollout import REPLICA_SET, Rollout, implied_by, is_ending
from fairlead.engine.workloads.deployment.sync import RolloutSync
from fairlead.engine.workloads.identity import failed_create, owner_key
from fairlead.engine.workloads.pod_control.burst_limiter import REST, Restraint
from fairlead.engine.workloads.pod_control.pod_sets import PodSets, is_stand_in
from fairlead.engine.workloads.pod_control.unknown_owner import Buried
from fairlead.engine.workloads.status_writer import StatusWriter

DEPLOYMENT: Final = "Deployment"


@dataclass(slots=True)
class Rollouts:
    """All Deployments; implied ReplicaSets are ruled through `pod_sets`."""

    config: WorkloadsConfig
    pod_sets: PodSets
    writer: InitVar[StatusWriter]
    changed: dict[str, None] = field(default_factory=dict)  # keys of rollouts to look at again
    _rollouts: dict[str, Rollout] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)  # key of a ReplicaSet -> of its rollout
    _births: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, name) -> key
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)
    _sync: RolloutSync = field(init=False)
    _restraint: Restraint = field(default_factory=Restraint)

    def __post_init__(self, writer: StatusWriter) -> None:
        """Share the way to the status of objects."""
        self._sync = RolloutSync(self.pod_sets, writer)

    def learn(self, deployment: Deployment) -> Rollout:
        """Note the newest version of `deployment` without deciding anything."""
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.get(key)
        if rollout is None:
            rollout = self._rollouts[key] = Rollout(key, deployment)
            rollout.collisions = deployment.status.get("collisionCount", 0)
        rollout.deployment = deployment
        return rollout

    def learn_replica_set(self, key: str, replica_set: ReplicaSet) -> Rollout | None:
        """Note the newest version of `replica_set`; whose it is, if it is a known Deployment's."""
        owner = controller_of(replica_set.metadata)
        if owner is None or owner.kind != DEPLOYMENT:
            return None
        namespace = replica_set.metadata.namespace
        rollout = self._rollouts.get(owner_key(DEPLOYMENT, namespace, owner.name, owner.uid))
        if rollout is not None:
            rollout.see(key, replica_set)
            self._homes[key] = rollout.key
            self._unite(rollout, key)
        return rollout

    def load(self, now: Instant) -> list[Command]:
        """Decide about everything learnt from a snapshot."""
        by_name = {
            (one.deployment.metadata.namespace, one.deployment.metadata.name): one
            for one in self._rollouts.values()
        }
        for key, pods in self.pod_sets.sets.items():
            if pods.owner.kind == REPLICA_SET and is_stand_in(self.pod_sets.rules[key]):
                rollout = by_name.get((pods.namespace, pods.owner.name.rpartition("-")[0]))
                if rollout is not None and implied_by(rollout.deployment, pods):
                    self._imply(rollout, key)
        commands: list[Command] = []
        for rollout in self._rollouts.values():
            commands += self.settle(rollout, now, is_loaded=True)
        return commands

    def see(self, deployment: Deployment, now: Instant) -> list[Command]:
        """React to the newest version of `deployment`."""
        is_new = len(self._rollouts)
        rollout = self.learn(deployment)
        if len(self._rollouts) > is_new:
            self._find_implied(rollout)
        return self.settle(rollout, now)

    def forget(self, deployment: Deployment, now: Instant) -> list[Command]:
        """`deployment` was deleted: the pods that are its own by implication only go, too."""
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.pop(key, None)
        if rollout is None:
            return []
        commands: list[Command] = []
        for implied in rollout.implied:
            self.pod_sets.set_rule(implied, Buried())
            commands += self.pod_sets.reconcile(implied, None, now)
        return commands

    def forget_replica_set(self, key: str, now: Instant) -> list[Command]:
        """A ReplicaSet is gone; its Deployment makes another."""
        rollout = self._rollouts.get(self._homes.pop(key, ""))
        if rollout is None or rollout.replica_sets.pop(key, None) is None:
            return []
        rollout.asked.pop(key, None)
        rollout.kin.pop(key, None)
        return self.settle(rollout, now)

    # --- deciding ------------------------------------------------------------------------------

    def settle(self, rollout: Rollout, now: Instant, *, is_loaded: bool = False) -> list[Command]:
        """One step of a rollout; after loading, all pods are decided about later.

        Where the rollout is watched, the step is made once all is told that has happened.
        """
        if self.config.is_observed:
            self.changed[rollout.key] = None
            return []
        if is_ending(rollout.deployment) or not rollout.is_usable:
            return []
        rollout.find_current(is_loaded=is_loaded)
        new, old = rollout.parts(self.pod_sets.sets, now)
        commands: list[Command] = []
        if new is None and not rollout.birth and rollout.retry_at is None:
            commands = self._begin(rollout, old)
        sizes = self._sizes(rollout, new, old)
        for key, size in sizes.items():
            commands += self._resize(rollout, key, size, now, is_loaded=is_loaded)
        for key in rollout.implied:
            if self.pod_sets.set_rule(key, rollout.rule(key)) and not is_loaded:
                commands += self.pod_sets.reconcile(key, None, now)
        self._watch(rollout, now)
        return commands

    def settle_changed(self, now: Instant) -> list[Command]:
        """What follows for the rollouts that are watched and have changed."""
        changed, self.changed = self.changed, {}
        commands: list[Command] = []
        for key in changed:
            rollout = self._rollouts.get(key)
            if rollout is None:
                continue
            if self._restraint.holds(key, now):
                self.wake(key, now + REST)
                continue
            written = self._sync.sync(rollout, now)
            self._restraint.note(key, now, len(written))
            commands += written
            self._expect(rollout)
            self._come_back(rollout, now)
        return commands

    def note_pods(self, key: str, now: Instant) -> list[Command]:
        """The pods of the ReplicaSet `key` have changed."""
        rollout = self._rollouts.get(self._homes.get(key, ""))
        if rollout is None:
            return []
        if not self.config.is_observed:
            return self.settle(rollout, now)
        if rollout.deployment.spec.strategy.type == RECREATE:
            self.changed[rollout.key] = None  # others go by what the ReplicaSet says
        return []

    def _begin(self, rollout: Rollout, old: list[Part]) -> list[Command]:
        """The ReplicaSet for a new template, if it may begin."""
        spec, bounds = rollout.deployment.spec, rollout.bounds
        # upstream: deployment_controller.go:syncDeployment sees to another size first
        if spec.paused or is_scaling(old, spec.replicas):
            return []
        if spec.strategy.type == RECREATE:
            if any(one.replicas for one in old) or not rollout.is_quiet(self.pod_sets.sets):
                return []
            size = bounds.replicas
        else:
            size = grown(0, sum(one.replicas for one in old), bounds)
        command = rollout.create(size)
        self._expect(rollout)
        return [command]

    def _expect(self, rollout: Rollout) -> None:
        """Take note of a ReplicaSet under way."""
        if rollout.birth:
            namespace = rollout.deployment.metadata.namespace
            self._births[namespace, rollout.birth] = rollout.key

    def _sizes(self, rollout: Rollout, new: Part | None, old: list[Part]) -> dict[str, int]:
        spec, bounds = rollout.deployment.spec, rollout.bounds
        parts = [*old, *((new,) if new is not None else ())]
        if spec.paused or is_scaling(parts, spec.replicas):
            return rollout.resized(new, old)
        if spec.strategy.type == RECREATE:
            is_quiet = rollout.is_quiet(self.pod_sets.sets)
            return recreated(new, old, spec.replicas, is_quiet=is_quiet)
        if new is None:
            return {}
        return {key: size for step in rolled(new, old, bounds) for key, size in step.items()}

    def _resize(
        self, rollout: Rollout, key: str, size: int, now: Instant, *, is_loaded: bool
    ) -> list[Command]:
        if key in rollout.implied:
            rollout.sizes[key] = size
            return []
        return [rollout.scale(key, size)]

    def _watch(self, rollout: Rollout, now: Instant) -> None:
        """Watch the pods of a rollout under way, and only of those."""
        is_under_way = bool(rollout.birth) or any(
            part.replicas or not rollout.is_quiet(self.pod_sets.sets)
            for part in rollout.parts(self.pod_sets.sets, now)[1]
        )
        for key in (*rollout.replica_sets, *rollout.implied):
            self._homes[key] = rollout.key
            if is_under_way:
                self.pod_sets.watched[key] = None
            else:
                self.pod_sets.watched.pop(key, None)
        if is_under_way:
            self._wait_for_availability(rollout, now)

    def _wait_for_availability(self, rollout: Rollout, now: Instant) -> None:
        min_ready = seconds(rollout.deployment.spec.min_ready_seconds)
        for key in (*rollout.replica_sets, *rollout.implied):
            pods = self.pod_sets.sets.get(key)
            due = pods.next_available(min_ready, now) if pods is not None else None
            if due is not None:
                self.pod_sets.wake(key, due)

    # --- outcomes ------------------------------------------------------------------------------

    def created(self, target: ObjectRef, now: Instant) -> list[Command]:
        """A ReplicaSet was taken."""
        rollout = self._rollouts.get(self._births.pop((target.namespace, target.name), ""))
        if rollout is None or not self.config.is_observed:
            return []
        made = (one for one in rollout.replica_sets.values() if one.metadata.name == target.name)
        commands: list[Command] = []
        for one in made:
            rollout.find_current()
            commands += self._sync.after_creation(rollout, one, now)
        return commands

    def not_created(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        """A ReplicaSet was refused: another name if it is only that, else later."""
        key = self._births.pop((target.namespace, target.name), "")
        rollout = self._rollouts.get(key)
        if rollout is None:
            return []
        rollout.birth = ""
        is_watched = self.config.is_observed
        if reason is FailureReason.ALREADY_EXISTS:
            # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet counts collisions, but
            # takes one that has become its own meanwhile
            rollout.find_current()
            rollout.collisions += not rollout.current
            told = self._sync.collided(rollout) if is_watched and not rollout.current else []
            return told + self.settle(rollout, now)
        self._wait(rollout, now)
        if is_watched:
            return self._sync.not_created(rollout, target.name, message, now)
        return [failed_create(rollout.ref, message)]

    def scaled(self, target: ObjectRef) -> None:
        """A ReplicaSet was patched."""
        key = owner_key(REPLICA_SET, target.namespace, target.name, target.uid)
        rollout = self._rollouts.get(self._homes.get(key, ""))
        if rollout is not None and key in rollout.writing:
            del rollout.writing[key]
            rollout.failures = 0
            self._catch_up(rollout)

    def _catch_up(self, rollout: Rollout) -> None:
        """Look again at what has changed while it could not be looked at.

        A patch that changed nothing leads to nothing: it would be sent again at once.
        """
        if rollout.is_stale:
            rollout.is_stale = False
            self.changed[rollout.key] = None

    def not_written(self, target: ObjectRef, now: Instant) -> None:
        """A ReplicaSet or the Deployment itself stayed as it was: try again later."""
        key = owner_key(target.kind, target.namespace, target.name, target.uid)
        rollout = self._rollouts.get(self._homes.get(key, key))
        if rollout is None:
            return
        is_asked = rollout.asked.pop(key, None) is not None
        is_written = key in rollout.writing or key == rollout.key
        rollout.writing.pop(key, None)
        if is_asked or (is_written and self.config.is_observed):
            self._wait(rollout, now)

    def wake(self, key: str, due: Instant) -> None:
        """Look at the Deployment `key` again at `due`, although nothing may have changed."""
        self._retries.add(due, key)

    def next_retry(self) -> Instant | None:
        """When the first waiting Deployment tries again."""
        return self._retries.next_due()

    def retry(self, now: Instant) -> list[Command]:
        """Let the Deployments whose wait is over try again."""
        commands: list[Command] = []
        for key in self._retries.pop_due(now):
            rollout = self._rollouts.get(key)
            if rollout is not None:
                if rollout.retry_at is not None and rollout.retry_at <= now:
                    rollout.retry_at = None
                commands += self.settle(rollout, now)
        return commands

    def _wait(self, rollout: Rollout, now: Instant) -> None:
        if rollout.retry_at is None:
            rollout.failures += 1
            rollout.retry_at = now + self.config.retry_after(rollout.failures)
            self._retries.add(rollout.retry_at, rollout.key)

    def _find_implied(self, rollout: Rollout) -> None:
        for key, pods in self.pod_sets.sets.items():
            if is_stand_in(self.pod_sets.rules[key]) and implied_by(rollout.deployment, pods):
                self._imply(rollout, key)

    def _imply(self, rollout: Rollout, key: str) -> None:
        rollout.imply(key, self.pod_sets.sets[key])
        self._homes[key] = rollout.key
        self._unite(rollout, key)

    def _unite(self, rollout: Rollout, key: str) -> None:
        """Let the pods of `key` know those of the Deployment's other ReplicaSets."""
        pods = self.pod_sets.sets.get(key)
        if pods is not None:
            rollout.kin[key] = pods
            pods.kin = rollout.kin

    def _come_back(self, rollout: Rollout, now: Instant) -> None:
        """Look again when the rollout would be overdue."""
        due = overdue_at(rollout.deployment)
        if due is not None and due > now:
            self._retries.add(due, rollout.key)
