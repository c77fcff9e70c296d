"""Rollouts: all Deployments, what became of what they asked for, and when they ask again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.api.objects import Deployment, ReplicaSet
from fairlead.api.pod import controller_of
from fairlead.core.command import Command, CreateObject, ObjectRef
from fairlead.core.instant import Instant
from fairlead.core.stimulus import FailureReason
from fairlead.core.timer_queue import TimerQueue
from fairlead.workloads.config import WorkloadsConfig
from fairlead.workloads.deployment import REPLICA_SET, Rollout, implied_by, is_ending
from fairlead.workloads.identity import failed_create, owner_key
from fairlead.workloads.pod_sets import PodSets, is_stand_in
from fairlead.workloads.stand_in import Buried

DEPLOYMENT: Final = "Deployment"


@dataclass(slots=True)
class Rollouts:
    """All Deployments; implied ReplicaSets are ruled through `pod_sets`."""

    config: WorkloadsConfig
    pod_sets: PodSets
    _rollouts: dict[str, Rollout] = field(default_factory=dict)
    _births: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, name) -> key
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)

    def learn(self, deployment: Deployment) -> Rollout:
        """Note the newest version of `deployment` without deciding anything."""
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.get(key)
        if rollout is None:
            rollout = self._rollouts[key] = Rollout(key, deployment)
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
                    rollout.implied[key] = pods
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
        """`deployment` was deleted: what it made goes too."""
        meta = deployment.metadata
        key = owner_key(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        rollout = self._rollouts.pop(key, None)
        if rollout is None:
            return []
        commands = rollout.burial()
        for implied in rollout.implied:
            self.pod_sets.set_rule(implied, Buried())
            commands += self.pod_sets.reconcile(implied, None, now)
        return commands

    def forget_replica_set(self, key: str, now: Instant) -> list[Command]:
        """A ReplicaSet is gone; its Deployment makes another."""
        for rollout in self._rollouts.values():
            if rollout.replica_sets.pop(key, None) is not None:
                rollout.asked.pop(key, None)
                return self.settle(rollout, now)
        return []

    def settle(self, rollout: Rollout, now: Instant, *, is_loaded: bool = False) -> list[Command]:
        """Decide about one Deployment; after loading, all pods are decided about later."""
        if is_ending(rollout.deployment) or not rollout.is_usable:
            return []
        rollout.find_current(is_loaded=is_loaded)
        commands = rollout.commands()
        meta = rollout.deployment.metadata
        if any(isinstance(one, CreateObject) for one in commands):
            self._births[meta.namespace, rollout.birth] = rollout.key
        for key in rollout.implied:
            if self.pod_sets.set_rule(key, rollout.rule(key)) and not is_loaded:
                commands += self.pod_sets.reconcile(key, None, now)
        return commands

    # --- outcomes ------------------------------------------------------------------------------

    def created(self, target: ObjectRef) -> None:
        """A ReplicaSet was taken."""
        self._births.pop((target.namespace, target.name), None)

    def not_created(
        self, target: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> list[Command]:
        """A ReplicaSet was refused: another name if it is only that, else later."""
        key = self._births.pop((target.namespace, target.name), "")
        rollout = self._rollouts.get(key)
        if rollout is None:
            return []
        rollout.birth = ""
        if reason is FailureReason.ALREADY_EXISTS:
            # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet counts collisions
            rollout.collisions += 1
            return self.settle(rollout, now)
        self._wait(rollout, now)
        meta = rollout.deployment.metadata
        owner = ObjectRef(DEPLOYMENT, meta.namespace, meta.name, meta.uid)
        return [failed_create(owner, message)]

    def not_scaled(self, target: ObjectRef, now: Instant) -> None:
        """A ReplicaSet kept its size: try again later."""
        key = owner_key(REPLICA_SET, target.namespace, target.name, target.uid)
        for rollout in self._rollouts.values():
            if rollout.asked.pop(key, None) is not None:
                self._wait(rollout, now)

    def next_retry(self) -> Instant | None:
        """When the first waiting Deployment tries again."""
        return self._retries.next_due()

    def retry(self, now: Instant) -> list[Command]:
        """Let the Deployments whose wait is over try again."""
        commands: list[Command] = []
        for key in self._retries.pop_due(now):
            rollout = self._rollouts.get(key)
            if rollout is not None:
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
                rollout.implied[key] = pods
