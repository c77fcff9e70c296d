"""Validates resource names, quantities, requests and limits.

upstream: pkg/apis/core/validation/validation.go:ValidateContainerResourceRequirements,
validateContainerResourceName, ValidateResourceQuantityValue
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.api.label import label_key_problems
from fairlead.api.objects import Pod, PodSpec, QuantityText, ResourceList, ResourceRequirements
from fairlead.api.pods.requests import CPU, HUGEPAGES_PREFIX, MEMORY, pod_requests
from fairlead.api.quantity import (
    NANOS_PER_MILLI,
    NANOS_PER_UNIT,
    UPSTREAM_FORM,
    Quantity,
    QuantityError,
    canonical,
    parse_quantity,
)
from fairlead.api.resource_name import is_extended_resource, is_native_resource
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.defaulting.pod_resources import is_supported
from fairlead.apiserver.status_cause import Cause
from fairlead.apiserver.validation.meta.field import (
    NOT_NEGATIVE,
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)

POD_LEVEL: Final = (CPU, MEMORY)
STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
LIMIT_MUST_BE_SET: Final = "Limit must be set for non overcommitable resources"
NOT_A_QUANTITY: Final = f"quantities must match the regular expression '{UPSTREAM_FORM}'"


def quantity_or_none(text: QuantityText) -> Quantity | None:
    """Return `text` as a quantity; None if it is malformed (`check_quantity` yields the error)."""
    try:
        return parse_quantity(text)
    except QuantityError:
        return None


def check_quantities(field: str, resources: ResourceList, *, child: str = "[{}]") -> Causes:
    """Yield the errors of all amounts in a resource list.

    `child` is the format of the last part of an error's path; `{}` stands for the resource's name.
    """
    for name, text in resources.items():
        yield from check_quantity(field + child.format(name), name, text)


def check_quantity(field: str, resource: str, text: QuantityText) -> Causes:
    """Yield the errors of `text`, an amount of `resource`."""
    quantity = quantity_or_none(text)
    if quantity is None:
        yield invalid(field, str(text), NOT_A_QUANTITY)
    elif quantity.nano < 0:
        yield invalid(field, canonical(quantity), NOT_NEGATIVE)
    elif quantity.nano % NANOS_PER_UNIT and _is_integral(resource):
        yield invalid(field, canonical(quantity), "must be an integer")


def check_requirements(field: str, requirements: ResourceRequirements) -> Causes:
    """Yield the errors of a container's requests and limits."""
    for part, resources in (("limits", requirements.limits), ("requests", requirements.requests)):
        for name, text in resources.items():
            for cause in _amount_errors(name, text):
                yield replace(cause, field=f"{field}.{part}[{name}]")
    yield from check_within_limits(field, requirements)
    combined = {**requirements.requests, **requirements.limits}
    if any(name.startswith(HUGEPAGES_PREFIX) for name in combined) and not (
        "cpu" in combined or "memory" in combined
    ):
        yield forbidden(field, "HugePages require cpu or memory")


@text_cache(maxsize=4096)
def _amount_errors(name: str, text: QuantityText) -> tuple[Cause, ...]:
    """Return the errors of one amount in requests or limits. Their `field` is ""."""
    return (
        *check_container_resource("", name),
        *check_quantity("", name, text),
        *_check_pages("", name, text),
    )


def _check_pages(field: str, name: str, text: QuantityText) -> Causes:
    """Yield an error if a hugepage amount is not a multiple of the page size."""
    # upstream: validation.go:validateResourceQuantityHugePageValue
    if not name.startswith(HUGEPAGES_PREFIX):
        return
    size = quantity_or_none(name.removeprefix(HUGEPAGES_PREFIX))
    amount = quantity_or_none(text)
    if size is None or amount is None:
        return
    if size.nano <= 0 or amount.nano % size.nano:
        shown = canonical(amount)
        yield invalid(field, shown, f"{shown} is not positive integer multiple of {name}")


