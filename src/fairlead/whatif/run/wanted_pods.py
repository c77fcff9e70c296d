"""Counts the pods that each workload should have at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.apiserver.registry.store import Store
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of

_SCALED: Final = {
    kind.kind: kind for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
}


def wanted_pods(
    store: Store, pods: Iterable[Pod], workloads: Collection[WorkloadRef]
) -> dict[WorkloadRef, int]:
    """Return how many pods each of `workloads` should have.

    The number is the workload's `spec.replicas`. If the workload is not in `store`, or its kind has
    no replicas, the pods of the workload in `pods` are counted, except finished and terminating
    pods. The pods of DaemonSets are counted, because a simulation without clients does not update
    the status of DaemonSets.
    """
    wanted = {ref: desired_pods(store, ref) for ref in workloads}
    counted = {ref for ref, number in wanted.items() if number is None}
    namespaces = {ref.namespace for ref in counted}  # to skip most pods quickly
    existing: Counter[WorkloadRef] = Counter()
    for pod in pods if counted else ():
        if (
            pod.metadata.namespace in namespaces
            and not is_terminal(pod)
            and not is_terminating(pod)
            and (ref := workload_of(pod)) in counted
        ):
            existing[ref] += 1
    return {ref: existing[ref] if number is None else number for ref, number in wanted.items()}


def desired_pods(store: Store, ref: WorkloadRef) -> int | None:
    """Return `spec.replicas` (default 1) of the workload `ref`.

    Return None if it is not in `store`, or if workloads of its kind have no replicas.
    """
    kind = _SCALED.get(ref.kind)
    found = None if kind is None else store.find(kind, ref.namespace, ref.name)
    return None if found is None else int(found["spec"].get("replicas", 1))
