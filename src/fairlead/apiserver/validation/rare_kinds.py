"""Validates, for simulations, the kinds that few simulations contain or change.

This module imports many other modules. Therefore the module `simulation` imports this module only
to validate an object of these kinds.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    CronJob,
    CSIStorageCapacity,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    Job,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
    Unstructured,
    VolumeNodeAffinity,
)
from fairlead.api.quantity_check import quantity_check
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import WORKLOAD
from fairlead.apiserver.validation.admissionregistration.loaded_form import (
    GROUP,
    check_admission_form,
)
from fairlead.apiserver.validation.batch.job import (
    check_new_scheduled_cron_job,
    check_scheduled_job,
)
from fairlead.apiserver.validation.core.limit_form import check_limit_range_form, check_quota_form
from fairlead.apiserver.validation.core.limit_range import check_limit_range
from fairlead.apiserver.validation.core.resource import NOT_A_QUANTITY, check_quantities
from fairlead.apiserver.validation.core.volume.claim import check_modes
from fairlead.apiserver.validation.core.volume.persistent_volume import check_provisioning
from fairlead.apiserver.validation.meta.field import invalid, non_negative, required
from fairlead.apiserver.validation.meta.selector import check_node_selector
from fairlead.apiserver.validation.pod_group import (
    check_scheduled_gang_workload,
)
from fairlead.apiserver.validation.resource.resource_slice import check_scheduled_slice
from fairlead.apiserver.validation.scaling_policy import check_scale_to_zero, check_scaling_policies


def check_rare(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules that apply both to new objects and to stored ones; yield the errors.

    `view` is the typed view of `obj`.
    """
    match view:
        case Job() | CronJob():
            yield from check_scheduled_job(view)
        case PersistentVolume():
            yield from check_modes("spec", view.spec.access_modes)
            yield from check_quantities("spec.capacity", view.spec.capacity)
            yield from _check_volume_affinity(view.spec.node_affinity)
        case PersistentVolumeClaim():
            requests = view.spec.resources.requests
            yield from check_modes("spec", view.spec.access_modes)
            yield from check_quantities("spec.resources.requests", requests)
        case StorageClass():
            yield from check_provisioning(obj)
        case HorizontalPodAutoscaler():
            yield from _check_replica_bounds(view.spec)
            yield from _check_policies((obj.get("spec") or {}).get("behavior") or {})
            yield from _check_quantities_parse(view)
        case CSIStorageCapacity() | ResourceClaim():
            yield from _check_quantities_parse(view)
        case ResourceSlice():
            yield from check_scheduled_slice(obj)
            yield from _check_quantities_parse(view)
        case Unstructured():
            yield from _check_unstructured(obj, view)


def _check_unstructured(obj: Json, view: Unstructured) -> Iterator[Cause]:
    """Yield the errors of `obj`, whose kind has no typed view."""
    match view:
        case Unstructured(api_version=WORKLOAD.api_version, kind=WORKLOAD.kind):
            yield from check_scheduled_gang_workload(obj)
        case Unstructured(api_version="v1", kind="LimitRange"):
            yield from check_limit_range_form(obj)
        case Unstructured(api_version="v1", kind="ResourceQuota"):
            yield from check_quota_form(obj)
        case Unstructured(api_version=version) if version.startswith(GROUP):
            yield from check_admission_form(obj)


def check_new_rare(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules that apply to new objects, but not to stored ones; yield the errors.

    `view` is the typed view of `obj`.
    """
    match view:
        case CronJob():
            yield from check_new_scheduled_cron_job(obj, view)
        case Unstructured(api_version="v1", kind="LimitRange"):
            if not any(check_limit_range_form(obj)):  # else its amounts cannot be compared
                yield from check_limit_range(obj)
        case _:
            return


def _check_replica_bounds(spec: HorizontalPodAutoscalerSpec) -> Iterator[Cause]:
    yield from non_negative("spec.minReplicas", spec.min_replicas)
    if spec.max_replicas < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif spec.max_replicas < spec.min_replicas:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid("spec.maxReplicas", spec.max_replicas, why)
    # minReplicas may be 0, because the cluster may have the feature gate HPAScaleToZero.
    yield from check_scale_to_zero(spec.min_replicas, (one.type for one in spec.metrics))


def _check_policies(behavior: Json) -> Iterator[Cause]:
    for direction in ("scaleUp", "scaleDown"):
        rules = behavior.get(direction) or {}
        yield from check_scaling_policies(f"spec.behavior.{direction}", rules)


def _check_volume_affinity(affinity: VolumeNodeAffinity | None) -> Iterator[Cause]:
    """Yield the errors of `affinity`. Label values are not checked."""
    if affinity is not None and affinity.required is not None:
        yield from check_node_selector(
            "spec.nodeAffinity.required", affinity.required, strict=False
        )


def _check_quantities_parse(view: ApiObject) -> Iterator[Cause]:
    """Yield an error for the first malformed quantity in `view`."""
    check = quantity_check(type(view))
    wrong = None if check is None else check(view)
    if wrong is not None:
        yield invalid(wrong.field, wrong.text, NOT_A_QUANTITY)
