"""Counts the pods that each workload should have at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of, is_terminal, is_terminating
from fairlead.apiserver.kind import (
    JOB,
    REPLICA_SET,
    SCALABLE,
    STATEFUL_SET,
)
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.daemon_set.rule import target_node
from fairlead.engine.workloads.job.index_set import parse_index_set
from fairlead.engine.workloads.pod_control.unknown_owner import keeps_name
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import ROLLOUT, WorkloadRef

SCALED: Final = {kind.kind: kind for kind in (*SCALABLE, JOB)}
"""The kinds that state the number of their pods."""
_ENDS: Final = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})


def wanted_pods(
    store: Store,
    pods: Iterable[tuple[WorkloadRef, Pod, str]],
    workloads: Collection[WorkloadRef],
    unreplaced: Mapping[WorkloadRef, int] | None = None,
) -> dict[WorkloadRef, int]:
    """Return how many pods each of `workloads` should have.

    `pods` contains (workload, pod, node of the pod) for the existing pods.

    The number comes from the workload's spec (`wanted_by`). If the workload is not in `store`, or
    its kind states no number, the pods of the workload in `pods` are counted. Completed pods are
    not counted. A terminating pod is counted if its owner will create a pod with the same name.
    `unreplaced` is the number of deleted pods that have no replacement yet; these pods are counted,
    too.

    For a DaemonSet, the pods in `pods` are always counted, because a simulation does not update the
    status of DaemonSets. Two pods of a DaemonSet on one node (`maxSurge`) count as one. Pods that
    the DaemonSet could not create are not included.
    """
    has_rollouts = any(ref.kind == ROLLOUT for ref in workloads)
    of_rollouts = _pods_of_rollouts(store, None) if has_rollouts else {}
    wanted = {
        ref: of_rollouts.get(ref) if ref.kind == ROLLOUT else desired_pods(store, ref)
        for ref in workloads
    }
    counted = {ref for ref, number in wanted.items() if number is None}
    existing: Counter[WorkloadRef] = Counter()
    nodes: set[tuple[WorkloadRef, str]] = set()  # of the counted pods
    for ref, pod, node in pods if counted else ():
        if (
            ref in counted
            and not is_terminal(pod)
            and (not is_terminating(pod) or _is_created_again(pod))
        ):
            place = ref, node or target_node(pod)
            existing[ref] += not ref.is_daemon_set or place not in nodes
            nodes.add(place)
    existing.update(unreplaced or {})
    return {ref: existing[ref] if number is None else number for ref, number in wanted.items()}


def _is_created_again(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and keeps_name(owner.kind, pod)


def incomplete_workloads(
    store: Store, pods: Iterable[PodEnd], paused: Iterable[ObjectRef]
) -> Iterator[WorkloadRef]:
    """Yield the StatefulSets and the paused Deployments that have fewer pods than they want.

    A StatefulSet can lack pods because it waits for a pod that is not ready. A Deployment in
    `paused` creates no ReplicaSet. `pods` are the existing pods. A workload is yielded even if none
    of its pods changed during the run.
    """
    wanted = dict[WorkloadRef, int]()
    for one in store.list(STATEFUL_SET):
        meta = one["metadata"]
        wanted[WorkloadRef(STATEFUL_SET.kind, meta["namespace"], meta["name"])] = wanted_by(one)
    for owner in paused:
        ref = WorkloadRef(owner.kind, owner.namespace, owner.name)
        wanted[ref] = desired_pods(store, ref) or 0
    if not wanted:
        return
    kinds = {ref.kind for ref in wanted}
    existing = Counter(
        pod.owner
        for pod in pods
        if pod.owner is not None and pod.owner.kind in kinds and not pod.is_completed
    )
    yield from (ref for ref, number in wanted.items() if existing[ref] < number)


def desired_pods(store: Store, ref: WorkloadRef) -> int | None:
    """Return how many pods the workload `ref` should have, such as its `spec.replicas`.

    For a Rollout, the result is the number of pods that its ReplicaSets should have, because the
    Rollout's own controller is not simulated. Return None if the workload is not in `store`, or if
    its kind states no number.
    """
    if ref.kind == ROLLOUT:
        return _pods_of_rollouts(store, ref.namespace).get(ref)
    kind = SCALED.get(ref.kind)
    found = None if kind is None else store.find(kind, ref.namespace, ref.name)
    return None if found is None else wanted_by(found)


def _pods_of_rollouts(store: Store, namespace: str | None) -> dict[WorkloadRef, int]:
    """Return how many pods the ReplicaSets of each Rollout should have.

    If `namespace` is None, the Rollouts of all namespaces are included.
    """
    wanted: Counter[WorkloadRef] = Counter()
    for one in store.list(REPLICA_SET, namespace):
        meta = one["metadata"]
        for owner in meta.get("ownerReferences") or ():
            if owner.get("controller") and owner["kind"] == ROLLOUT:
                wanted[WorkloadRef(ROLLOUT, meta["namespace"], owner["name"])] += wanted_by(one)
    return wanted


def wanted_by(owner: Json) -> int:
    """Return how many pods the controller of the workload `owner` should keep.

    For a Job, the result is the number of pods that should run now, at most `spec.parallelism`. The
    number is 0 if the Job is suspended or has finished.

    upstream: pkg/controller/job/job_controller.go: manageJob
    """
    spec, status = owner["spec"], owner.get("status") or {}
    if owner["kind"] != JOB.kind:
        return int(spec.get("replicas", 1))
    ended = {one["type"] for one in status.get("conditions") or [] if one["status"] == "True"}
    if spec.get("suspend") or ended & _ENDS:
        return 0
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    succeeded = int(status.get("succeeded") or 0)
    if completions is None:  # a work queue: after a success, no pods are added
        return int(status.get("active") or 0) if succeeded else parallelism
    given_up = len(parse_index_set(status.get("failedIndexes") or "", int(completions)))
    return max(0, min(parallelism, int(completions) - succeeded - given_up))