def check_pod_level(field: str, spec: PodSpec, requirements: ResourceRequirements) -> Causes:
    """Yield the errors of pod-level requests and limits.

    Only cpu, memory and hugepages are supported at the pod level.
    """
    if requirements.claims:
        yield forbidden(f"{field}.claims", "claims cannot be set for Resources at pod-level")
    for part, resources in (("limits", requirements.limits), ("requests", requirements.requests)):
        for name, text in resources.items():
            where = f"{field}.{part}[{name}]"
            problems = tuple(check_resource_name(where, name))
            yield from problems
            if not problems and not is_supported(name):
                yield not_supported(where, name, POD_LEVEL)
            yield from check_quantity(where, name, text)
    yield from check_within_limits(field, requirements)
    yield from _check_consistent(field, spec, requirements)


def _check_consistent(field: str, spec: PodSpec, requirements: ResourceRequirements) -> Causes:
    """Yield the errors of pod-level amounts that contradict the containers' amounts.

    A pod-level request must be at least the sum of the containers' requests. A pod-level limit must
    be at least the limit of each container.
    """
    # upstream: validation.go:validatePodResourceConsistency
    try:
        alone = replace(spec, resources=None, overhead={})
        container_requests = pod_requests(Pod(spec=alone))
    except QuantityError:
        return  # `check_quantity` reports the malformed quantity with the path of its field.
    for name, amount in container_requests.items():
        request = quantity_or_none(requirements.requests.get(name, "0"))
        if request is None or not is_supported(name):
            continue
        unit = NANOS_PER_MILLI if name == CPU else NANOS_PER_UNIT
        if amount * unit > request.nano:
            total = canonical(Quantity(nano=amount * unit, format=request.format))
            why = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid(f"{field}.requests[{name}]", canonical(request), why)
    for index, container in enumerate(spec.containers):
        for name, text in container.resources.limits.items():
            limit = quantity_or_none(text)
            bound = quantity_or_none(requirements.limits.get(name, text))
            if limit is not None and bound is not None and limit > bound:
                where = f"{field}.containers[{index}][{name}].limits"
                why = f"must be less than or equal to pod limits of {canonical(bound)}"
                yield invalid(where, canonical(limit), why)


def check_within_limits(field: str, requirements: ResourceRequirements) -> Causes:
    """Yield an error for each request that is higher than its limit.

    For resources that cannot be over-committed, a limit is required, and it must equal the request.
    """
    for name, text in requirements.requests.items():
        limit_text = requirements.limits.get(name)
        request = quantity_or_none(text)
        limit = None if limit_text is None else quantity_or_none(limit_text)
        if limit_text is None and not may_be_overcommitted(name):
            yield required(f"{field}.limits", LIMIT_MUST_BE_SET)
        if request is None or limit is None:
            continue
        if not may_be_overcommitted(name) and request != limit:
            why = f"must be equal to {name} limit of {canonical(limit)}"
            yield invalid(f"{field}.requests", canonical(request), why)
        elif request > limit:
            why = f"must be less than or equal to {name} limit of {canonical(limit)}"
            yield invalid(f"{field}.requests", canonical(request), why)


def check_resource_name(field: str, name: str) -> Causes:
    """Yield the errors of a resource name, by the rules that hold for all fields.

    `check_container_resource` also checks the rules for a container's requests and limits.
    """
    # upstream: validation.go:validateResourceName
    problems = label_key_problems(name)
    for problem in problems:
        yield invalid(field, name, problem)
    known = name in (*STANDARD, *_STANDARD_ELSEWHERE) or name.startswith(HUGEPAGES_PREFIX)
    if not problems and "/" not in name and not known:
        yield invalid(field, name, "must be a standard resource type or fully qualified")


def check_container_resource(field: str, name: str) -> Causes:
    """Yield the errors of a resource name in a container's requests or limits."""
    yield from check_resource_name(field, name)
    if "/" not in name:
        if name not in STANDARD and not name.startswith(HUGEPAGES_PREFIX):
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
    """Return whether amounts of the resource `name` must be integers."""
    return not is_native_resource(name) or name in ("pods", "services", "resourcequotas")


def may_be_overcommitted(name: str) -> bool:
    """Return whether requests of the resource `name` may be lower than its limits."""
    return is_native_resource(name) and not name.startswith(HUGEPAGES_PREFIX)
