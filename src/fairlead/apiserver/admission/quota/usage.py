"""The usage of an object, and the rules that decide which quotas count this object.

The number of objects is counted for every kind (`count/deployments.apps`), and for some kinds under
a legacy name too. The amounts that pods, services and claims request are also counted.

upstream: pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims,resource_claims,
registry}.go, apiserver/pkg/quota/v1/generic/evaluator.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, parse_quantity
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.apiserver.admission.quota.amounts import (
    Amounts,
    add,
    amounts,
    amounts_without_overhead,
    maximum,
    pod_amounts,
)
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, POD, SERVICE, Kind

_ONE: Final = parse_quantity("1")
_NONE: Final = parse_quantity("0")
_HUGEPAGES: Final = "hugepages-"
_STORAGE_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
_DEVICES_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
_RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
# upstream: k8s.io/api/resource/v1/types.go:AllocationResultsMaxSize
_DEVICES_MAX: Final = 32
# upstream: evaluator/core/registry.go:legacyObjectCountAliases
_LEGACY_COUNTS: Final = frozenset(
    ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
# Resources that each container must specify if a quota limits them; upstream: pods.go:validationSet
_REQUIRED_BY_QUOTA: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)


def usage(kind: Kind, obj: Json) -> Amounts:
    """Return the amounts that `obj` uses; a terminated pod uses only `count/pods`."""
    used: Amounts = {f"count/{kind.resource}": _ONE}
    if kind is POD:
        return used | ({} if is_terminal(obj) else {"pods": _ONE} | _compute(effective_spec(obj)))
    if kind is SERVICE:
        return used | _service_usage(obj["spec"])
    if kind is PERSISTENT_VOLUME_CLAIM:
        return used | _claim_usage(obj)
    if kind.resource == _RESOURCE_CLAIMS:
        return used | _devices(obj["spec"])
    if kind.resource in _LEGACY_COUNTS:
        used[kind.resource] = _ONE
    return used


def is_terminal(pod: Json) -> bool:
    """Return whether a pod has succeeded or failed."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def counted_until(kind: Kind, obj: Json) -> int | None:
    """Return the time (ns since 1970) after which quotas count only `count/pods` for a pod.

    Return None for all objects except terminating pods. The time is the pod's deletionTimestamp
    plus its grace period. A pod that still exists after this time is probably on a lost node. Such
    a pod must not prevent the creation of its replacement.
    """
    # upstream: evaluator/core/pods.go:QuotaV1Pod, which adds the grace period to the deletion time
    meta = obj["metadata"]
    deleted, grace_s = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if kind is not POD or not deleted or grace_s is None:
        return None
    return parse_timestamp(deleted) + int(grace_s) * NANOSECONDS_PER_SECOND


def is_counted(kind: Kind, resource: str) -> bool:
    """Return whether objects of `kind` use the quota resource `resource`."""
    if resource == f"count/{kind.resource}":
        return True
    if kind is POD:
        return resource == "pods" or _is_compute(resource)
    if kind is SERVICE:
        return resource in ("services", "services.nodeports", "services.loadbalancers")
    if kind is PERSISTENT_VOLUME_CLAIM:
        plain = resource in ("persistentvolumeclaims", "requests.storage")
        return plain or _STORAGE_CLASS_SUFFIX in resource
    if kind.resource == _RESOURCE_CLAIMS:
        return resource.endswith(_DEVICES_SUFFIX)
    return resource == kind.resource and resource in _LEGACY_COUNTS


def required_by_quota(names: Iterable[str]) -> frozenset[str]:
    """Return the resources in `names` that every container must specify if a quota limits them."""
    return _REQUIRED_BY_QUOTA.intersection(names)


def missing_resources(spec: Json, required: Iterable[str]) -> str:
    """Return, as text, the resources in `required` that a container of the pod does not specify.

    Only requests and limits of cpu and memory are considered. A resource that the pod's
    spec.resources specifies counts as specified in all containers. Example: `cpu for: a,b; memory
    for: a` (a and b are containers). The text is "" if no resource is missing.
    """
    requirement = required_by_quota(required)
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    missing: dict[str, list[str]] = {}
    for container in containers:
        specified = _compute({"containers": [container]})
        for name in sorted(requirement):
            if name not in specified and name not in _pod_level_usage(spec):
                missing.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


