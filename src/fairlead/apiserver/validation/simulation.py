"""The part of validation that simulations use: the rules that affect decisions.

A simulated cluster stores objects as scenario authors write them, without the fields that no
controller reads. So the rules about these fields are left out. Each function applies a part of the
rules of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    ContainerStatus,
    CSIStorageCapacity,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    Job,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PodStatus,
    PriorityClass,
    Queue,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    StatefulSet,
    Unstructured,
)
from fairlead.api.quantity_check import quantity_check
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    WORKLOAD,
    Kind,
)
from fairlead.apiserver.validation.admissionregistration.loaded_form import (
    GROUP,
    check_admission_form,
)
from fairlead.apiserver.validation.apps.workload import (
    ONLY_THESE,
    check_new_scheduled_controller,
    check_new_scheduled_workload,
    check_runnable_template,
    check_scheduled_controller,
    check_scheduled_workload,
)
from fairlead.apiserver.validation.batch.job import check_new_scheduled_job, check_scheduled_job
from fairlead.apiserver.validation.core.limit_form import check_limit_range_form, check_quota_form
from fairlead.apiserver.validation.core.node import check_scheduled_node
from fairlead.apiserver.validation.core.pod.spec import (
    check_new_scheduled_spec,
    check_runnable_spec,
    check_scheduled_pod,
)
from fairlead.apiserver.validation.core.resource import (
    NOT_A_QUANTITY,
    check_quantities,
    quantity_or_none,
)
from fairlead.apiserver.validation.meta.field import forbidden, invalid, non_negative, required
from fairlead.apiserver.validation.meta.format import IMMUTABLE
from fairlead.apiserver.validation.pod_group import (
    check_scheduled_gang_workload,
    check_scheduled_pod_group,
)
from fairlead.apiserver.validation.policy import check_disruption_budget
from fairlead.apiserver.validation.scheduling import (
    check_pod_group,
    check_priority_class,
    check_queue,
)

_FIXED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    DAEMON_SET.resource: ("selector",),
    DEPLOYMENT.resource: ("selector",),
    REPLICA_SET.resource: ("selector",),
    STATEFUL_SET.resource: ("selector", "serviceName", "podManagementPolicy"),
}


def check_stored(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Yield the errors that are refused in both new and stored objects."""
    match view:
        case Pod():
            yield from check_scheduled_pod(view)
            yield from _check_resized_amounts(view.status)
        case Node():
            yield from check_scheduled_node(view)
        case PodDisruptionBudget():
            yield from check_disruption_budget(obj, view)
        case PriorityClass():
            yield from check_priority_class(view)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_scheduled_workload(view)
        case ReplicationController():
            yield from check_scheduled_controller(view)
        case Job():
            yield from check_scheduled_job(view)
        case Queue():
            yield from check_queue(view)
        case PodGroup():
            is_native = view.api_version == POD_GROUP.api_version
            yield from check_scheduled_pod_group(obj) if is_native else check_pod_group(view)
        case _:
            yield from _check_stored_amounts(obj, view)


def _check_resized_amounts(status: PodStatus) -> Iterator[Cause]:
    """Yield the malformed amounts of resizes, which the scheduler reads from the status."""
    yield from _check_amounts("status", status)
    for field, containers in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for number, container in enumerate(containers):
            yield from _check_amounts(f"status.{field}[{number}]", container)


def _check_amounts(field: str, part: PodStatus | ContainerStatus) -> Iterator[Cause]:
    if part.resources is None and not part.allocated_resources:
        return
    lists = {"allocatedResources": part.allocated_resources}
    if part.resources is not None:
        lists["resources.requests"] = part.resources.requests
        lists["resources.limits"] = part.resources.limits
    for name, amounts in lists.items():
        for resource, text in amounts.items():
            if quantity_or_none(text) is None:
                yield invalid(f"{field}.{name}[{resource}]", str(text), NOT_A_QUANTITY)


def _check_replica_bounds(spec: HorizontalPodAutoscalerSpec) -> Iterator[Cause]:
    """Yield the errors of the bounds within which a HorizontalPodAutoscaler acts."""
    yield from non_negative("spec.minReplicas", spec.min_replicas)
    if spec.max_replicas < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif spec.max_replicas < spec.min_replicas:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid("spec.maxReplicas", spec.max_replicas, why)


def _check_stored_amounts(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Yield the errors of types, amounts and bounds in kinds without other rules."""
    match view:
        case PersistentVolume():
            yield from check_quantities("spec.capacity", view.spec.capacity)
        case PersistentVolumeClaim():
            requests = view.spec.resources.requests
            yield from check_quantities("spec.resources.requests", requests)
        case HorizontalPodAutoscaler():
            yield from _check_replica_bounds(view.spec)
            yield from _check_quantities_parse(view)
        case CSIStorageCapacity() | ResourceClaim() | ResourceSlice():
            yield from _check_quantities_parse(view)
        case Unstructured(api_version=WORKLOAD.api_version, kind=WORKLOAD.kind):
            yield from check_scheduled_gang_workload(obj)
        case Unstructured(api_version="v1", kind="LimitRange"):
            yield from check_limit_range_form(obj)
        case Unstructured(api_version="v1", kind="ResourceQuota"):
            yield from check_quota_form(obj)
        case Unstructured(api_version=version) if version.startswith(GROUP):
            yield from check_admission_form(obj)
        case _:
            return


def _check_quantities_parse(view: ApiObject) -> Iterator[Cause]:
    """Yield the first quantity that does not parse."""
    check = quantity_check(type(view))
    wrong = None if check is None else check(view)
    if wrong is not None:
        yield invalid(wrong.field, wrong.text, NOT_A_QUANTITY)


def check_new(view: ApiObject) -> Iterator[Cause]:
    """Yield the errors that a stored object may have but a new object must not have."""
    match view:
        case Pod():
            yield from check_new_scheduled_spec("spec", view.spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_new_scheduled_workload(view)
        case ReplicationController():
            yield from check_new_scheduled_controller(view)
        case Job():
            yield from check_new_scheduled_job(view)
        case _:
            return


def check_fixed_fields(kind: Kind, old: Json, new: Json) -> Iterator[Cause]:
    """Yield the errors of an update that changes a fixed field of a workload.

    Other fixed fields, such as the claims of a StatefulSet, are not compared, because the objects
    of a simulation have only some defaults. A field that the old object lacks is not compared
    either.

    upstream: pkg/registry/apps/deployment/strategy.go:ValidateUpdate,
    pkg/apis/apps/validation/validation.go:ValidateStatefulSetUpdate
    """
    names = _FIXED_FIELDS.get(kind.resource, ())
    before, after = old.get("spec") or {}, new.get("spec") or {}
    changed = [one for one in names if one in before and before[one] != after.get(one)]
    if changed and kind is STATEFUL_SET:
        yield forbidden("spec", ONLY_THESE)
        return
    for name in changed:
        yield invalid(f"spec.{name}", after.get(name), IMMUTABLE)


def check_runnable(view: ApiObject) -> Iterator[Cause]:
    """Yield the errors that prevent a kubelet from running a pod or the pods of a workload."""
    match view:
        case Pod():
            yield from check_runnable_spec("spec", view.spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_runnable_template(view.spec.template)
        case ReplicationController() if not view.spec.template:
            return
        case ReplicationController() | Job():
            yield from check_runnable_template(view.spec.template)
        case _:
            return
