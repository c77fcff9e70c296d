"""Validates updates of statuses. The check of a kind's status takes the old and the new object.

upstream: Validate*StatusUpdate in pkg/apis/{core,apps,autoscaling,networking,policy}/validation
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.core.resource import check_quantity
from fairlead.apiserver.validation.core.resource_quota import check_limits
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    check_subdomain,
    too_long,
)
from fairlead.apiserver.validation.meta.ip import check_ip, is_ip

REPLICAS: Final = "cannot be greater than status.replicas"
READY: Final = "cannot be greater than readyReplicas"
READY_STATUS: Final = "cannot be greater than status.readyReplicas"
_CONDITION_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_FORM: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)
_REASON_BYTES_MAX: Final = 1024
_MESSAGE_BYTES_MAX: Final = 32 * 1024


def _check_counts(type_name: str, new: Json) -> Causes:
    """Yield the errors of the counts in a status of the type `type_name`."""
    yield from check_fields("status", type_name, new.get("status") or {})


def check_replica_set_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the status of a ReplicaSet or ReplicationController."""
    yield from _check_counts("apps.v1.ReplicaSetStatus", new)
    yield from _check_share(new, "fullyLabeledReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "readyReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "readyReplicas", READY)


def check_deployment_status(old: Json, new: Json) -> Causes:
    """Yield the errors of a Deployment's status."""
    yield from _check_counts("apps.v1.DeploymentStatus", new)
    yield from _check_share(new, "updatedReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "readyReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "readyReplicas", READY)
    yield from _check_collisions(old, new)


def check_stateful_set_status(old: Json, new: Json) -> Causes:
    """Yield the errors of a StatefulSet's status."""
    yield from _check_counts("apps.v1.StatefulSetStatus", new)
    yield from _check_share(new, "readyReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "currentReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "updatedReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "replicas", REPLICAS)
    yield from _check_share(new, "availableReplicas", "readyReplicas", READY_STATUS)
    yield from _check_collisions(old, new)


def check_daemon_set_status(old: Json, new: Json) -> Causes:
    """Yield the errors of a DaemonSet's status."""
    yield from _check_counts("apps.v1.DaemonSetStatus", new)
    yield from _check_collisions(old, new)


def check_disruption_budget_status(_: Json, new: Json) -> Causes:
    """Yield the errors of a PodDisruptionBudget's status."""
    conditions = (new.get("status") or {}).get("conditions") or ()
    yield from check_status_conditions("status.conditions", conditions)
    yield from _check_counts("policy.v1.PodDisruptionBudgetStatus", new)


def check_autoscaler_status(_: Json, new: Json) -> Causes:
    """Yield the errors of a HorizontalPodAutoscaler's status."""
    yield from _check_counts("autoscaling.v2.HorizontalPodAutoscalerStatus", new)


def _check_share(new: Json, name: str, total: str, why: str) -> Causes:
    """Yield the error `why` if the status field `name` exceeds the status field `total`."""
    status = new.get("status") or {}
    if (status.get(name) or 0) > (status.get(total) or 0):
        yield invalid(f"status.{name}", status.get(name) or 0, why)


def _check_collisions(old: Json, new: Json) -> Causes:
    """Yield an error if collisionCount decreases."""
    had, has = ((obj.get("status") or {}).get("collisionCount") for obj in (old, new))
    if had is not None and (has is None or has < had):
        yield invalid("status.collisionCount", has or 0, "cannot be decremented")


def check_service_status(_: Json, new: Json) -> Causes:
    """Yield the errors of a Service's status."""
    ingress = (new["status"].get("loadBalancer") or {}).get("ingress") or ()
    if ingress and new["spec"].get("type") != "LoadBalancer":
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        yield forbidden("status.loadBalancer.ingress", why)
    yield from _check_addresses("status.loadBalancer.ingress", ingress)


def check_ingress_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the addresses in an Ingress's status."""
    balanced = new["status"].get("loadBalancer") or {}
    yield from _check_addresses("status.loadBalancer.ingress", balanced.get("ingress") or ())


def _check_addresses(field: str, addresses: Iterable[Json]) -> Causes:
    for index, address in enumerate(addresses):
        ip, host = address.get("ip"), address.get("hostname")
        if ip:
            yield from check_ip(f"{field}[{index}].ip", ip)
        if host:
            yield from check_subdomain(f"{field}[{index}].hostname", host)
            if is_ip(host):
                why = "must be a DNS name, not an IP address"
                yield invalid(f"{field}[{index}].hostname", host, why)


def check_namespace_status(_: Json, new: Json) -> Causes:
    """Yield an error if a Namespace's phase does not match its deletionTimestamp."""
    phase = new["status"].get("phase") or ""
    is_ending = new["metadata"].get("deletionTimestamp") is not None
    only, when = ("Terminating", "not empty") if is_ending else ("Active", "empty")
    if phase != only:
        why = f"may only be '{only}' if `deletionTimestamp` is {when}"
        yield invalid("status.Phase", phase, why)


def check_quota_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the amounts in a ResourceQuota's status."""
    yield from check_limits("status.hard", new["status"].get("hard") or {})
    yield from check_limits("status.used", new["status"].get("used") or {})


def check_claim_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the capacity in a PersistentVolumeClaim's status."""
    for name, text in (new["status"].get("capacity") or {}).items():
        yield from check_quantity(f"status.capacity[{name}]", name, text)


def check_node_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the addresses in a Node's status."""
    addresses = new["status"].get("addresses") or []
    for index in sorted(repeated_indexes(addresses)):
        address = addresses[index]
        shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
        yield duplicate(f"status.addresses[{index}]", shown)


def check_status_conditions(field: str, conditions: Iterable[Json]) -> Causes:
    """Yield the errors of a list of metav1.Conditions.

    upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateConditions
    """
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, kind = f"{field}[{index}]", condition.get("type", "")
        if kind in seen:
            yield duplicate(f"{at}.type", kind)
        seen.add(kind)
        yield from check_qualified_name(f"{at}.type", kind)
        yield from _check_condition(at, condition)


def _check_condition(at: str, condition: Json) -> Causes:
    truth, reason = condition.get("status", ""), condition.get("reason", "")
    if truth not in _CONDITION_STATUSES:
        yield not_supported(f"{at}.status", truth, _CONDITION_STATUSES)
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        why = "must be greater than or equal to zero"
        yield invalid(f"{at}.observedGeneration", generation, why)
    if condition.get("lastTransitionTime") is None:
        yield required(f"{at}.lastTransitionTime")
    if not reason:
        yield required(f"{at}.reason")
    elif not re.fullmatch(_REASON, reason):
        yield invalid(f"{at}.reason", reason, _REASON_FORM)
    if len(reason.encode()) > _REASON_BYTES_MAX:
        yield too_long(f"{at}.reason", _REASON_BYTES_MAX)
    if len(condition.get("message", "").encode()) > _MESSAGE_BYTES_MAX:
        yield too_long(f"{at}.message", _MESSAGE_BYTES_MAX)


def check_flow_status(_: Json, new: Json) -> Causes:
    """Yield the errors of the conditions of a FlowSchema or PriorityLevelConfiguration."""
    # upstream: pkg/apis/flowcontrol/validation/validation.go:ValidateFlowSchemaStatus
    seen: set[str] = set()
    for index, condition in enumerate(new["status"].get("conditions") or ()):
        field, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield duplicate(field, kind)
        seen.add(kind)
        if not kind:
            yield required(field, "must not be empty")