# --- scopes --------------------------------------------------------------------------------


def is_in_scopes(kind: Kind, obj: Json, spec: Json) -> bool:
    """Return whether an object matches all of a quota's `scopes` and its `scopeSelector`."""
    return all(_matches_scope(kind, obj, requirement) for requirement in scope_requirements(spec))


def scope_requirements(spec: Json) -> Iterator[Json]:
    """Yield the scope requirements in `scopes` and `scopeSelector` of a quota."""
    for name in spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions", ())


def _matches_scope(kind: Kind, obj: Json, requirement: Json) -> bool:
    """Return whether an object matches the scope in `requirement`."""
    if kind is PERSISTENT_VOLUME_CLAIM and requirement.get("scopeName") == "VolumeAttributesClass":
        return any(_selects(requirement, name) for name in _attributes_classes(obj))
    if kind is not POD:
        return False
    if requirement.get("scopeName") == "PriorityClass":
        return _selects(requirement, obj["spec"].get("priorityClassName", ""))
    matches = _POD_SCOPES.get(requirement.get("scopeName", ""))
    return matches is not None and matches(obj["spec"])


def _selects(requirement: Json, value: str) -> bool:
    match requirement.get("operator"):
        case "In":
            return value in (requirement.get("values") or ())
        case "NotIn":
            return value not in (requirement.get("values") or ())
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _attributes_classes(claim: Json) -> Iterable[str]:
    """Return the VolumeAttributesClasses that a claim has or will have; ("",) if it has none."""
    status = claim.get("status") or {}
    names = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return [name for name in names if name] or ("",)


def _is_best_effort(spec: Json) -> bool:
    requested = add(
        amounts_without_overhead(spec, "requests"), amounts_without_overhead(spec, "limits")
    )
    return not any(requested[name].nano for name in ("cpu", "memory") if name in requested)


def _crosses_namespaces(spec: Json) -> bool:
    affinity = spec.get("affinity") or {}
    terms: list[Json] = []
    for affinity_type in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        terms += affinity_type.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = affinity_type.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += ((entry.get("podAffinityTerm") or {}) for entry in preferred)
    return any(term.get("namespaces") or "namespaceSelector" in term for term in terms)


def _is_terminating(spec: Json) -> bool:
    return "activeDeadlineSeconds" in spec


_POD_SCOPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "Terminating": _is_terminating,
    "NotTerminating": lambda spec: not _is_terminating(spec),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}


# --- kinds that use more than a number -----------------------------------------------------


def _compute(spec: Json) -> Amounts:
    """Return a pod's requests and limits, under the names that quotas use (`requests.cpu`)."""
    used: Amounts = {}
    for name, amount in pod_amounts(spec, "requests").items():
        if name in _COMPUTE or name.startswith(_HUGEPAGES):
            used |= {name: amount, f"requests.{name}": amount}
        elif is_extended_resource(name):
            used[f"requests.{name}"] = amount
    for name, amount in pod_amounts(spec, "limits").items():
        if name in _COMPUTE:
            used[f"limits.{name}"] = amount
    return used


def _pod_level_usage(spec: Json) -> Amounts:
    return _compute({"resources": spec["resources"]}) if spec.get("resources") else {}


def _is_compute(resource: str) -> bool:
    prefix, dot, name = resource.partition(".")
    if dot and prefix == "requests":
        return name in _COMPUTE or name.startswith(_HUGEPAGES) or is_extended_resource(name)
    if dot and prefix == "limits":
        return name in _COMPUTE
    return resource in _COMPUTE or resource.startswith(_HUGEPAGES)


