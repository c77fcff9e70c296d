"""The requests of claims, validated and resolved for the device search.

An invalid claim or class raises AllocationError, which fails the scheduling attempt as in upstream.

upstream: structured/internal/stable/allocator_stable.go: validateDeviceRequest
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.objects import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
)
from fairlead.engine.core.status import Status, error, unresolvable

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
DEVICES_MAX: Final = 32  # AllocationResultsMaxSize
ALTERNATIVES_MAX: Final = 8  # FirstAvailableDeviceRequestMaxSize

FindClass = Callable[[str], DeviceClass | None]


class AllocationError(Exception):
    """Raised if a claim or a DeviceClass of the claim is invalid; the message is the reason."""


class Selector(Struct, frozen=True):
    """A CEL expression; `origin` identifies the selector in error messages."""

    expression: str
    origin: str


class ResolvedRequest(Struct, frozen=True, eq=False):
    """A request without alternatives, or one alternative of a request.

    For an alternative, `parent` is the name of the request to which the alternative belongs, and
    `place` is the index of the alternative in that request. For a request without alternatives,
    `parent` is the name of the request itself, and `place` is None.
    """

    parent: str
    name: str
    spec: ExactDeviceRequest
    device_class: DeviceClass
    selectors: tuple[Selector, ...]
    place: int | None

    @property
    def full_name(self) -> str:
        """The name of the request; for an alternative, `parent/name`."""
        return self.parent if self.place is None else f"{self.parent}/{self.name}"

    def is_named_in(self, names: Iterable[str]) -> bool:
        """Return whether `names` contains `parent` or `full_name`."""
        return any(name in (self.parent, self.full_name) for name in names)


class ResolvedClaim(Struct, frozen=True, eq=False):
    """The resolved requests of one claim.

    Each request is a tuple of its alternatives, the most preferred first.
    """

    claim: ResourceClaim
    requests: tuple[tuple[ResolvedRequest, ...], ...]

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        """The constraints on the devices of the claim."""
        return self.claim.spec.devices.constraints


def refusal_of(claim: ResourceClaim, find_class: FindClass) -> Status | None:
    """Return the status with which PreFilter rejects `claim`; None if PreFilter accepts it.

    upstream: dynamicresources.go: PreFilter
    """
    for request in claim.spec.devices.requests:
        if request.exactly is None and not request.first_available:
            return unresolvable(
                f"resource claim {claim.key}, request {request.name}: unknown request type"
            )
        for name, one in _alternatives(request):
            refusal = _refusal_of_class(one.device_class_name, name, find_class)
            if refusal is not None:
                return refusal
    return None


def _refusal_of_class(class_name: str, request: str, find_class: FindClass) -> Status | None:
    if not class_name:
        return error(f"request {request}: unsupported request type")
    if find_class(class_name) is None:
        return unresolvable(f"request {request}: device class {class_name} does not exist")
    return None


def _alternatives(request: DeviceRequest) -> Iterator[tuple[str, ExactDeviceRequest]]:
    if request.exactly is not None:
        yield request.name, request.exactly
    for one in request.first_available:
        yield f"{request.name}/{one.name}", one


def resolve_claim(claim: ResourceClaim, find_class: FindClass) -> ResolvedClaim:
    """Return `claim` with resolved requests. Raises AllocationError if the claim is invalid."""
    requests = tuple(
        tuple(_resolve_alternatives(claim, request, find_class))
        for request in claim.spec.devices.requests
    )
    for i, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            raise AllocationError(
                f"claim {claim.key}, constraint #{i}: empty constraint"
                " (unsupported constraint type?)"
            )
    return ResolvedClaim(claim, requests)


def _resolve_alternatives(
    claim: ResourceClaim, request: DeviceRequest, find_class: FindClass
) -> Iterator[ResolvedRequest]:
    if request.exactly is not None:
        yield _resolved_request(
            claim, request.name, request.name, request.exactly, find_class, None
        )
        return
    for place, one in enumerate(request.first_available):
        yield _resolved_request(claim, request.name, one.name, one, find_class, place)


def _resolved_request(
    claim: ResourceClaim,
    parent: str,
    name: str,
    spec: ExactDeviceRequest,
    find_class: FindClass,
    place: int | None,
) -> ResolvedRequest:
    where = f"claim {claim.key}, request {name}"
    device_class = find_class(spec.device_class_name)
    if device_class is None:
        known = f"could not retrieve device class {spec.device_class_name}"
        raise AllocationError(f"{where}: {known}")
    if spec.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{where}: unsupported count mode {spec.allocation_mode}")
    selectors = (
        *_selectors(device_class.spec.selectors, f"class {device_class.key}", where),
        *_selectors(spec.selectors, f"claim {claim.key}", where),
    )
    return ResolvedRequest(parent, name, spec, device_class, selectors, place)


def _selectors(
    selectors: tuple[DeviceSelector, ...], origin: str, where: str
) -> Iterator[Selector]:
    for i, selector in enumerate(selectors):
        if selector.cel is None:
            empty = "CEL expression empty (unsupported selector type?)"
            raise AllocationError(f"{where}, selector #{i}: {empty}")
        yield Selector(selector.cel.expression, f"{origin}: selector #{i}")
