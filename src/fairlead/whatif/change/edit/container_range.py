"""How the LimitRanges of a namespace change the requests that a VerticalPodAutoscaler recommends.

LimitRanger changes a pod before the VPA's webhook does. So the requests and limits that the webhook
reads include the defaults of the LimitRanges. The recommended amount (the target) becomes the
request of a container, and the limit changes by the same ratio. The webhook caps the target so that
the new request and the new limit are within the `min` and `max` that LimitRanges set for
containers.

upstream: autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange/limit_range_calculator.go,
pkg/utils/vpa/capping.go: applyContainerLimitRange
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, QuantityError, parse_quantity, round_up
from fairlead.apiserver.admission.plugins.limit_ranger import CONTAINER, with_default_resources
from fairlead.apiserver.admission.quota.amounts import Amounts, amounts
from fairlead.apiserver.kind import LIMIT_RANGE
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

# Upstream scales CPU in thousandths and all other resources in whole units.
_UNITS: Final = {"cpu": 1_000_000}
_WHOLE: Final = 1_000_000_000
_BOUNDED: Final = ("cpu", "memory")
_AMOUNTS: Final = ("min", "max", "default", "defaultRequest")


class AdmittedResources(Struct, frozen=True):
    """The requests and limits of a container after LimitRanger has set their defaults."""

    requests: Amounts
    limits: Amounts

    def scaled_limit(self, resource: str, target: Quantity) -> Quantity | None:
        """Return the limit that results if `target` becomes the request.

        The ratio of the limit to the request does not change. Return None if the container has no
        limit for `resource`, or if `target` is 0.

        upstream: limit_and_request_scaling.go: getProportionalResourceLimit
        """
        limit, request = self.limits.get(resource), self.requests.get(resource)
        if limit is None or not limit.nano or not target.nano:
            return None
        if request is None or not request.nano or request == limit:
            return target
        return _scaled(resource, limit, request, target)

    def bound_of_request(self, resource: str, limit_bound: Quantity) -> Quantity | None:
        """Return the request for which `scaled_limit` returns `limit_bound`.

        Return None if the container has no limit for `resource`.

        upstream: limit_and_request_scaling.go: GetBoundaryRequest
        """
        limit, request = self.limits.get(resource), self.requests.get(resource)
        if limit is None or not limit.nano:
            return None
        if request is None or not request.nano:
            return limit_bound
        return _scaled(resource, request, limit, limit_bound)


class ContainerRange(Struct, frozen=True):
    """The bounds and the defaults for containers in a namespace."""

    least: Amounts
    most: Amounts
    limit_ranges: list[Json]

    def admitted(self, spec: Json) -> list[AdmittedResources]:
        """Return the resources of each container of a pod with the spec `spec`."""
        containers = [_with_requests(one) for one in spec.get("containers", ())]
        pod: Json = {"metadata": {}, "spec": {"containers": containers}}
        filled = with_default_resources(pod, self.limit_ranges)["spec"]["containers"]
        return [
            AdmittedResources(*(amounts(one["resources"].get(of)) for of in ("requests", "limits")))
            for one in filled
        ]

    def capped(self, resource: str, target: Quantity, resources: AdmittedResources) -> Quantity:
        """Return `target`, raised or lowered so that the request and the limit are in the range.

        `resources` are the requests and limits of the container. A bound of zero has no effect.
        """
        if resource in self.least:
            least = self.least[resource]
            target = max(target, least, resources.bound_of_request(resource, least) or least)
        if resource in self.most:
            most = resources.bound_of_request(resource, self.most[resource])
            return min(target, most) if most is not None and most.nano else target
        return target


def container_range(inventory: Inventory, namespace: str) -> ContainerRange:
    """Return the range that the LimitRanges of `namespace` define together. Raises InputError."""
    found = [one for one in inventory.of_kind(LIMIT_RANGE) if one.ref.namespace == namespace]
    for one in found:
        one.require_right_types()
    return range_of(found)


def range_of(found: list[Manifest]) -> ContainerRange:
    """Return the range that the LimitRanges `found` define together. Raises InputError."""
    least: Amounts = {}
    most: Amounts = {}
    stricter = {"min": (least, max), "max": (most, min)}
    for field, resource, amount in _amounts(found):
        if field in stricter and resource in _BOUNDED:
            bounds, pick = stricter[field]
            bounds[resource] = pick(bounds.get(resource, amount), amount)
    return ContainerRange(least, most, [one.value for one in found])


def _amounts(limit_ranges: list[Manifest]) -> Iterator[tuple[str, str, Quantity]]:
    """Yield (field, resource, amount) for each amount in the limits of type Container.

    Raises InputError for a malformed amount.
    """
    for one in limit_ranges:
        for number, item in enumerate((one.value.get("spec") or {}).get("limits") or ()):
            for field in _AMOUNTS if item.get("type") == CONTAINER else ():
                for resource, text in (item.get(field) or {}).items():
                    where = f"spec.limits[{number}].{field}[{resource}]"
                    try:
                        yield field, resource, parse_quantity(text)
                    except QuantityError as cause:
                        raise one.refuse(str(cause), field=where) from None


def _with_requests(container: Json) -> Json:
    """Return `container` with a request for each resource that has a limit but no request.

    The request is equal to the limit. The API server sets the same defaults in pods.

    upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Pod
    """
    stated = container.get("resources") or {}
    limits, requests = stated.get("limits") or {}, stated.get("requests") or {}
    return {**container, "resources": {"limits": limits, "requests": {**limits, **requests}}}


def _scaled(resource: str, scaled: Quantity, base: Quantity, result: Quantity) -> Quantity:
    """Return `scaled` x `result` / `base`, rounded down.

    upstream: limit_and_request_scaling.go: scaleQuantityProportionallyCPU and -Mem
    """
    unit = _UNITS.get(resource, _WHOLE)
    factor, divisor, multiplier = (round_up(one.nano, unit) for one in (scaled, base, result))
    return Quantity(nano=factor * multiplier // divisor * unit, format=scaled.format)
