"""Validates PodGroups and Workloads of scheduling.k8s.io/v1alpha2.

upstream: staging/src/k8s.io/api/scheduling/v1alpha2/types.go (declarative validation),
pkg/apis/scheduling/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import POD_GROUP, WORKLOAD, Kind
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.validation.meta.field import Causes, duplicate, forbidden, invalid, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_subdomain,
    path_segment_problems,
)
from fairlead.apiserver.validation.status import check_status_conditions

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_POLICIES: Final = ("basic", "gang")
_VERSION: Final = "scheduling.v1alpha2"
# Fields that are not implemented, and the feature gates to which they belong.
_UNSUPPORTED: Final = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "DRAWorkloadResourceClaims",
}


def check_pod_group(obj: Json) -> Causes:
    """Yield the errors of a PodGroup."""
    spec = obj.get("spec") or {}
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        yield from _check_template_reference("spec.podGroupTemplateRef", reference)
    yield from _check_group("spec", "PodGroupSpec", spec)


def check_scheduled_pod_group(obj: Json) -> Causes:
    """Yield the errors of a PodGroup in a simulation.

    It is an error to set a field that Fairlead does not implement (see `_UNSUPPORTED`). An API
    server, in contrast, drops such a field from new PodGroups while the field's feature gate is
    off.
    """
    wrong = _wrong_type(POD_GROUP, obj)
    if wrong is not None:
        yield wrong
        return
    yield from check_pod_group(obj)
    spec = obj.get("spec") or {}
    for name, gate in _UNSUPPORTED.items():
        if spec.get(name):
            why = f"needs the feature gate {gate}, which is not implemented"
            yield forbidden(f"spec.{name}", why)


def check_pod_group_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the conditions in a PodGroup's status."""
    conditions = (new.get("status") or {}).get("conditions") or []
    yield from check_status_conditions("status.conditions", conditions)


def check_workload(obj: Json) -> Causes:
    """Yield the errors of a Workload."""
    spec = obj.get("spec") or {}
    controller = spec.get("controllerRef")
    if controller is not None:
        yield from _check_controller("spec.controllerRef", controller)
    field = "spec.podGroupTemplates"
    templates = spec.get("podGroupTemplates") or []
    if not templates:
        yield required(field)
    yield from check_fields("spec", f"{_VERSION}.WorkloadSpec", spec)
    names: set[str] = set()
    for number, template in enumerate(templates):
        where, name = f"{field}[{number}]", template.get("name") or ""
        if name and name in names:
            yield duplicate(where, {"name": name})
        names.add(name)
        yield from _check_name(f"{where}.name", name, check_dns_label)
        yield from _check_group(where, "PodGroupTemplate", template)


def check_scheduled_gang_workload(obj: Json) -> Causes:
    """Yield the errors that a simulation finds in a Workload of the group scheduling.k8s.io.

    If fields in the spec have wrong types, the only error is that of the first such field.
    """
    wrong = _wrong_type(WORKLOAD, obj)
    if wrong is None:
        yield from check_workload(obj)
    else:
        yield wrong


def _wrong_type(kind: Kind, obj: Json) -> Cause | None:
    """Return the error of the first field in the spec that has a wrong type.

    Return None if all types are right.
    """
    from fairlead.apiserver.schema.decoder import decoded  # noqa: PLC0415
    from fairlead.apiserver.schema.scalar import TypeMismatchError  # noqa: PLC0415

    schema = schema_of(kind.stored_as, kind.kind)
    assert schema is not None
    try:
        decoded(schema, {"spec": obj.get("spec")})
    except TypeMismatchError as cause:
        return Cause("FieldValueInvalid", str(cause), "spec")
    return None


def _check_group(field: str, of: str, group: Json) -> Causes:
    """Yield the errors of the fields that PodGroups and their templates share.

    `of` is the name of the type of `group`, such as `PodGroupSpec`.
    """
    policy = group.get("schedulingPolicy") or {}
    yield from _check_union(f"{field}.schedulingPolicy", policy, _POLICIES)
    gang = policy.get("gang")
    if gang is not None:
        where = f"{field}.schedulingPolicy.gang"
        yield from check_fields(where, f"{_VERSION}.GangSchedulingPolicy", gang)
    yield from check_fields(field, f"{_VERSION}.{of}", group)
    name = group.get("priorityClassName")
    if name:
        yield from check_subdomain(f"{field}.priorityClassName", name)
    priority = group.get("priority")
    if priority is not None and priority > HIGHEST_USER_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
        yield invalid(f"{field}.priority", priority, why)


def _check_template_reference(field: str, reference: Json) -> Causes:
    yield from _check_union(field, reference, ("workload",))
    workload = reference.get("workload")
    if workload is None:
        return
    of = f"{_VERSION}.WorkloadPodGroupTemplateReference"
    yield from check_fields(f"{field}.workload", of, workload)


def _check_controller(field: str, reference: Json) -> Causes:
    if reference.get("apiGroup"):
        yield from check_subdomain(f"{field}.apiGroup", reference["apiGroup"])
    for name in ("kind", "name"):
        yield from _check_name(f"{field}.{name}", reference.get(name) or "", _check_path_segment)


def _check_path_segment(field: str, text: str) -> Causes:
    for problem in path_segment_problems(text):
        yield invalid(field, text, problem)


def _check_name(field: str, text: str, check: Callable[[str, str], Causes]) -> Causes:
    if text:
        yield from check(field, text)
    else:
        yield required(field)


def _check_union(field: str, union: Json, members: tuple[str, ...]) -> Causes:
    """Yield an error unless exactly one of `members` is set.

    upstream: apimachinery/pkg/api/validate/union.go: Union
    """
    found: list[Any] = [name for name in members if union.get(name) is not None]
    if len(found) == 1:
        return
    names = ", ".join(f"`{name}`" for name in members)
    if found:
        shown = ", ".join(f"`{name}`" for name in found)
        yield invalid(field, f"{{{shown}}}", f"must specify exactly one of: {names}")
    else:
        yield invalid(field, "", f"must specify one of: {names}")
