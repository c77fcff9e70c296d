"""What an object uses of a quota, and which quotas it belongs to.

Every kind counts its objects (`count/deployments.apps`); pods, services and claims count what
they ask for as well, some others under a name of old.

upstream: pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims,registry}.go,
apiserver/pkg/quota/v1/generic/evaluator.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, parse_quantity
from fairlead.api.resource_name import is_extended_resource
from fairlead.apiserver.admission.quota.amounts import Amounts, amounts, plus, pod_amounts
from fairlead.apiserver.admission.quota.effective_resources import effective_spec
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, POD, SERVICE, Kind

_ONE: Final = parse_quantity("1")
_HUGEPAGES: Final = "hugepages-"
_STORAGE_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
# upstream: evaluator/core/registry.go:legacyObjectCountAliases
_COUNTED_OF_OLD: Final = frozenset(
    ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
# What each container must say where a quota limits it; upstream: pods.go:validationSet
_TO_BE_SAID: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)


def usage(kind: Kind, obj: Json) -> Amounts:
    """What `obj` uses; a pod that has come to its end is only counted."""
    used: Amounts = {f"count/{kind.resource}": _ONE}
    if kind is POD:
        return used | ({} if is_over(obj) else {"pods": _ONE} | _compute(effective_spec(obj)))
    if kind is SERVICE:
        return used | _of_service(obj["spec"])
    if kind is PERSISTENT_VOLUME_CLAIM:
        return used | _of_claim(obj)
    if kind.resource in _COUNTED_OF_OLD:
        used[kind.resource] = _ONE
    return used


def is_over(pod: Json) -> bool:
    """Whether a pod has come to its end."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_counted(kind: Kind, resource: str) -> bool:
    """Whether objects of `kind` can use the resource of a quota."""
    if resource == f"count/{kind.resource}":
        return True
    if kind is POD:
        return resource == "pods" or _is_compute(resource)
    if kind is SERVICE:
        return resource in ("services", "services.nodeports", "services.loadbalancers")
    if kind is PERSISTENT_VOLUME_CLAIM:
        plain = resource in ("persistentvolumeclaims", "requests.storage")
        return plain or _STORAGE_CLASS_SUFFIX in resource
    return resource == kind.resource and resource in _COUNTED_OF_OLD


def unsaid(spec: Json, required: Iterable[str]) -> str:
    """`cpu for: a,b; memory for: a`: what containers must say and do not; "" if nothing."""
    wanted = _TO_BE_SAID.intersection(required)
    holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    missing: dict[str, list[str]] = {}
    for container in holders:
        said = _compute({"containers": [container]})
        for name in sorted(wanted):
            if name not in said and name not in _pod_level(spec):
                missing.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


# --- scopes --------------------------------------------------------------------------------


def is_in_scopes(kind: Kind, obj: Json, spec: Json) -> bool:
    """Whether a quota's `scopes` and `scopeSelector` all say yes to an object."""
    return all(_is_in(kind, obj, wanted) for wanted in scope_requirements(spec))


def scope_requirements(spec: Json) -> Iterator[Json]:
    """The requirements of a quota's scopes, written in either way."""
    for name in spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions", ())


def _is_in(kind: Kind, obj: Json, wanted: Json) -> bool:
    """Scopes are about pods (volume attributes classes aside); nothing else is in one."""
    if kind is PERSISTENT_VOLUME_CLAIM and wanted.get("scopeName") == "VolumeAttributesClass":
        return _selects(wanted, obj["spec"].get("volumeAttributesClassName", ""))
    if kind is not POD:
        return False
    if wanted.get("scopeName") == "PriorityClass":
        return _selects(wanted, obj["spec"].get("priorityClassName", ""))
    is_in = _POD_SCOPES.get(wanted.get("scopeName", ""))
    return is_in is not None and is_in(obj["spec"])


def _selects(wanted: Json, value: str) -> bool:
    match wanted.get("operator"):
        case "In":
            return value in (wanted.get("values") or ())
        case "NotIn":
            return value not in (wanted.get("values") or ())
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _is_best_effort(spec: Json) -> bool:
    asked = plus(pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))
    return not any(asked[name].nano for name in ("cpu", "memory") if name in asked)


def _crosses_namespaces(spec: Json) -> bool:
    affinity = spec.get("affinity") or {}
    terms: list[Json] = []
    for of in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        terms += of.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = of.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
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
    """What a pod asks for and is limited to, under the names that quotas have for it."""
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


def _pod_level(spec: Json) -> Amounts:
    return _compute({"resources": spec["resources"]}) if spec.get("resources") else {}


def _is_compute(resource: str) -> bool:
    prefix, dot, name = resource.partition(".")
    if dot and prefix == "requests":
        return name in _COMPUTE or name.startswith(_HUGEPAGES) or is_extended_resource(name)
    if dot and prefix == "limits":
        return name in _COMPUTE
    return resource in _COMPUTE or resource.startswith(_HUGEPAGES)


def _of_service(spec: Json) -> Amounts:
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


def _of_claim(claim: Json) -> Amounts:
    spec = claim["spec"]
    asked = amounts((spec.get("resources") or {}).get("requests")).get("storage")
    used: dict[str, Quantity] = {"persistentvolumeclaims": _ONE}
    if asked is not None:
        used["requests.storage"] = asked
    storage_class = spec.get("storageClassName")
    if not storage_class:
        return used
    prefix = f"{storage_class}{_STORAGE_CLASS_SUFFIX}"
    return used | {f"{prefix}{name}": amount for name, amount in used.items()}
