"""Rollouts: the rollouts of all Deployments, and the queue of Deployments to sync.

    an object changes ──▶ `changed` ──▶ sync: create a ReplicaSet, or change sizes
            ▲                                   │
            └── the change is observed ◀────────┘      until the new ReplicaSet has replaced the old

A Deployment is synced after all changes of the same instant are handled. So a burst of changes
causes one sync. The Deployments that exist at the start are synced immediately. The reason is that
ReplicaSets that the cluster dump lacks must have a size before their pods are counted.

upstream: pkg/controller/deployment/deployment_controller.go:syncDeployment
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Deployment, ReplicaSet
from fairlead.api.pods.facts import controller_of
from fairlead.engine.core.command import Command, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.deployment.rollout import REPLICA_SET, Rollout, implied_by, is_ending
from fairlead.engine.workloads.deployment.sync import RolloutSync
from fairlead.engine.workloads.identity import owner_key
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.pod_control.unknown_owner import DeletedOwnerRule, is_unknown_owner
from fairlead.engine.workloads.work_queue import BURST_DELAY, BURST_MAX, BurstLimiter

DEPLOYMENT: Final = "Deployment"
# With maxSurge 1, a rollout takes two writes for each replica. If API clients are served, it also
# takes two events and a status write for each replica.
WRITES_PER_REPLICA: Final = 8


class Rollouts(Struct):
    """The rollouts of all Deployments; `changed` contains the keys of the Deployments to sync.

    `pod_sets` has the pods of all owners. The rollouts use it for the pods of implied ReplicaSets,
    which the cluster dump lacks (see `rollout`).
    """

    config: WorkloadsConfig
    pod_sets: PodSets
    sync: RolloutSync
    changed: dict[str, None] = field(default_factory=dict)  # keys of rollouts to sync
    _rollouts: dict[str, Rollout] = field(default_factory=dict)
    # maps the key of each ReplicaSet to the key of its rollout
    _by_replica_set: dict[str, str] = field(default_factory=dict)
    _creating: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, name) -> key
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)
    _burst_limiter: BurstLimiter = field(default_factory=BurstLimiter)

    def learn(self, deployment: Deployment) -> Rollout:
        """Store the newest version of `deployment` without queueing a sync; return its rollout."""
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.get(key)
        if rollout is None:
            rollout = self._rollouts[key] = Rollout(key, deployment)
            rollout.collisions = deployment.status.get("collisionCount", 0)
        rollout.deployment = deployment
        return rollout

    def learn_replica_set(self, key: str, replica_set: ReplicaSet) -> Rollout | None:
        """Store the newest version of `replica_set`; return the rollout of its Deployment.

        Returns None, and stores nothing, if no known Deployment controls `replica_set`. If another
        Deployment controlled `replica_set` before, that Deployment is queued for a sync, because it
        has released the ReplicaSet.
        """
        owner, namespace = controller_of(replica_set.metadata), replica_set.metadata.namespace
        rollout = None
        if owner is not None and owner.kind == DEPLOYMENT:
            rollout = self._rollouts.get(owner_key(DEPLOYMENT, namespace, owner.name, owner.uid))
        former = self._by_replica_set.get(key)
        if former is not None and (rollout is None or rollout.key != former):
            self.forget_replica_set(key)
        if rollout is not None:
            rollout.observe(key, replica_set)
            self._by_replica_set[key] = rollout.key
            self._unite(rollout, key)
        return rollout

    def load(self, now: Instant) -> list[Command]:
        """Sync all Deployments that exist at the start."""
        by_name = {
            (one.deployment.metadata.namespace, one.deployment.metadata.name): one
            for one in self._rollouts.values()
        }
        for key, pods in self.pod_sets.sets.items():
            if pods.owner.kind == REPLICA_SET and is_unknown_owner(self.pod_sets.rules[key]):
                rollout = by_name.get((pods.namespace, pods.owner.name.rpartition("-")[0]))
                if rollout is not None and implied_by(rollout.deployment, pods):
                    self._imply(rollout, key)
        commands: list[Command] = []
        for rollout in self._rollouts.values():
            commands += self._sync(rollout, now, is_loaded=True)
        return commands

    def observe(self, deployment: Deployment) -> None:
        """Store the newest version of `deployment`, and queue it for a sync."""
        count = len(self._rollouts)
        rollout = self.learn(deployment)
        if len(self._rollouts) > count:
            self._find_implied(rollout)
        self.mark_changed(rollout)

    def forget(self, deployment: Deployment, now: Instant) -> list[Command]:
        """Handle the deletion of `deployment`: delete the pods of its implied ReplicaSets.

        The class docstring explains implied ReplicaSets.
        """
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.pop(key, None)
        if rollout is None:
            return []
        commands: list[Command] = []
        for implied in rollout.implied:
            self.pod_sets.set_rule(implied, DeletedOwnerRule())
            commands += self.pod_sets.reconcile(implied, None, now)
        return commands

    def forget_replica_set(self, key: str) -> None:
        """Handle the deletion or release of a ReplicaSet: queue a sync of its Deployment."""
        rollout = self._rollouts.get(self._by_replica_set.pop(key, ""))
        if rollout is None or rollout.replica_sets.pop(key, None) is None:
            return
        rollout.requested.pop(key, None)
        rollout.siblings.pop(key, None)
        rollout.writing.pop(key, None)  # the outcome of a write in flight no longer matters
        self.mark_changed(rollout)

    def paused(self) -> Iterator[Deployment]:
        """Yield the paused Deployments."""
        deployments = (one.deployment for one in self._rollouts.values())
        return (one for one in deployments if one.spec.paused)

    # --- decisions -----------------------------------------------------------------------------

    def mark_changed(self, rollout: Rollout) -> None:
        """Queue `rollout`; its sync runs after all changes of this instant are handled."""
        self.changed[rollout.key] = None

    def mark_pods_changed(self, key: str) -> None:
        """Queue the Deployment of the ReplicaSet `key` if pod changes can affect its rollout."""
        rollout = self._rollouts.get(self._by_replica_set.get(key, ""))
        if rollout is not None and self.sync.view.follows_pods(rollout):
            self.mark_changed(rollout)

    def sync_changed(self, now: Instant) -> list[Command]:
        """Sync the Deployments that have changed."""
        changed, self.changed = self.changed, {}
        commands: list[Command] = []
        for key in changed:
            rollout = self._rollouts.get(key)
            if rollout is not None:
                commands += self._sync(rollout, now)
        return commands

    def _sync(self, rollout: Rollout, now: Instant, *, is_loaded: bool = False) -> list[Command]:
        """Sync one Deployment.

        If `is_loaded` is set, no pods of implied ReplicaSets (`Rollout.implied`) are created or
        deleted yet.
        """
        writes_max = BURST_MAX + WRITES_PER_REPLICA * rollout.deployment.spec.replicas
        if self._burst_limiter.is_exceeded(rollout.key, now, writes_max):
            self.run_at(rollout.key, now + BURST_DELAY)
            return []
        commands = self.sync.sync(rollout, now, is_loaded=is_loaded)
        self._burst_limiter.record(rollout.key, now, len(commands))
        if rollout.creating:
            namespace = rollout.deployment.metadata.namespace
            self._creating[namespace, rollout.creating] = rollout.key
        commands += self._control_implied(rollout, now, is_loaded=is_loaded)
        self.sync.view.watch(rollout, now)
        due = self.sync.output.overdue_at(rollout)
        if due is not None and due > now:
            self.run_at(rollout.key, due)
        return commands

    def _control_implied(self, rollout: Rollout, now: Instant, *, is_loaded: bool) -> list[Command]:
        """Set the desired size of each implied ReplicaSet; return the commands for its pods.

        The commands create or delete pods, so that the number of pods becomes the desired size. An
        implied ReplicaSet is missing in the cluster dump, although the dump contains its pods. If
        `is_loaded` is set, only the desired sizes are set, and the result is [].
        """
        commands: list[Command] = []
        if not rollout.is_usable or is_ending(rollout.deployment):
            return commands
        for key in rollout.implied:
            if self.pod_sets.set_rule(key, rollout.rule(key)) and not is_loaded:
                commands += self.pod_sets.reconcile(key, None, now)
        return commands

    # --- outcomes ------------------------------------------------------------------------------

    def created(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Continue the rollout after its new ReplicaSet `target` was created."""
        rollout = self._rollouts.get(self._creating.pop((target.namespace, target.name), ""))
        if rollout is None:
            return []
        commands: list[Command] = []
        for one in rollout.replica_sets.values():
            if one.metadata.name == target.name:
                commands += self.sync.created(rollout, one, now)
        return commands

    def not_created(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        """Handle the refused creation of the ReplicaSet `target`.

        `message` is the API server's error message.
        """
        rollout = self._rollouts.get(self._creating.pop((target.namespace, target.name), ""))
        if rollout is None:
            return []
        rollout.creating = ""
        if reason is not FailureReason.ALREADY_EXISTS:
            self._wait(rollout, now)
            return self.sync.not_created(rollout, target.name, message, now)
        # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet counts collisions only with
        # ReplicaSets that are not this Deployment's own
        self.mark_changed(rollout)
        rollout.find_current()
        if rollout.current:
            return []
        rollout.collisions += 1
        return self.sync.collided(rollout, target.name)

    def scaled(self, target: ObjectRef) -> None:
        """Record that a patch of the ReplicaSet `target` succeeded."""
        key = owner_key(REPLICA_SET, target.namespace, target.name, target.uid)
        rollout = self._rollouts.get(self._by_replica_set.get(key, ""))
        if rollout is not None and key in rollout.writing:
            del rollout.writing[key]
            rollout.failures = 0
            # Sync again if an object of the rollout changed while the write was in flight. If
            # nothing changed, a sync would send the same patch again.
            if rollout.is_stale:
                rollout.is_stale = False
                self.changed[rollout.key] = None

    def not_written(self, target: ObjectRef, now: Instant) -> None:
        """Handle a failed patch of a ReplicaSet or a Deployment: schedule a retry."""
        key = owner_key(target.kind, target.namespace, target.name, target.uid)
        rollout = self._rollouts.get(self._by_replica_set.get(key, key))
        if rollout is None:
            return
        is_requested = rollout.requested.pop(key, None) is not None
        is_written = key in rollout.writing or key == rollout.key
        rollout.writing.pop(key, None)
        if is_requested or is_written:
            self._wait(rollout, now)

    def run_at(self, key: str, due: Instant) -> None:
        """Schedule a sync of the Deployment `key` at `due`, even if no object changes."""
        self._retries.add(due, key)

    def next_retry(self) -> Instant | None:
        """Return the time of the next retry, or None if no retry is scheduled."""
        return self._retries.next_due()

    def retry(self, now: Instant) -> None:
        """Queue the Deployments whose backoff or wait has expired."""
        for key in self._retries.pop_due(now):
            rollout = self._rollouts.get(key)
            if rollout is not None:
                if rollout.retry_at is not None and rollout.retry_at <= now:
                    rollout.retry_at = None
                self.mark_changed(rollout)

    def _wait(self, rollout: Rollout, now: Instant) -> None:
        if rollout.retry_at is None:
            rollout.failures += 1
            rollout.retry_at = now + self.config.retry_after(rollout.failures)
            self._retries.add(rollout.retry_at, rollout.key)

    def _find_implied(self, rollout: Rollout) -> None:
        for key, pods in self.pod_sets.sets.items():
            if is_unknown_owner(self.pod_sets.rules[key]) and implied_by(rollout.deployment, pods):
                self._imply(rollout, key)

    def _imply(self, rollout: Rollout, key: str) -> None:
        rollout.imply(key, self.pod_sets.sets[key])
        self._by_replica_set[key] = rollout.key
        self._unite(rollout, key)

    def _unite(self, rollout: Rollout, key: str) -> None:
        """Make the pod set `key` a sibling of the Deployment's other pod sets (`siblings`)."""
        pods = self.pod_sets.sets.get(key)
        if pods is not None:
            rollout.siblings[key] = pods
            pods.siblings = rollout.siblings
