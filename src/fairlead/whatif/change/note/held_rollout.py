"""Explains why a changed workload replaces no pods, or creates none.

A paused Deployment starts no rollout and creates no ReplicaSet. Some workloads do not replace their
pods when their template changes: StatefulSets and DaemonSets with the update strategy OnDelete,
ReplicaSets, and ReplicationControllers. A StatefulSet with the policy OrderedReady waits for each
unready pod before it replaces, creates or deletes other pods. If a StatefulSet has a partition, its
first pods are not replaced. A workload that is being deleted changes no pods. A workload whose
namespace is being deleted creates no pods.

upstream: pkg/controller/deployment/deployment_controller.go: syncDeployment,
pkg/controller/statefulset/stateful_set_control.go: processReplica, updateStatefulSet,
pkg/controller/daemon/daemon_controller.go: syncDaemonSet,
pkg/controller/replicaset/replica_set.go: syncReplicaSet,
pkg/controller/job/job_controller.go: syncJob,
pkg/controller/cronjob/cronjob_controllerv2.go: syncCronJob
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, mapping
from fairlead.api.nodes.readiness import TRUE, UNKNOWN, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import Pod, StatefulSet
from fairlead.api.pods.facts import condition, is_terminating
from fairlead.api.text.count import counted_of
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.kubelet.pod_lifecycle import fails_to_start
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.stateful_set.rule import ON_DELETE, is_ordered, ordinals_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_WITHOUT_ROLLOUT: Final = (REPLICA_SET, REPLICATION_CONTROLLER)
_WITH_UPDATE_STRATEGY: Final = (STATEFUL_SET, DAEMON_SET)
_WITH_TEMPLATE: Final = (DEPLOYMENT, *_WITH_UPDATE_STRATEGY, *_WITHOUT_ROLLOUT)


def ignores_change(workload: Manifest, after: Json, inventory: Inventory) -> str:
    """Return why the change of `workload` to `after` changes no pods; "" if it may change pods.

    No pods change if the workload or its namespace is being deleted. `inventory` contains the
    namespaces.
    """
    if workload.kind not in (*_WITH_TEMPLATE, JOB, CRON_JOB):
        return ""
    if after.get("spec") == workload.value.get("spec"):
        return ""
    meta = workload.value["metadata"]
    if not meta.get("deletionTimestamp"):
        namespace = inventory.get(NAMESPACE, "", workload.ref.namespace)
        if namespace is None or not namespace.value["metadata"].get("deletionTimestamp"):
            return ""
        # upstream: namespaced_resources_deleter.go:Delete, lifecycle/admission.go:Admit
        return (
            f"Namespace {workload.ref.namespace} is being deleted, so {workload.title} creates no "
            "pods, and is deleted with it."
        )
    names = meta.get("finalizers") or ()
    waits = f" (finalizer {' and '.join(names)})" if names else ""
    return f"{workload.title} is being deleted{waits}, so its controller ignores the change."


def held_rollout(before: Manifest, after: Json, inventory: Inventory) -> str:
    """Return why the workload `before` keeps old pods when it changes to `after`.

    The rollout of a StatefulSet may wait for a pod that is not ready, or may replace only some of
    the pods. The result is "" if the template does not change, or if the rollout replaces all pods.
    The result is also "" for kinds other than Deployment, StatefulSet, DaemonSet, ReplicaSet and
    ReplicationController.
    """
    if before.kind not in _WITH_TEMPLATE or _template(after) == _template(before.value):
        return ""
    spec = after.get("spec") or {}
    if before.kind is DEPLOYMENT and spec.get("paused"):
        return f"{before.title} is paused, so its new template replaces no pods."
    strategy = spec.get("updateStrategy") or {}
    if before.kind in _WITH_UPDATE_STRATEGY and strategy.get("type") == ON_DELETE:
        return f"{before.title} has the update strategy OnDelete, so it replaces only deleted pods."
    if before.kind in _WITHOUT_ROLLOUT:
        return f"{before.title} applies its new template only to pods that it creates later."
    if before.kind is not STATEFUL_SET:
        return ""
    changed = decode_as(StatefulSet, after)
    ordinals = ordinals_of(changed)
    if unready := _awaited(before, changed, inventory):
        return f"The rollout of {before.title} waits until its pod {unready} is ready."
    partition = changed.spec.update_strategy.rolling_update.partition
    kept = ordinals[:partition]
    if not kept:
        return ""
    pods_keep = counted_of(len(kept), len(ordinals), "pod", ("keeps", "keep"))
    keeps = f"{pods_keep} the old template"
    if len(kept) == len(ordinals):
        keeps = "its new template replaces no pods"
    return f"{before.title} has the partition {partition:,}, so {keeps}."


def _template(workload: Json) -> Json | None:
    template: Json | None = (workload.get("spec") or {}).get("template")
    return template


def _awaited(owner: Manifest, changed: StatefulSet, inventory: Inventory) -> str:
    """Return the name of the first pod of `owner` that is not ready; "" if there is none.

    A pod that is still starting does not count. An unschedulable pod counts, although the change
    may give the pod a node, because the StatefulSet waits for the pod in any case.

    `changed` is the StatefulSet after the change. Pods whose ordinals `changed` does not want are
    ignored. Return "" if the podManagementPolicy of `owner` is Parallel: such a StatefulSet does
    not wait for its pods.
    """
    if not is_ordered(changed):
        return ""
    # upstream: stateful_set_control.go:processReplica, which is called in the order of ordinals
    ordinals, unready = ordinals_of(changed), dict[int, str]()
    for pod in inventory.pods_of(owner):
        ordinal = ordinal_of(owner.ref.name, pod.metadata.name)
        if ordinal is not None and ordinal in ordinals and _stays_unready(pod, inventory):
            unready[ordinal] = pod.metadata.name
    return unready[min(unready)] if unready else ""


def _stays_unready(pod: Pod, inventory: Inventory) -> bool:
    if is_terminating(pod):  # it is replaced as soon as it is gone
        return _is_silent(inventory.get(NODE, "", pod.spec.node_name))
    ready = condition(pod, "Ready")
    is_unready = pod.status.phase == "Running" and ready is not None and ready.status != TRUE
    is_pending = pod.status.phase == "Pending"
    return is_unready or (is_pending and (fails_to_start(pod) or _is_unschedulable(pod)))


def _is_unschedulable(pod: Pod) -> bool:
    """Return whether the scheduler of the dumped cluster found no node for `pod`."""
    scheduled = condition(pod, "PodScheduled")
    return not pod.spec.node_name and scheduled is not None and scheduled.status != TRUE


def _is_silent(node: Manifest | None) -> bool:
    """Return whether the kubelet of `node` does not answer, so that its pods stay terminating."""
    if node is None or ready_status(node.node) != UNKNOWN:
        return False
    return all(taint.key != OUT_OF_SERVICE for taint in node.node.spec.taints)


def held_in_order(before: Manifest, after: Json, inventory: Inventory) -> str:
    """Return why the workload `before` waits when it is scaled; "" if it does not wait.

    `after` is the workload after the change. A StatefulSet with the policy OrderedReady creates or
    deletes pods only while all pods that it keeps are ready.
    """
    if before.kind is not STATEFUL_SET or _replicas(after) == _replicas(before.value):
        return ""
    if not (unready := awaited_in_order(before, after, inventory)):
        return ""
    return f"{before.title} creates and deletes no pods until its pod {unready} is ready."


def awaited_in_order(owner: Manifest, after: Json, inventory: Inventory) -> str:
    """Return the name of the unready pod for which `owner` waits before it creates or deletes pods.

    `after` is `owner` after the change. Return "" if there is no such pod, or if `owner` is not a
    StatefulSet with the policy OrderedReady.
    """
    if owner.kind is not STATEFUL_SET:
        return ""
    return _awaited(owner, decode_as(StatefulSet, after), inventory)


def awaited_in_rollout(before: Manifest, after: Json, inventory: Inventory) -> ObjectRef | None:
    """Return the unready pod for which the rollout of a StatefulSet waits.

    `after` is the workload `before` after the change. Return None if there is no such pod, or if
    the template does not change. Also return None if the workload is not a StatefulSet, or if its
    update strategy is OnDelete.
    """
    if before.kind is not STATEFUL_SET or _template(after) == _template(before.value):
        return None
    if mapping(after, "spec", "updateStrategy").get("type") == ON_DELETE:
        return None
    name = awaited_in_order(before, after, inventory)
    return ObjectRef(POD.kind, before.ref.namespace, name) if name else None


def _replicas(stateful_set: Json) -> int:
    replicas: int = (stateful_set.get("spec") or {}).get("replicas", 1)
    return replicas


def held_scaling(workload: Manifest, inventory: Inventory) -> str:
    """Return why `workload` creates no pods when it is scaled; "" if it creates pods."""
    spec = workload.value.get("spec") or {}
    if workload.kind is not DEPLOYMENT or not spec.get("paused"):
        return ""
    if any(one.is_controlled_by(workload) for one in inventory.of_kind(REPLICA_SET)):
        return ""
    return f"{workload.title} is paused and has no ReplicaSet, so it creates no pods."
