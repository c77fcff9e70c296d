"""Explains why a changed workload replaces no pods, or creates none.

A paused Deployment neither starts a rollout nor creates a ReplicaSet. Some workloads do not replace
their pods when their template changes: StatefulSets and DaemonSets with the update strategy
OnDelete, ReplicaSets, and ReplicationControllers. An answer about such a change is often "nothing
changes", and must state the reason.

upstream: pkg/controller/deployment/deployment_controller.go: syncDeployment
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_KEEPING: Final = (REPLICA_SET, REPLICATION_CONTROLLER)
_UPDATING: Final = (STATEFUL_SET, DAEMON_SET)


def held_rollout(before: Manifest, after: Json) -> str:
    """Return why the workload `before` keeps its pods when it changes to `after`.

    The result is "" if its template does not change, or if the change replaces pods.
    """
    spec = after.get("spec") or {}
    if spec.get("template") == (before.value.get("spec") or {}).get("template"):
        return ""
    if before.kind is DEPLOYMENT and spec.get("paused"):
        return f"{before.title} is paused, so its new template replaces no pods."
    strategy = spec.get("updateStrategy") or {}
    if before.kind in _UPDATING and strategy.get("type") == "OnDelete":
        return f"{before.title} has the update strategy OnDelete, so it replaces only deleted pods."
    if before.kind in _KEEPING:
        return f"{before.title} applies its new template only to pods that it creates later."
    return ""


def held_scaling(workload: Manifest, inventory: Inventory) -> str:
    """Return why `workload` creates no pods when it is scaled; "" if it creates pods."""
    spec = workload.value.get("spec") or {}
    if workload.kind is not DEPLOYMENT or not spec.get("paused"):
        return ""
    if any(one.is_controlled_by(workload) for one in inventory.of_kind(REPLICA_SET)):
        return ""
    return f"{workload.title} is paused and has no ReplicaSet, so it creates no pods."
