"""ResourceQuotas: what is limited, and for which objects.

upstream: pkg/apis/core/validation/validation.go:ValidateResourceQuotaSpec,
pkg/apis/core/helper/helpers.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.label import label_key_problems
from fairlead.api.quantity import NANOS_PER_UNIT, canonical, parse_quantity
from fairlead.apiserver.validation.field import Causes, invalid, required
from fairlead.apiserver.validation.served.form import check_unchanged

Json = dict[str, Any]

SCOPES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
    "CrossNamespacePodAffinity", "VolumeAttributesClass",
)  # fmt: skip
_COMPUTE: Final = (
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
)  # fmt: skip
# upstream: standardQuotaResources there
_STANDARD: Final = (
    *_COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
    "requests.storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
    "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_COUNTED: Final = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_CLASSED: Final = ".storageclass.storage.k8s.io/"
_NO_VALUES: Final = (
    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
)
_VALUES: Final = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def check_quota(obj: Json) -> Causes:
    """A new or changed ResourceQuota."""
    spec = obj.get("spec") or {}
    for name, text in (spec.get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        yield from _check_name(field, name)
        yield from check_amount(field, name, text)
    yield from _check_scopes(spec)
    yield from _check_selector(spec.get("scopeSelector"))


def check_quota_update(old: Json, new: Json) -> Causes:
    """Which objects are limited never changes."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    yield from check_unchanged("spec.scopes", before.get("scopes"), after.get("scopes"))
    yield from check_unchanged(
        "spec.scopeSelector", before.get("scopeSelector"), after.get("scopeSelector")
    )


def check_amount(field: str, name: str, text: str) -> Causes:
    """An amount of a resource; what is counted comes whole."""
    quantity = parse_quantity(text)
    if quantity.nano < 0:
        yield invalid(field, canonical(quantity), "must be greater than or equal to 0")
    counted = name in _COUNTED or name.startswith("count/") or _is_extended(name)
    if counted and quantity.nano % NANOS_PER_UNIT:
        yield invalid(field, canonical(quantity), "must be an integer")


def _is_extended(name: str) -> bool:
    return name.startswith("requests.") and "/" in name and _CLASSED not in name


def _check_name(field: str, name: str) -> Causes:
    for problem in label_key_problems(name):
        yield invalid(field, name, problem)
    if "/" not in name and name not in _STANDARD and not name.startswith("requests.hugepages-"):
        yield invalid(field, name, "must be a standard resource for quota")


def _check_scopes(spec: Json) -> Causes:
    scopes = spec.get("scopes")
    if not scopes:
        return
    field = "spec.scopes"
    hard = spec.get("hard") or {}
    for scope in scopes:
        if scope not in SCOPES:
            yield invalid(field, scopes, "unsupported scope")
    for name in hard:
        if not all(_is_scoped(scope, name) for scope in scopes if scope in SCOPES):
            yield invalid(field, scopes, "unsupported scope applied to resource")
    for pair in _OPPOSITES:
        if all(scope in scopes for scope in pair):
            yield invalid(field, scopes, "conflicting scopes")


def _is_scoped(scope: str, resource: str) -> bool:
    """Whether that resource can be counted for those objects alone."""
    # upstream: IsResourceQuotaScopeValidForResource there
    if scope == "BestEffort":
        return resource == "pods"
    if scope in ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass"):
        return resource in (*_COMPUTE, "pods", "ephemeral-storage") or "/" in resource
    return True


def _check_selector(selector: Json | None) -> Causes:
    field = "spec.scopeSelector.matchExpressions"
    for one in (selector or {}).get("matchExpressions") or ():
        scope, operator = one.get("scopeName", ""), one.get("operator", "")
        values = one.get("values") or ()
        if scope not in SCOPES:
            yield invalid(f"{field}.scopeName", scope, "unsupported scope")
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{field}.values", _NO_VALUES)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield invalid(f"{field}.values", list(values), _VALUES)
        else:
            yield invalid(f"{field}.operator", operator, "not a valid selector operator")
