"""Replicas: as many interchangeable pods as asked for, of one template.

For ReplicaSets and ReplicationControllers, and for a ReplicaSet that is not known itself while
the Deployment behind it is. A terminating or finished pod is no replica, so its successor comes
at once. Differs from upstream: pods without an owner are not adopted.

upstream: pkg/controller/replicaset/replica_set.go:manageReplicas
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState
from fairlead.engine.workloads.pod_control.rule import NOTHING, Plan, Wish
from fairlead.engine.workloads.pod_control.scale_down import pods_to_delete

WHY_TOO_MANY = "scaled down"


@dataclass(frozen=True, slots=True)
class Replicas:
    """`desired` pods like `template`."""

    is_watchful: ClassVar[bool] = False

    desired: int
    template: dict[str, Any]

    def slot_of(self, pod: Pod) -> str:
        """Replicas are interchangeable."""
        return ""

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Every replica that stops counting has a successor, even one that ended well."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Create what is missing, or delete what is too much once no creation is under way."""
        missing = self.desired - len(pods.active) - len(pods.births)
        if missing > 0:
            return Plan(create=(Wish(self.template),) * min(missing, pods.births_allowed))
        if missing < 0 and not pods.births:
            kin = (pod for one in pods.kin.values() for pod in one.active.values())
            going = pods_to_delete(pods.active.values(), -missing, now, kin)
            return Plan(delete=tuple(going), why=WHY_TOO_MANY)
        return NOTHING

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Nothing follows."""
        return NOTHING
