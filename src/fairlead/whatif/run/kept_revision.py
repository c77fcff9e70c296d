"""Finds the workloads whose update strategy lets pods keep an old revision of the template.

    strategy                          pods that keep their revision
    StatefulSet with a partition      pods with an ordinal below the partition
    OnDelete                          all pods, until something else deletes them

upstream: pkg/controller/statefulset/stateful_set_control.go:
updateStatefulSetAfterInvariantEstablished, pkg/controller/daemon/daemon_controller.go:
updateDaemonSet
"""

from __future__ import annotations

from fairlead.api.json import Json, mapping
from fairlead.apiserver.kind import DAEMON_SET, STATEFUL_SET
from fairlead.apiserver.registry.store import Store
from fairlead.engine.workloads.stateful_set.rule import ON_DELETE
from fairlead.whatif.outcome.workload import WorkloadRef


def kept_revisions(store: Store) -> dict[WorkloadRef, int | None]:
    """Return the StatefulSets and DaemonSets in `store` that do not update all their pods.

    The value of each workload is the lowest ordinal that it updates; None if it updates no pods.
    """
    found: dict[WorkloadRef, int | None] = {}
    for kind in (STATEFUL_SET, DAEMON_SET):
        for one in store.list(kind):
            meta, spec = one["metadata"], one["spec"]
            strategy = mapping(spec, "updateStrategy")
            ref = WorkloadRef(kind.kind, meta["namespace"], meta["name"])
            if strategy.get("type") == ON_DELETE:
                found[ref] = None
            elif kind is STATEFUL_SET and (first := _first_updated(spec, strategy)):
                found[ref] = first
    return found


def _first_updated(spec: Json, strategy: Json) -> int:
    """Return the lowest ordinal that a StatefulSet updates; 0 if it updates all its pods."""
    partition = mapping(strategy, "rollingUpdate").get("partition") or 0
    return (mapping(spec, "ordinals").get("start") or 0) + partition if partition else 0
