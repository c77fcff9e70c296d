"""Small predicates and lookups on pods, used by many packages."""

from __future__ import annotations

from typing import Final

from fairlead.api.finalizer import FOREGROUND, JOB_TRACKING, ORPHAN
from fairlead.api.objects import (
    Container,
    Job,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodCondition,
)

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
SOURCE_API: Final = "api"


def pod_priority(pod: Pod) -> int:
    """Return the pod's priority; 0 if admission has not set it."""
    # upstream: component-helpers/scheduling/corev1/helpers.go:PodPriority
    return pod.spec.priority or 0


def has_negative_priority(pod: Pod) -> bool:
    """Return whether the pod has a negative priority, and so exists to give way to other pods."""
    return pod_priority(pod) < 0


def preempts_lower(pod: Pod) -> bool:
    """Return True if the pod may preempt pods of lower priority."""
    return pod.spec.preemption_policy != "Never"


def is_terminal(pod: Pod) -> bool:
    """Return True if the pod has succeeded or failed, so that it no longer uses resources."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_terminating(pod: Pod) -> bool:
    """Return True if the pod is being deleted; it uses its resources until it is gone."""
    return pod.metadata.deletion_timestamp != ""


def differs_in_status_only(before: Pod, after: Pod) -> bool:
    """Return True if two versions of a pod certainly differ only in status and resourceVersion.

    For speed, the spec, labels, annotations and owner references are compared by identity. If one
    of them was replaced by an equal object, the result is False.
    """
    old, new = before.metadata, after.metadata
    return (
        before.spec is after.spec
        and old.uid == new.uid
        and old.owner_references is new.owner_references
        and old.labels is new.labels
        and old.annotations is new.annotations
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
    )


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner with `controller: true`, None if there is no such owner."""
    # upstream: apimachinery/pkg/apis/meta/v1/controller_ref.go:GetControllerOf
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None


def container_restarts(pod: Pod) -> int:
    """Return how often the containers and init containers of `pod` were restarted, in total."""
    restarts = 0  # a loop, because it is called for each change of a pod's containers
    for one in pod.status.init_container_statuses:
        restarts += one.restart_count
    for one in pod.status.container_statuses:
        restarts += one.restart_count
    return restarts


def workload(pod: Pod) -> str:
    """Return the workload of a pod: `Kind/namespace/name` of its controller.

    A pod without a controller is its own workload, `Pod/namespace/name`.
    """
    owner = controller_of(pod.metadata)
    namespace = pod.metadata.namespace
    if owner is None:
        return f"Pod/{namespace}/{pod.metadata.name}"
    return f"{owner.kind}/{namespace}/{owner.name}"


def is_daemon_pod(pod: Pod) -> bool:
    """Return True if a DaemonSet manages the pod, so that it cannot move to another node."""
    controller = controller_of(pod.metadata)
    return controller is not None and controller.kind == "DaemonSet"


def is_static(pod: Pod) -> bool:
    """Return True if the pod is a static pod or a mirror pod, which only its node can end."""
    # upstream: pkg/kubelet/types/pod_update.go:IsMirrorPod, IsStaticPod; mirror pods are owned by
    # their Node object (pkg/kubelet/pod/mirror_client.go:CreateMirrorPod)
    annotations = pod.metadata.annotations
    if (
        MIRROR_ANNOTATION in annotations
        or annotations.get(SOURCE_ANNOTATION, SOURCE_API) != SOURCE_API
    ):
        return True
    for owner in pod.metadata.owner_references:  # noqa: SIM110, because it is called for all pods
        if owner.kind == "Node":
            return True
    return False


def is_guard(pod: Pod) -> bool:
    """Return True if the pod is a guard pod of OpenShift.

    Disruption budgets cannot protect the static pods of the control plane. Budgets protect guard
    pods instead: a guard pod runs on the node of a static pod and represents that pod. A guard pod
    has no controller. If a guard pod is deleted, an operator of OpenShift creates it again once the
    node is schedulable.
    """
    # upstream: openshift/library-go pkg/operator/staticpod/controller/guard/guard_controller.go
    meta, node = pod.metadata, pod.spec.node_name
    return (
        meta.labels.get("app") == "guard"
        and not meta.owner_references
        and bool(node)
        and meta.name.endswith(f"-guard-{node}")
    )


def belongs_to_node(pod: Pod) -> bool:
    """Return True if the pod cannot move to another node.

    The result is True for pods of DaemonSets, static pods, mirror pods and guard pods.
    """
    return is_daemon_pod(pod) or is_static(pod) or is_guard(pod)


def foreign_finalizers(pod: Pod) -> tuple[str, ...]:
    """Return the finalizers of `pod` that no controller of Kubernetes removes.

    A pod with such a finalizer stays in the API, and on its node, after its containers have ended.
    """
    own = (FOREGROUND, ORPHAN, JOB_TRACKING)
    return tuple(one for one in pod.metadata.finalizers if one not in own)


def is_sidecar(container: Container) -> bool:
    """Return True if the init container `container` keeps running beside the main containers."""
    return container.restart_policy == "Always"


def condition(subject: Pod | Node | Job, condition_type: str) -> PodCondition | None:
    """Return the first condition of type `condition_type` in the status, or None."""
    # upstream: pkg/api/v1/pod/util.go:GetPodConditionFromList
    for one in subject.status.conditions:
        if one.type == condition_type:
            return one
    return None
