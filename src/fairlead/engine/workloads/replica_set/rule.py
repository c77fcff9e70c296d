"""ReplicaSetRule: keeps a number of interchangeable pods of one template.

The rule serves ReplicaSets, ReplicationControllers, and ReplicaSets that a dump lacks but that its
Deployments and pods imply. Terminating and finished pods do not count as replicas, so their
replacements are created immediately.

upstream: pkg/controller/replicaset/replica_set.go:manageReplicas
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState
from fairlead.engine.workloads.pod_control.rule import NOTHING, DesiredPod, Plan
from fairlead.engine.workloads.pod_control.scale_down import pods_to_delete

WHY_TOO_MANY = "scaled down"


class ReplicaSetRule(Struct, frozen=True):
    """Keeps `desired` pods created from `template`."""

    is_watchful: ClassVar[bool] = False

    desired: int
    template: dict[str, Any]

    def slot_of(self, pod: Pod) -> str:
        """Return "", the slot of every pod, because replicas are interchangeable."""
        return ""

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
            siblings = (pod for one in pods.siblings.values() for pod in one.active.values())
            surplus = pods_to_delete(pods.active.values(), -missing, now, siblings)
            return Plan(delete=tuple(surplus), why=WHY_TOO_MANY)
        return NOTHING

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return no changes, because no decision depends on the readiness of pods."""
        return NOTHING