def _service_usage(spec: Json) -> Amounts:
    ports = spec.get("ports") or ()
    with_node_port = [port for port in ports if port.get("nodePort")]
    balancers = nodes = 0
    match spec.get("type"):
        case "NodePort":
            nodes = len(ports)
        case "LoadBalancer":
            balancers = 1
            allocates = spec.get("allocateLoadBalancerNodePorts", True)
            nodes = len(ports if allocates else with_node_port)
    counts = {"services": 1, "services.loadbalancers": balancers, "services.nodeports": nodes}
    return {name: parse_quantity(str(count)) for name, count in counts.items()}


def _claim_usage(claim: Json) -> Amounts:
    spec, annotations = claim["spec"], claim["metadata"].get("annotations") or {}
    requested = amounts((spec.get("resources") or {}).get("requests"))
    # A claim whose expansion failed may request less than its volume already has.
    allocated = amounts((claim.get("status") or {}).get("allocatedResources"))
    used: dict[str, Quantity] = {"persistentvolumeclaims": _ONE}
    if "storage" in requested:
        used["requests.storage"] = maximum(requested, allocated)["storage"]
    storage_class = annotations.get(_CLASS_ANNOTATION, spec.get("storageClassName"))
    if not storage_class:
        return used
    prefix = f"{storage_class}{_STORAGE_CLASS_SUFFIX}"
    return used | {f"{prefix}{name}": amount for name, amount in used.items()}


def _devices(spec: Json) -> Amounts:
    """Return, for each DeviceClass, the maximum number of devices that a claim can get."""
    used: Amounts = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        alternatives = request.get("firstAvailable") or [request.get("exactly") or {}]
        largest: Amounts = {}
        for one in alternatives:
            if "deviceClassName" in one:
                largest = maximum(largest, {one["deviceClassName"] + _DEVICES_SUFFIX: _number(one)})
        used = add(used, largest)
    return used


def _number(request: Json) -> Quantity:
    """Return the number of devices that `request` may get."""
    match request.get("allocationMode", "ExactCount"):
        case "ExactCount":
            return parse_quantity(str(request.get("count", 1)))
        case "All":
            return parse_quantity(str(_DEVICES_MAX))
        case _:
            return _NONE


# --- resources of a pod --------------------------------------------------------------------------

# Until the kubelet has resized a container, the maximum of desired, allocated and actual resources
# counts. An infeasible resize does not count. upstream:
# component-helpers/resource/helpers.go:determineEffectiveRequests, determineEffectiveLimits

_STATUSES: Final = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
)


def effective_spec(pod: Json) -> Json:
    """Return the spec of `pod`, with the requests and limits that quotas count.

    During a resize, the desired, the allocated and the actual amounts of a container can differ.
    Quotas count the largest of them. Quotas ignore the desired amounts if the resize is infeasible.
    """
    spec: Json = pod["spec"]
    status = pod.get("status") or {}
    is_infeasible = _is_infeasible(status)
    for part, status_key in _STATUSES:
        statuses = {
            one.get("name", ""): one
            for one in status.get(status_key) or ()
            if one.get("resources") is not None
        }
        if statuses and spec.get(part):
            containers = [
                _effective_container(
                    one, statuses[one.get("name", "")], is_infeasible=is_infeasible
                )
                if one.get("name", "") in statuses and _keeps_running(part, one)
                else one
                for one in spec[part]
            ]
            spec = {**spec, part: containers}
    return spec


def _keeps_running(part: str, container: Json) -> bool:
    return part == "containers" or container.get("restartPolicy") == "Always"


def _effective_container(container: Json, status: Json, *, is_infeasible: bool) -> Json:
    desired = {} if is_infeasible else container.get("resources") or {}
    actual, allocated = status["resources"], status.get("allocatedResources")
    resources = {
        "requests": _maximum((desired.get("requests"), actual.get("requests"), allocated)),
        "limits": _maximum((desired.get("limits"), actual.get("limits"))),
    }
    return {**container, "resources": resources}


def _maximum(lists: Iterable[Json | None]) -> Json:
    """Return the largest amount of each resource in the resource lists."""
    found: Json = {}
    for one in lists:
        for name, text in (one or {}).items():
            if name not in found or parse_quantity(text) > parse_quantity(found[name]):
                found[name] = text
    return found


def _is_infeasible(status: Json) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False
