"""Validates ResourceQuotas.

upstream: pkg/apis/core/validation/validation.go:ValidateResourceQuotaSpec,
pkg/apis/core/helper/helpers.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import QuantityText
from fairlead.api.quantity import NANOS_PER_UNIT, canonical, parse_quantity
from fairlead.apiserver.validation.core.resource import check_resource_name
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import NOT_NEGATIVE, Causes, invalid, required
from fairlead.apiserver.validation.meta.format import IMMUTABLE

SCOPES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
    "CrossNamespacePodAffinity", "VolumeAttributesClass",
)  # fmt: skip
_COMPUTE: Final = (
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
)  # fmt: skip
# upstream: helpers.go:standardQuotaResources
_STANDARD: Final = (
    *_COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
    "requests.storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
    "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_COUNTED: Final = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_UNSUPPORTED: Final = "unsupported scope"
_UNKNOWN_OPERATOR: Final = "not a valid selector operator"
_STORAGE_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
_NO_VALUES: Final = (
    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
)
_VALUES: Final = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_EXISTING: Final = (
    "BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity",
)  # fmt: skip
_ONLY_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def check_quota(obj: Json) -> Causes:
    """Yield the errors of a new or changed ResourceQuota."""
    spec = obj.get("spec") or {}
    yield from check_limits("spec.hard", spec.get("hard") or {})
    yield from _check_scopes(spec)
    yield from _check_selector(spec)


def check_limits(field: str, limits: Json) -> Causes:
    """Yield the errors of the names and amounts of quota resources."""
    for name, text in limits.items():
        yield from check_resource_name(f"{field}[{name}]", name)
        if "/" not in name and not _is_standard(name):
            yield invalid(f"{field}[{name}]", name, "must be a standard resource for quota")
        yield from check_amount(f"{field}[{name}]", name, text)


def check_quota_update(old: Json, new: Json) -> Causes:
    """Yield an error if an update changes the scopes of a quota."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    had, wants = before.get("scopes") or [], after.get("scopes") or []
    if sorted(had) != sorted(wants):
        yield invalid("spec.scopes", after.get("scopes"), IMMUTABLE)


def check_amount(field: str, name: str, text: QuantityText) -> Causes:
    """Yield the errors of `text`, the amount of the resource `name` in a quota."""
    quantity = parse_quantity(text)
    if quantity.nano < 0:
        yield invalid(field, canonical(quantity), NOT_NEGATIVE)
    counted = name in _COUNTED or name.startswith("count/") or _is_extended(name)
    if counted and quantity.nano % NANOS_PER_UNIT:
        yield invalid(field, canonical(quantity), "must be an integer")


def _is_extended(name: str) -> bool:
    return name.startswith("requests.") and "/" in name and _STORAGE_CLASS_SUFFIX not in name


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith("requests.hugepages-")


def _check_scopes(spec: Json) -> Causes:
    scopes = spec.get("scopes")
    if not scopes:
        return
    field = "spec.scopes"
    for scope in scopes:
        if scope not in SCOPES:
            yield invalid(field, scopes, _UNSUPPORTED)
        for _ in _beyond(scope, spec):
            yield invalid(field, scopes, "unsupported scope applied to resource")
    yield from check_opposite_scopes(spec)


def check_opposite_scopes(spec: Json) -> Causes:
    """Yield an error for each pair of scopes in a quota's `spec` that no pod can have together."""
    scopes = spec.get("scopes") or ()
    for pair in _OPPOSITES:
        if all(scope in scopes for scope in pair):
            yield invalid("spec.scopes", scopes, "conflicting scopes")


def _beyond(scope: str, spec: Json) -> Iterator[str]:
    """Yield the resources in spec.hard that a quota with this scope cannot limit."""
    # upstream: helpers.go:IsResourceQuotaScopeValidForResource
    match scope:
        case "BestEffort":
            countable: tuple[str, ...] = ("pods",)
        case "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass":
            countable = (*_COMPUTE, "pods")
        case "CrossNamespacePodAffinity":
            countable = (*_COMPUTE, "pods")
        case "VolumeAttributesClass":
            countable = ("persistentvolumeclaims", "requests.storage")
        case _:
            return
    for name in sorted(spec.get("hard") or {}):
        if _is_standard(name) and name not in countable:
            yield name


def _check_selector(spec: Json) -> Causes:
    selector, field = spec.get("scopeSelector"), "spec.scopeSelector.matchExpressions"
    for one in (selector or {}).get("matchExpressions") or ():
        scope, operator = one.get("scopeName", ""), one.get("operator", "")
        values = one.get("values") or ()
        if scope not in SCOPES:
            yield invalid(f"{field}.scopeName", scope, _UNSUPPORTED)
        for _ in _beyond(scope, spec):
            shown = internal_of("core.v1.ScopeSelector", selector)
            yield invalid(field, shown, "unsupported scope applied to resource")
        if scope in _EXISTING and operator != "Exists":
            yield invalid(f"{field}.operator", operator, _ONLY_EXISTS)
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{field}.values", _NO_VALUES)
        elif operator in ("Exists", "DoesNotExist") and values:
            yield invalid(f"{field}.values", list(values), _VALUES)
        yield from check_scope_operator(f"{field}.operator", operator)


def check_scope_operator(field: str, operator: str) -> Causes:
    """Yield an error if `operator`, the operator of a scope requirement, is unknown."""
    if operator not in _OPERATORS:
        yield invalid(field, operator, _UNKNOWN_OPERATOR)
