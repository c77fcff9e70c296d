"""Resources: quantities that are quantities, not negative, and no more than their limits.

upstream: pkg/apis/core/validation/validation.go:ValidateContainerResourceRequirements,
validateContainerResourceName, ValidateResourceQuantityValue
"""

from __future__ import annotations

from typing import Final

from fairlead.api.label import label_key_problems
from fairlead.api.objects import QuantityText, ResourceList, ResourceRequirements
from fairlead.api.pod_requests import HUGEPAGES_PREFIX
from fairlead.api.quantity import (
    NANOS_PER_UNIT,
    UPSTREAM_FORM,
    Quantity,
    QuantityError,
    canonical,
    parse_quantity,
)
from fairlead.api.resource_name import is_extended_resource, is_native_resource
from fairlead.apiserver.pod_resources import is_supported
from fairlead.apiserver.validation.field import Causes, forbidden, invalid, required

STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
LIMIT_MUST_BE_SET: Final = "Limit must be set for non overcommitable resources"
NOT_A_QUANTITY: Final = f"quantities must match the regular expression '{UPSTREAM_FORM}'"


def quantity_or_none(text: QuantityText) -> Quantity | None:
    """`text` as a quantity, None when it is none (which is reported where it stands)."""
    try:
        return parse_quantity(text)
    except QuantityError:
        return None


def check_quantities(field: str, resources: ResourceList, *, child: str = "[{}]") -> Causes:
    """Every amount of a list of resources; `child` is how the field of one is written."""
    for name, text in resources.items():
        yield from check_quantity(field + child.format(name), name, text)


def check_quantity(field: str, resource: str, text: QuantityText) -> Causes:
    """One amount of `resource`."""
    quantity = quantity_or_none(text)
    if quantity is None:
        yield invalid(field, str(text), NOT_A_QUANTITY)
    elif quantity.nano < 0:
        yield invalid(field, canonical(quantity), "must be greater than or equal to 0")
    elif quantity.nano % NANOS_PER_UNIT and _is_integral(resource):
        yield invalid(field, canonical(quantity), "must be an integer")


def check_requirements(field: str, requirements: ResourceRequirements) -> Causes:
    """requests and limits of a container."""
    for part, resources in (("limits", requirements.limits), ("requests", requirements.requests)):
        for name, text in resources.items():
            place = f"{field}.{part}[{name}]"
            yield from _check_container_resource(place, name)
            yield from check_quantity(place, name, text)
    yield from check_within_limits(field, requirements)
    asked = {**requirements.requests, **requirements.limits}
    if any(name.startswith(HUGEPAGES_PREFIX) for name in asked) and not (
        "cpu" in asked or "memory" in asked
    ):
        yield forbidden(field, "HugePages require cpu or memory")


def check_pod_level(field: str, requirements: ResourceRequirements) -> Causes:
    """requests and limits of a pod as a whole, of which only some resources have."""
    for part, resources in (("limits", requirements.limits), ("requests", requirements.requests)):
        for name, text in resources.items():
            if not is_supported(name):
                why = "must be a standard resource for pod-level resources"
                yield invalid(f"{field}.{part}[{name}]", name, why)
            yield from check_quantity(f"{field}.{part}[{name}]", name, text)
    yield from check_within_limits(field, requirements)


def check_within_limits(field: str, requirements: ResourceRequirements) -> Causes:
    """No request beyond its limit; what cannot be over-committed is requested as limited."""
    for name, text in requirements.requests.items():
        limit_text = requirements.limits.get(name)
        request = quantity_or_none(text)
        limit = None if limit_text is None else quantity_or_none(limit_text)
        if limit_text is None and not _may_be_overcommitted(name):
            yield required(f"{field}.limits", LIMIT_MUST_BE_SET)
        if request is None or limit is None:
            continue
        if not _may_be_overcommitted(name) and request != limit:
            why = f"must be equal to {name} limit of {canonical(limit)}"
            yield invalid(f"{field}.requests", canonical(request), why)
        elif request > limit:
            why = f"must be less than or equal to {name} limit of {canonical(limit)}"
            yield invalid(f"{field}.requests", canonical(request), why)


def _check_container_resource(field: str, name: str) -> Causes:
    for problem in label_key_problems(name):
        yield invalid(field, name, problem)
    if "/" not in name:
        if name not in STANDARD and not name.startswith(HUGEPAGES_PREFIX):
            if name not in _STANDARD_ELSEWHERE:
                yield invalid(field, name, "must be a standard resource type or fully qualified")
            yield invalid(field, name, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        yield invalid(field, name, "doesn't follow extended resource name standard")


# upstream: pkg/apis/core/helper/helpers.go:standardResources
_STANDARD_ELSEWHERE: Final = frozenset(
    {
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def _is_integral(name: str) -> bool:
    """Whether half a unit of the resource makes no sense."""
    return not is_native_resource(name) or name in ("pods", "services", "resourcequotas")


def _may_be_overcommitted(name: str) -> bool:
    return is_native_resource(name) and not name.startswith(HUGEPAGES_PREFIX)
