"""Workloads whose controllers had not created all wanted pods when the dump was taken.

The missing pods are in no list of pods. The status of a workload says how many pods the workload
has, even if the dump lacks pods. If the dump has more pods of the workload than the status says,
the status is outdated, and the pods are counted instead. The condition ReplicaFailure says why the
API server refused a pod. The Deployment controller copies the condition from the ReplicaSets, but
not while the Deployment is paused. A Job has no such condition, so a trial finds out whether the
API server would refuse its next pod. A workload without a status, as in a file of manifests, is
tried in the same way. The status of a DaemonSet says how many pods the DaemonSet wants, and how
many nodes have one. The status never says why pods are missing.

A StatefulSet does not create a pod before the old pod of the same name has ended. If the old pod
does not stop, for example because the kubelet of its node does not answer, the StatefulSet lacks a
pod, although its status counts the old pod.

upstream: pkg/controller/deployment/sync.go: sync; progress.go: syncRolloutStatus;
pkg/controller/statefulset/stateful_set_control.go: processReplica
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, items, mapping, number, text
from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import Pod, StatefulSet
from fairlead.api.pods.facts import foreign_finalizers, is_terminal, is_terminating
from fairlead.api.text.name_list import listed
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.deletion.pod_finalizers import is_kept_after_end
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.stateful_set.rule import PARALLEL, ordinals_of
from fairlead.whatif.explain.pod_cause import seconds_since
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.planner.cluster_model import ClusterModel, ending_namespaces
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.new_pod import new_pods_of
from fairlead.whatif.result.tabular_answer import Row
from fairlead.whatif.run.capacity.wanted_pods import wanted_by
from fairlead.whatif.run.pod_timing.stuck_pod import is_stuck, stuck_words
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_KINDS: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER, DAEMON_SET, JOB)


class AwaitedEnd(Struct, frozen=True):
    """A terminating `pod` that does not end, and whose name a StatefulSet needs for a new pod.

    `why` is the reason. If the reason is that the kubelet does not answer, and the pod's node lacks
    the taint out-of-service, `silent_node` is the name of this node. In all other cases,
    `silent_node` is "".
    """

    owner: ObjectRef
    pod: Pod
    why: str
    silent_node: str = ""


def uncreated_rows(
    model: ClusterModel, inventory: Inventory, held: Sequence[AwaitedEnd], namespace: str = ""
) -> list[Row]:
    """Return a row for each workload of `inventory` that lacks pods.

    If `namespace` is set, only its workloads get rows. `held` is the result of `held_pods`. A
    StatefulSet has a row for each reason why its pods are held. The workload that lacks the most
    pods comes first. The missing pods of a ReplicaSet are in the row of its Deployment. A workload
    without a status gets a row only if the API server would refuse its next pod. If the API server
    would accept the pod, the pod is missing only because the controller has not seen the workload
    yet. A workload that is being deleted, or whose namespace is being deleted, gets no row: its
    controller creates no pods. `since_s` is None if the time is unknown.
    """
    ending = ending_namespaces(model.objects)
    replica_sets = _replica_sets_of_deployments(inventory)
    rows: list[Row] = []
    refusals = _refusals(model, inventory)
    held_by: dict[ObjectRef, list[AwaitedEnd]] = defaultdict(list)
    for each in held:
        held_by[each.owner].append(each)
    for one in _workloads(inventory):
        if one.metadata.deletion_timestamp or one.ref.namespace in ending:
            continue
        if namespace not in ("", one.ref.namespace):
            continue
        status, refusal = mapping(one.value, "status"), refusals.get(one.ref, "")
        own = replica_sets.get(one.identity, [])
        missing = _missing(one, status)
        ref = WorkloadRef(one.kind.kind, one.ref.namespace, one.ref.name)
        own_held = held_by[one.ref] if one.kind is STATEFUL_SET else []
        rows += _held_rows(model, str(ref), own_held)
        if (status or refusal) and missing > 0:
            # Clusters are read kind by kind, so a status may be older than the pods.
            existing = _existing(inventory.pods_of(one, *own)) + len(own_held)
            missing = min(missing, _wanted(one, status) - existing)
        if (status or refusal) and missing > 0:
            why, since = (refusal, "") if refusal else _why(one, status, own)
            rows.append({
                "pods": missing,
                "workload": str(ref),
                "since_s": seconds_since(model, since),
                "why": why,
            })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["pods"], row["workload"]))


def held_pods(model: ClusterModel, inventory: Inventory, namespace: str = "") -> list[AwaitedEnd]:
    """Return the terminating pods that do not end and whose names StatefulSets need for new pods.

    If `namespace` is set, the result has only pods of this namespace. A StatefulSet that is being
    deleted, or whose namespace is being deleted, creates no pods.
    """
    ending = ending_namespaces(model.objects)
    return [
        held
        for one in inventory.of_kind(STATEFUL_SET)
        if not (one.metadata.deletion_timestamp or one.ref.namespace in ending)
        and namespace in ("", one.ref.namespace)
        for held in _held_pods(model, one, inventory)
    ]


def _held_pods(
    model: ClusterModel, stateful_set: Manifest, inventory: Inventory
) -> Iterator[AwaitedEnd]:
    leaving = [pod for pod in inventory.pods_of(stateful_set) if is_terminating(pod)]
    if not leaving:
        return
    wanted = ordinals_of(decode_as(StatefulSet, stateful_set.value))
    for pod in leaving:
        if ordinal_of(stateful_set.ref.name, pod.metadata.name) not in wanted:
            continue
        why, silent_node = _why_it_stays(model, pod)
        if why:
            yield AwaitedEnd(stateful_set.ref, pod, why, silent_node)


def _why_it_stays(model: ClusterModel, pod: Pod) -> tuple[str, str]:
    """Return (why the terminating `pod` does not end, silent node) as in AwaitedEnd.

    Both values are "" if the pod ends after its grace period.
    """
    info = model.find_node(pod.spec.node_name)
    node = None if info is None else info.node
    kept = f"finalizers keep it ({listed(foreign_finalizers(pod))})"
    if node is not None and ready_status(node) == UNKNOWN:
        name = node.metadata.name
        if all(taint.key != OUT_OF_SERVICE for taint in node.spec.taints):
            return _silent_words([name]), name
        # Pod garbage collection deletes such a pod (gc_controller.go: gcTerminating).
        gone = f"{name} is tainted {OUT_OF_SERVICE}, so the pod is about to be deleted"
        return (kept if foreign_finalizers(pod) else gone), ""
    if is_kept_after_end(pod, node, model.now):
        return kept, ""
    return (stuck_words(pod) if is_stuck(pod, node, model.now) else ""), ""


def _silent_words(nodes: Sequence[str]) -> str:
    if len(nodes) == 1:
        return f"the kubelet of {nodes[0]} does not answer"
    return f"the kubelets of {listed(nodes, 2)} do not answer"


def _held_rows(model: ClusterModel, workload: str, held: Iterable[AwaitedEnd]) -> Iterator[Row]:
    """Yield a row for each reason why pods of `workload` are held.

    All pods on silent nodes are in one row.
    """
    groups: dict[str, list[AwaitedEnd]] = defaultdict(list)
    for one in held:
        groups["" if one.silent_node else one.why].append(one)
    for why, found in groups.items():
        pods = [one.pod for one in found]
        ages = [seconds_since(model, pod.metadata.deletion_timestamp) for pod in pods]
        silent = sorted({one.silent_node for one in found})
        yield {
            "pods": len(found),
            "workload": workload,
            "since_s": max((age for age in ages if age is not None), default=None),
            "why": f"waits for the end of {listed([pod.key for pod in pods], 2)}: "
                   f"{why or _silent_words(silent)}",
        }  # fmt: skip


def _missing(workload: Manifest, status: Json) -> int:
    """Return how many pods `workload` lacks; 0 or less if no pod is missing."""
    if workload.kind is DAEMON_SET:
        return _wanted(workload, status) - number(status, "currentNumberScheduled")
    if workload.kind is not JOB:
        return wanted_by(workload.value) - number(status, "replicas")
    spec, existing = mapping(workload.value, "spec"), number(status, "active")
    if spec.get("podReplacementPolicy") == "Failed":  # a terminating pod is not replaced yet
        existing += number(status, "terminating")
    return wanted_by(workload.value) - existing


def _wanted(workload: Manifest, status: Json) -> int:
    """Return how many pods `workload` wants: for a DaemonSet, one on each suitable node."""
    if workload.kind is DAEMON_SET:
        return number(status, "desiredNumberScheduled")
    return wanted_by(workload.value)


def _existing(pods: Iterable[Pod]) -> int:
    """Return the number of `pods` that their controller counts as existing."""
    return sum(1 for pod in pods if not (is_terminal(pod) or is_terminating(pod)))


def _refusals(model: ClusterModel, inventory: Inventory) -> dict[ObjectRef, str]:
    """Return why the API server would refuse the next pod of each workload that lacks pods.

    Only Jobs and workloads without a status are tried. Workloads whose next pod would be created
    are left out.
    """
    tried = [
        one
        for one in _workloads(inventory)
        for status in [mapping(one.value, "status")]
        if (one.kind is JOB or not status) and _missing(one, status) > 0
    ]
    found: dict[ObjectRef, str] = {}
    with model.hypothesis():
        for namespace in sorted({one.ref.namespace for one in tried}):
            model.count_quotas(namespace)
        for one in tried:
            try:
                create_pod(model, new_pods_of("explain", one, inventory), 0)
            except ApiError as refused:
                found[one.ref] = without_name(refused.message).rstrip(".")
            except InputError:  # an invalid workload
                continue
    return found


def without_name(refusal: str) -> str:
    """Return the message `refusal` about a pod, but omit the text `pods "NAME" is forbidden: `.

    The name belongs to a pod of a trial, so a reader does not know this pod.
    """
    return refusal.partition(" is forbidden: ")[2] or refusal


def _workloads(inventory: Inventory) -> Iterator[Manifest]:
    every = chain.from_iterable(inventory.of_kind(kind) for kind in _KINDS)
    yield from (one for one in every if not _has_deployment(one, inventory))


def _has_deployment(workload: Manifest, inventory: Inventory) -> bool:
    """Return whether the controller of `workload` is a Deployment in `inventory`."""
    owner = workload.controller
    return (
        owner is not None
        and owner.kind == DEPLOYMENT.kind
        and inventory.get(DEPLOYMENT, workload.ref.namespace, owner.name) is not None
    )


def _replica_sets_of_deployments(
    inventory: Inventory,
) -> dict[tuple[str, str, str], list[Manifest]]:
    """Return the ReplicaSets of each Deployment by the `identity` of the Deployment."""
    found: dict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
    for one in inventory.of_kind(REPLICA_SET):
        owner = one.controller
        if owner is not None and owner.kind == DEPLOYMENT.kind:
            found[DEPLOYMENT.resource, one.ref.namespace, owner.name].append(one)
    return found


def _why(workload: Manifest, status: Json, replica_sets: Sequence[Manifest]) -> tuple[str, str]:
    """Return (why `workload` lacks pods, timestamp since which it lacks them); "" means unknown.

    `status` is its status, and `replica_sets` are the ReplicaSets of a Deployment.
    """
    statuses = (status, *(mapping(one.value, "status") for one in replica_sets))
    for one in (one for each in statuses for one in items(each, "conditions")):
        if (text(one, "type"), text(one, "status")) == ("ReplicaFailure", "True"):
            why = text(one, "message") or text(one, "reason")
            return why.rstrip("."), text(one, "lastTransitionTime")
    spec = mapping(workload.value, "spec")
    # A paused Deployment scales the ReplicaSets that it has.
    if workload.kind is DEPLOYMENT and spec.get("paused") is True and not replica_sets:
        return "it is paused", ""
    is_ordered = workload.kind is STATEFUL_SET and spec.get("podManagementPolicy") != PARALLEL
    if is_ordered and number(status, "availableReplicas") < number(status, "replicas"):
        return "it creates a pod only if all pods with lower numbers are ready", ""
    if workload.kind is JOB and number(status, "failed"):
        # upstream: pkg/controller/job/job_controller.go: MaxJobPodFailureBackOff
        return "its controller has not created them; after failures, it waits up to 10 minutes", ""
    return "its controller has not created them", ""
