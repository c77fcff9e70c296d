"""ReplicaSetRule: keeps a number of interchangeable pods of one template.

The rule is for ReplicationControllers, ReplicaSets and implied ReplicaSets. A dump contains the
pods of an implied ReplicaSet, but not the ReplicaSet itself (see `deployment.rollout`). Terminating
and finished pods do not count as replicas, so their replacements are created immediately.

upstream: pkg/controller/replicaset/replica_set.go:manageReplicas
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import BURST_REPLICAS, PodSet, PodState
from fairlead.engine.workloads.pod_control.rule import NOTHING, DesiredPod, Plan
from fairlead.engine.workloads.pod_control.scale_down import pods_to_delete

WHY_TOO_MANY = "scaled down"


class ReplicaSetRule(Struct, frozen=True):
    """Keeps the number of pods at `desired`; creates missing pods from `template`."""

    reads_readiness: ClassVar[bool] = False

    desired: int
    template: dict[str, Any]

    def slot_of(self, pod: Pod) -> str:
        """Return "", the slot of every pod, because replicas are interchangeable."""
        return ""

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return "" for each of `replicas`."""
        return [""] * len(replicas)

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return True: every replica that stops being active is replaced, even if it succeeded."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return a plan that creates missing pods or deletes surplus pods.

        Surplus pods are deleted only if no creation is in flight.
        """
        missing = self.desired - len(pods.active) - len(pods.creations_expected)
        if missing > 0:
            return Plan(create=(DesiredPod(self.template),) * min(missing, pods.creations_allowed))
        if missing < 0 and not pods.creations_expected:
            return Plan(delete=tuple(_surplus(pods, -missing, now)), why=WHY_TOO_MANY)
        return NOTHING

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes, because no decision depends on the readiness of pods."""
        return NOTHING


def _surplus(pods: PodSet, count: int, now: Instant) -> list[Pod]:
    """Return the `count` pods to delete, in the order of deletion.

    As in upstream, the remaining pods are ranked again after every 500 pods.
    """
    active = list(pods.active.values())
    siblings = [pod for one in pods.siblings.values() for pod in one.active.values()]
    surplus: list[Pod] = []
    while True:
        batch = pods_to_delete(active, min(count - len(surplus), BURST_REPLICAS), now, siblings)
        surplus += batch
        if len(surplus) >= count or not batch:
            return surplus
        gone = {pod.key for pod in batch}
        active = [pod for pod in active if pod.key not in gone]
        siblings = [pod for pod in siblings if pod.key not in gone]
