"""Workloads whose controllers have not created all wanted pods when the dump was taken.

Such pods are in no list of pods. The workload's status says how many pods it has, and its condition
ReplicaFailure why the API server refused a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.json import Json, items, mapping, number, text
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.workloads.stateful_set.rule import PARALLEL
from fairlead.whatif.explain.pod_cause import seconds_since
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.result.tabular_answer import Row
from fairlead.whatif.run.capacity.wanted_pods import wanted_by
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_KINDS: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER)


def uncreated_rows(model: ClusterModel, inventory: Inventory) -> list[Row]:
    """Return a row for each workload of `inventory` that lacks pods; most lacking pods first.

    The owner of a ReplicaSet gets the row, not the ReplicaSet. A workload without a status gets no
    row: its controller has not seen it yet. `since_s` is None if the time is unknown.
    """
    rows: list[Row] = []
    for one in _workloads(inventory):
        status = mapping(one.value, "status")
        missing = wanted_by(one.value) - number(status, "replicas")
        if status and missing > 0:
            why, since = _why(one, status)
            ref = WorkloadRef(one.kind.kind, one.ref.namespace, one.ref.name)
            rows.append({
                "pods": missing,
                "workload": str(ref),
                "since_s": seconds_since(model, since),
                "why": why,
            })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["pods"], row["workload"]))


def _workloads(inventory: Inventory) -> Iterator[Manifest]:
    every: Iterable[Manifest] = (one for kind in _KINDS for one in inventory.of_kind(kind))
    yield from (one for one in every if one.controller is None)


def _why(workload: Manifest, status: Json) -> tuple[str, str]:
    """Return (why `workload` lacks pods, timestamp since when); "" for what is unknown."""
    for one in items(status, "conditions"):
        if (text(one, "type"), text(one, "status")) == ("ReplicaFailure", "True"):
            why = text(one, "message") or text(one, "reason")
            return why.rstrip("."), text(one, "lastTransitionTime")
    spec = mapping(workload.value, "spec")
    if workload.kind is DEPLOYMENT and spec.get("paused") is True:
        return "it is paused", ""
    if workload.kind is STATEFUL_SET and spec.get("podManagementPolicy") != PARALLEL:
        return "it creates a pod only if all pods with lower numbers are ready", ""
    return "its controller has not created them", ""
