"""Consumable capacity: how much of a device's capacity a request consumes.

Several requests can share a device that has `allowMultipleAllocations`. Each allocation consumes a
part of each of the device's capacities. The request policy of a capacity rounds requested amounts
up and rejects invalid amounts. A request that does not mention a capacity consumes the policy's
default. If the policy has no default, the request consumes the whole capacity.

Example: a network card has 10G of `bandwidth`, whose policy has a minimum of 1G and steps of 500M.
A request for 1200M consumes 1500M, so six such requests fit and leave 1G.

upstream: structured/internal/incubating/consumable_capacity.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.objects import (
    CapacityRange,
    CapacityRequestPolicy,
    CapacityRequirements,
    Device,
    DeviceCapacity,
)
from fairlead.api.quantity import NANOS_PER_UNIT, Format, Quantity, parse_quantity

Consumption = Mapping[str, Quantity]  # keyed by the name of the capacity

_NOTHING: Final[Mapping[str, int]] = {}


def consumption_of(wanted: CapacityRequirements | None, device: Device) -> Consumption | None:
    """Return how much of each capacity of `device` a request consumes, by capacity name.

    `wanted` are the capacities that the request states, or None. Returns None if the request names
    a capacity that the device lacks. Also returns None if the policy of a capacity forbids the
    amount.

    upstream: requestsContainNonExistCapacity, GetConsumedCapacityFromRequest, violatesPolicy
    """
    requests = {} if wanted is None else wanted.requests
    if any(name not in device.capacity for name in requests):
        return None
    consumed: dict[str, Quantity] = {}
    for name, capacity in device.capacity.items():
        text = requests.get(name)
        amount = _consumed(None if text is None else parse_quantity(text), capacity)
        if _is_refused(amount, capacity.request_policy):
            return None
        consumed[name] = amount
    return consumed


def has_capacity(
    consumption: Consumption,
    device: Device,
    allocated: Mapping[str, int] | None,
    allocating: Mapping[str, int] | None,
) -> bool:
    """Return whether the device has enough capacity left for `consumption`.

    `allocated` are the amounts that allocated claims consume. `allocating` are the amounts that the
    current search consumes. `allocated` and `allocating` are in units of 10^-9.

    upstream: CmpRequestOverCapacity
    """
    held, taken = allocated or _NOTHING, allocating or _NOTHING
    return all(
        held.get(name, 0) + taken.get(name, 0) + amount.nano
        <= parse_quantity(device.capacity[name].value).nano
        for name, amount in consumption.items()
    )


def _consumed(wanted: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    """Return the amount that a request for `wanted` consumes of a capacity.

    If `wanted` is None, the amount is the default of the request policy. If there is no default,
    the amount is the whole capacity.

    upstream: calculateConsumedCapacity, fillEmptyRequest.
    """
    policy = capacity.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return parse_quantity(capacity.value if default is None else default)
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _next_step(wanted, parse_quantity(policy.valid_range.min), policy.valid_range)
    allowed = (parse_quantity(value) for value in policy.valid_values)  # ascending
    return next((value for value in allowed if wanted <= value), wanted)


def _next_step(wanted: Quantity, least: Quantity, valid: CapacityRange) -> Quantity:
    """Round `wanted` up to the next of `least`, `least` + step, `least` + 2 × step, ...

    If `valid` has no step, return the greater of `wanted` and `least`.

    upstream: roundUpRange
    """
    if wanted < least:
        return least
    if valid.step is None:
        return wanted
    step = parse_quantity(valid.step).whole
    steps = -(-(wanted.whole - least.whole) // step)
    whole = least.whole + steps * step
    return Quantity(nano=whole * NANOS_PER_UNIT, format=Format.BINARY_SI)


def _is_refused(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    """Return True if `policy` does not allow a request to consume `amount`.

    upstream: violatesPolicy, violateValidRange, violateValidValues.
    """
    if policy is None:
        return False
    if policy.default is not None and amount == parse_quantity(policy.default):
        return False
    valid = policy.valid_range
    if valid is None:
        values = [parse_quantity(value) for value in policy.valid_values]
        return bool(values) and amount not in values
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    if valid.step is None or valid.min is None:
        return False
    above = amount.whole - parse_quantity(valid.min).whole
    return above % parse_quantity(valid.step).whole != 0
