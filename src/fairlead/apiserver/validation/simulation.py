"""The part of validation that simulations use: the rules that affect decisions.

A simulated cluster stores objects as scenario authors write them. Such an object often has only the
fields that controllers or schedulers read. The rules about other fields are therefore left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    ContainerStatus,
    CronJob,
    CSIStorageCapacity,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
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
    StorageClass,
    Unstructured,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.validation.apps.workload import (
    ONLY_THESE,
    check_new_scheduled_controller,
    check_new_scheduled_workload,
    check_runnable_template,
    check_scheduled_besides_template,
    check_scheduled_controller,
    check_scheduled_workload,
)
from fairlead.apiserver.validation.core.node import check_scheduled_node
from fairlead.apiserver.validation.core.pod.spec import (
    check_new_scheduled_spec,
    check_no_ephemeral_containers,
    check_runnable_spec,
    check_scheduled_pod,
)
from fairlead.apiserver.validation.core.resource import (
    NOT_A_QUANTITY,
    quantity_or_none,
)
from fairlead.apiserver.validation.meta.field import forbidden, invalid
from fairlead.apiserver.validation.meta.format import IMMUTABLE
from fairlead.apiserver.validation.pod_group import (
    check_scheduled_pod_group,
)
from fairlead.apiserver.validation.policy import check_disrupted_pods, check_disruption_budget
from fairlead.apiserver.validation.scheduling import (
    check_pod_group,
    check_priority_class,
    check_queue,
)
from fairlead.apiserver.validation.view_facts import check_view_facts

_FIXED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    DAEMON_SET.resource: ("selector",),
    DEPLOYMENT.resource: ("selector",),
    REPLICA_SET.resource: ("selector",),
    STATEFUL_SET.resource: ("selector", "serviceName", "podManagementPolicy"),
}
# Classes of frequent objects to which only the rules of `check_stored` apply.
_CHECKED_WHEN_STORED_ONLY: Final = frozenset((Node, PodDisruptionBudget))


def check_stored(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules that apply both to new objects and to stored ones; yield the errors.

    `view` is the typed view of `obj`.
    """
    # The most frequent classes are not matched, because `match` is slow (STYLE.md, rule 19).
    if type(view) is Pod:
        yield from check_scheduled_pod(view)
        yield from check_reported_amounts(view.status)
        return
    if type(view) is Node:
        yield from check_scheduled_node(view)
        return
    if type(view) is PodDisruptionBudget:
        yield from check_disruption_budget(obj, view)
        yield from check_disrupted_pods(view)
        return
    match view:
        case PriorityClass():
            yield from check_priority_class(view)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_scheduled_workload(view)
        case ReplicationController():
            yield from check_scheduled_controller(view)
        case Queue():
            yield from check_queue(view)
        case PodGroup():
            is_native = view.api_version == POD_GROUP.api_version
            yield from check_scheduled_pod_group(obj) if is_native else check_pod_group(view)
        case (
            Job()
            | CronJob()
            | PersistentVolume()
            | PersistentVolumeClaim()
            | HorizontalPodAutoscaler()
            | CSIStorageCapacity()
            | ResourceClaim()
            | ResourceSlice()
            | StorageClass()
            | Unstructured()
        ):
            from fairlead.apiserver.validation.rare_kinds import check_rare  # noqa: PLC0415

            yield from check_rare(obj, view)
        case _:
            return


def check_simulated(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules of `check_stored` and the fields that decisions read; yield the errors.

    The fields are checked only if `check_stored` finds no error. An API server checks these fields
    only in new objects. A simulation checks them in stored objects too, because a dump may have
    been edited.
    """
    is_valid = True
    for cause in check_stored(obj, view):
        is_valid = False
        yield cause
    if is_valid and not isinstance(view, Pod | Node):  # `check_stored` checks the facts about these
        yield from check_view_facts(view)


def check_simulated_besides_template(
    workload: Deployment | ReplicaSet | StatefulSet | DaemonSet,
) -> Iterator[Cause]:
    """Yield the errors of `check_simulated` that do not concern the pod template."""
    yield from check_scheduled_besides_template(workload)
    yield from check_view_facts(workload)


def check_reported_amounts(status: PodStatus) -> Iterator[Cause]:
    """Yield the errors of the amounts of resources in a pod's status.

    The scheduler reads these amounts during a resize.
    """
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


def check_created(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Yield the errors of a created object, by the rules of `check_new` and one more rule.

    A created pod must not have ephemeral containers.
    """
    yield from check_new(obj, view)
    if isinstance(view, Pod):
        yield from check_no_ephemeral_containers(obj)


def check_new(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules that apply to new objects, but not to stored ones; yield the errors.

    `view` is the typed view of `obj`. An update of an object may keep such errors, but not add any.
    """
    if type(view) in _CHECKED_WHEN_STORED_ONLY:
        return
    match view:
        case Pod():
            yield from check_new_scheduled_spec("spec", view.spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_new_scheduled_workload(view)
        case ReplicationController():
            yield from check_new_scheduled_controller(view)
        case Job():
            from fairlead.apiserver.validation.batch.job import (  # noqa: PLC0415
                check_new_scheduled_job,
            )

            yield from check_new_scheduled_job(view)
        case CronJob() | Unstructured(api_version="v1", kind="LimitRange"):
            from fairlead.apiserver.validation.rare_kinds import check_new_rare  # noqa: PLC0415

            yield from check_new_rare(obj, view)
        case _:
            return


def check_fixed_fields(kind: Kind, old: Json, new: Json) -> Iterator[Cause]:
    """Yield errors if an update changes an immutable field of a workload.

    A field is compared only if it is in `_FIXED_FIELDS` and the old object has it. Other immutable
    fields, such as volumeClaimTemplates, are not compared, because one of the two objects may lack
    a default that the other has.

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
    if type(view) in _CHECKED_WHEN_STORED_ONLY:
        return
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
