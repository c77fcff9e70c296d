"""Updates of statuses, kind by kind.

upstream: Validate*StatusUpdate in pkg/apis/{core,apps,autoscaling,networking,policy}/validation
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.batch.job_status import check_job_status
from fairlead.apiserver.validation.certificates import check_decided, check_signed
from fairlead.apiserver.validation.core.resource import check_quantity
from fairlead.apiserver.validation.core.resource_quota import check_limits
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    non_negative,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    check_subdomain,
    too_long,
)
from fairlead.apiserver.validation.meta.ip import check_ip, is_ip
from fairlead.apiserver.validation.resource.resource_claim_status import check_claim_status

CheckStatus = Callable[[Json, Json], Causes]

REPLICAS: Final = "cannot be greater than status.replicas"
READY: Final = "cannot be greater than readyReplicas"
READY_STATUS: Final = "cannot be greater than status.readyReplicas"
# Counts that may not be negative.
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "replicationcontrollers": (
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
        "observedGeneration",
    ),
    "replicasets.apps": (
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
        "observedGeneration",
    ),
    "deployments.apps": (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "collisionCount",
    ),
    "statefulsets.apps": (
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
        "observedGeneration", "collisionCount",
    ),
    "daemonsets.apps": (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
        "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
        "collisionCount",
    ),
    "horizontalpodautoscalers.autoscaling": ("currentReplicas", "desiredReplicas"),
    "poddisruptionbudgets.policy": (
        "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods",
    ),
}  # fmt: skip
# Counts that may not exceed another one: the part, the whole, and the explanation.
_PARTS: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "replicationcontrollers": (
        ("fullyLabeledReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY),
    ),
    "replicasets.apps": (
        ("fullyLabeledReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY),
    ),
    "deployments.apps": (
        ("updatedReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY),
    ),
    "statefulsets.apps": (
        ("readyReplicas", "replicas", REPLICAS),
        ("currentReplicas", "replicas", REPLICAS),
        ("updatedReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", READY_STATUS),
    ),
}
# Kinds with a collisionCount, which never decreases.
_COLLIDING: Final = ("deployments.apps", "statefulsets.apps", "daemonsets.apps")
_TRUTHS: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_FORM: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)
_REASON_BYTES_MAX: Final = 1024
_MESSAGE_BYTES_MAX: Final = 32 * 1024


def check_status(resource: str, old: Json, new: Json, part: str = "status") -> Causes:
    """What is wrong with the status of `new`, which replaces `old`.

    `part` is the subresource by way of which it is written.
    """
    status = new.get("status") or {}
    if resource == "poddisruptionbudgets.policy":
        yield from _check_conditions("status.conditions", status.get("conditions") or ())
    for name in _COUNTS.get(resource, ()):
        yield from non_negative(f"status.{name}", status.get(name) or 0)
    for some, whole, why in _PARTS.get(resource, ()):
        if (status.get(some) or 0) > (status.get(whole) or 0):
            yield invalid(f"status.{some}", status.get(some) or 0, why)
    if resource in _COLLIDING:
        yield from _check_collisions(old.get("status") or {}, status)
    check = _CHECKS.get(resource if part == "status" else f"{resource}/{part}")
    if check is not None:
        yield from check(old, new)


def _check_collisions(before: Json, after: Json) -> Causes:
    had, has = before.get("collisionCount"), after.get("collisionCount")
    if had is not None and (has is None or has < had):
        yield invalid("status.collisionCount", has or 0, "cannot be decremented")


def _check_service(_: Json, new: Json) -> Causes:
    """Only a LoadBalancer Service has ingress addresses."""
    ingress = (new["status"].get("loadBalancer") or {}).get("ingress") or ()
    if ingress and new["spec"].get("type") != "LoadBalancer":
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        yield forbidden("status.loadBalancer.ingress", why)
    yield from _check_addresses("status.loadBalancer.ingress", ingress)


def _check_ingress(_: Json, new: Json) -> Causes:
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


def _check_namespace(_: Json, new: Json) -> Causes:
    phase = new["status"].get("phase") or ""
    is_ending = new["metadata"].get("deletionTimestamp") is not None
    only, when = ("Terminating", "not empty") if is_ending else ("Active", "empty")
    if phase != only:
        why = f"may only be '{only}' if `deletionTimestamp` is {when}"
        yield invalid("status.Phase", phase, why)


def _check_quota(_: Json, new: Json) -> Causes:
    yield from check_limits("status.hard", new["status"].get("hard") or {})
    yield from check_limits("status.used", new["status"].get("used") or {})


def _check_claim(_: Json, new: Json) -> Causes:
    for name, text in (new["status"].get("capacity") or {}).items():
        yield from check_quantity(f"status.capacity[{name}]", name, text)


def _check_node(_: Json, new: Json) -> Causes:
    addresses = new["status"].get("addresses") or []
    for index in sorted(repeated_indexes(addresses)):
        address = addresses[index]
        shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
        yield duplicate(f"status.addresses[{index}]", shown)


def _check_conditions(field: str, conditions: Iterable[Json]) -> Causes:
    """A list of metav1.Conditions."""
    # upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateConditions
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
    if truth not in _TRUTHS:
        yield not_supported(f"{at}.status", truth, _TRUTHS)
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


def _check_flow(_: Json, new: Json) -> Causes:
    """Conditions have unique types."""
    # upstream: pkg/apis/flowcontrol/validation/validation.go:ValidateFlowSchemaStatus
    seen: set[str] = set()
    for index, condition in enumerate(new["status"].get("conditions") or ()):
        field, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield duplicate(field, kind)
        seen.add(kind)
        if not kind:
            yield required(field, "must not be empty")


_CHECKS: Final[Mapping[str, CheckStatus]] = {
    "services": _check_service,
    "ingresses.networking.k8s.io": _check_ingress,
    "namespaces": _check_namespace,
    "resourcequotas": _check_quota,
    "persistentvolumeclaims": _check_claim,
    "jobs.batch": check_job_status,
    "flowschemas.flowcontrol.apiserver.k8s.io": _check_flow,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _check_flow,
    "nodes": _check_node,
    "resourceclaims.resource.k8s.io": check_claim_status,
    "certificatesigningrequests.certificates.k8s.io": check_signed,
    "certificatesigningrequests.certificates.k8s.io/approval": check_decided,
}
