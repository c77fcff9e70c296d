"""Computes the status of ReplicaSets and ReplicationControllers.

upstream: pkg/controller/replicaset/replica_set_utils.go:calculateStatus
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import ReplicaSet, ReplicationController
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.pod_control.pod_set import PodSet

_OWN: Final = ("conditions", "observedGeneration")
REPLICA_FAILURE: Final = "ReplicaFailure"


def replica_status(owner: ReplicaSet | ReplicationController, pods: PodSet, now: Instant) -> Json:
    """Return the status of `owner`, computed from its `pods`."""
    count = len(pods.active)
    numbers = {
        # All its pods were created from its template, so all have the template's labels.
        "fullyLabeledReplicas": count,
        "readyReplicas": len(pods.ready),
        "availableReplicas": pods.available(seconds(owner.spec.min_ready_seconds), now),
        "observedGeneration": owner.metadata.generation,
    }
    status: Json = {"replicas": count} | {key: one for key, one in numbers.items() if one}
    if isinstance(owner, ReplicaSet):
        status["terminatingReplicas"] = pods.terminating
    conditions = _conditions(owner.status, pods.refusal, now)
    return status | {"conditions": conditions} if conditions else status


def first_status(owner: ReplicaSet | ReplicationController, status: Json) -> Json:
    """Return the status to write next, given the `status` with the current counts.

    The first status for a new generation of `owner` repeats the counts of the previous status. The
    reason is that upstream counts the pods before it creates or deletes pods for the new
    generation.
    """
    # upstream: replica_set.go:syncReplicaSet
    before = owner.status
    if before.get("observedGeneration", 0) == owner.metadata.generation:
        return status
    counted = {key: number for key, number in before.items() if key not in _OWN}
    own = {key: status[key] for key in _OWN if key in status}
    absent = {key: 0 for key in ("replicas", "terminatingReplicas") if key in status}
    return absent | counted | own


def _conditions(before: Mapping[str, Any], refusal: str, now: Instant) -> list[Json]:
    known = before.get("conditions", [])
    others = [one for one in known if one.get("type") != REPLICA_FAILURE]
    if not refusal:
        return others
    own = [one for one in known if one.get("type") == REPLICA_FAILURE]
    failure = {
        "type": REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": format_timestamp(now),
        "reason": "FailedCreate",
        "message": refusal,
    }
    return others + (own or [failure])
