"""Binding conditions: devices that must be prepared before a pod may be bound.

A driver or controller sets a device's `bindingConditions` in `status.devices` of the claim. PreBind
waits until all binding conditions are True. PreBind fails if one of the `bindingFailureConditions`
becomes True or the binding timeout expires. The pod's next scheduling attempt then deallocates the
claim.

upstream: plugins/dynamicresources/dynamicresources.go: isClaimReadyForBinding, isClaimTimeout,
hasBindingConditions
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.api.objects import AllocatedDevice, ResourceClaim
from fairlead.api.text.field_problem import quoted
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant


class DeviceBindingFailedError(Exception):
    """Raised if a binding failure condition of a claim's device is True."""


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Return whether any device allocated to the claim has binding conditions."""
    return any(one.binding_conditions for one in _results(claim))


def is_ready_for_binding(claim: ResourceClaim) -> bool:
    """Return whether the claim is allocated and all its binding conditions are True.

    Raises DeviceBindingFailedError if a failure condition is True.
    """
    if claim.status.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        conditions = _conditions(claim, result)
        if conditions is None:
            return False
        for name in result.binding_failure_conditions:
            found = conditions.get(name)
            if found is not None and found.get("status") == "True":
                reason, message = found.get("reason", ""), found.get("message", "")
                raise DeviceBindingFailedError(
                    f"device binding failed: claim={claim.metadata.name}, reason={reason},"
                    f" message={quoted(message)}"
                )
        if any(conditions.get(c, {}).get("status") != "True" for c in result.binding_conditions):
            return False
    return True


def has_timed_out(claim: ResourceClaim, timeout: DurationNs, now: Instant) -> bool:
    """Return whether the claim has binding conditions and was allocated more than `timeout` ago."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp:
        return False
    since = parse_timestamp(allocation.allocation_timestamp)
    return has_binding_conditions(claim) and since + timeout < now


def _results(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _conditions(claim: ResourceClaim, result: AllocatedDevice) -> dict[str, Json] | None:
    """Return the device's conditions, keyed by type; None if status.devices lacks the device."""
    wanted = (result.driver, result.pool, result.device)
    for one in claim.status.devices:
        if (one.get("driver"), one.get("pool"), one.get("device")) == wanted:
            return {condition["type"]: condition for condition in one.get("conditions") or ()}
    return None
