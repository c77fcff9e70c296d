"""Instance types, and the offerings in which a provider sells them.

An offering is the combination of an instance type, a zone and a capacity type, and has a price.
Amounts are integers: cpu in thousandths of a core, every other resource in whole units. Prices are
hourly.

upstream: pkg/cloudprovider/types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, CAPACITY_TYPES
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements

Amounts = Mapping[str, int]

NO_PRICE: Final = float.fromhex("0x1.fffffffffffffp+1023")
"""A price that sorts after every real price: upstream's math.MaxFloat64."""

_HUGEPAGES: Final = "hugepages-"
_MEMORY: Final = "memory"


class Offering(Struct, frozen=True, eq=False):
    """An instance type in one zone and with one capacity type, with its price.

    Reserved offerings have a `reservation_id`, and `reservation_capacity` is the number of
    instances left.
    """

    requirements: Requirements
    price: float
    available: bool = True
    reservation_id: str = ""
    reservation_capacity: int = 0
    price_overlaid: bool = False

    @property
    def zone(self) -> str:
        """The zone, "" if the offering has none."""
        return self.requirements.get(ZONE).single or ""

    @property
    def capacity_type(self) -> str:
        """The capacity type: on-demand, spot or reserved; "" if the offering has none."""
        return self.requirements.get(CAPACITY_TYPE).single or ""


class InstanceType(Struct, frozen=True, eq=False, dict=True):
    """A kind of machine: the labels its nodes can have, its size, and its offerings."""

    name: str
    requirements: Requirements
    capacity: Amounts
    overhead: Amounts = field(default_factory=dict)
    offerings: tuple[Offering, ...] = ()
    capacity_overlaid: bool = False

    @cached_property
    def allocatable(self) -> Amounts:
        """The capacity minus the overhead; hugepages are also subtracted from memory."""
        # upstream: types.go:InstanceType.precompute
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.capacity.items()}
        for name, amount in self.capacity.items():
            if name.startswith(_HUGEPAGES) and _MEMORY in left:
                left[_MEMORY] = max(0, left[_MEMORY] - amount)
        return left

    def compatible_offerings(
        self, requirements: Requirements, well_known: frozenset[str]
    ) -> list[Offering]:
        """Return the offerings, available or not, that a node with `requirements` may use.

        `well_known` are labels that a node may get even if `requirements` do not mention them.
        """
        return [
            one for one in self.offerings if requirements.compatible(one.requirements, well_known)
        ]

    def cheapest_price(self, requirements: Requirements, well_known: frozenset[str]) -> float:
        """Return the lowest price of the available offerings that `requirements` allow.

        Returns NO_PRICE if there are none. See `compatible_offerings` for `well_known`.
        """
        prices = (
            one.price
            for one in self.compatible_offerings(requirements, well_known)
            if one.available
        )
        return min(prices, default=NO_PRICE)

    def worst_launch_price(self, requirements: Requirements, well_known: frozenset[str]) -> float:
        """Return the highest possible price of a launch; NO_PRICE if no offering is available.

        Only available offerings that `requirements` allow are considered. Providers use reserved
        capacity first, then spot, then on-demand. The result is the highest price in the first of
        these capacity types that has an offering.
        """
        # upstream: types.go:Offerings.WorstLaunchPrice
        found = [
            one for one in self.compatible_offerings(requirements, well_known) if one.available
        ]
        for capacity_type in CAPACITY_TYPES:
            prices = [one.price for one in found if one.capacity_type == capacity_type]
            if prices:
                return max(prices)
        return NO_PRICE


def fits(requests: Amounts, available: Amounts) -> bool:
    """Return whether `requests` are at most `available`, resource by resource.

    If any available amount is negative, the result is False.
    """
    # upstream: pkg/utils/resources/resources.go:Fits
    if any(amount < 0 for amount in available.values()):
        return False
    return all(amount <= available.get(name, 0) for name, amount in requests.items())


def merged(*amounts: Amounts) -> dict[str, int]:
    """Return the sum of `amounts`, resource by resource."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return total


def unmet_min_values(
    types: Sequence[InstanceType], requirements: Requirements
) -> tuple[int, dict[str, int]]:
    """Return how many `types`, taken from the front, are needed to meet all `minValues`.

    The result is the number of types needed, and a mapping. If all types together suffice, the
    mapping is empty. Otherwise, the number is `len(types)`, and the mapping is {label with too few
    values: number of values found}. If there are no `minValues` or no types, the result is (0, {}).
    A value counts if the requirements of a type list it, even if no offering of the type has it.
    """
    # upstream: types.go:InstanceTypes.SatisfiesMinValues
    with_min_values = requirements.with_min_values()
    if not with_min_values or not types:
        return 0, {}
    values: dict[str, set[str]] = {one.key: set() for one in with_min_values}
    unmet: dict[str, int] = {}
    for needed, instance_type in enumerate(types, 1):
        for one in with_min_values:
            values[one.key] |= instance_type.requirements.get(one.key).values
        unmet = {
            one.key: len(values[one.key])
            for one in with_min_values
            if len(values[one.key]) < (one.min_values or 0)
        }
        if not unmet:
            return needed, {}
    return len(types), unmet


def min_values_error(unmet: Iterable[str]) -> str:
    """Return upstream's error text for labels whose minValues are not met."""
    labels = " ".join(sorted(unmet))
    return f"minValues requirement is not met for label(s) (label(s)=[{labels}])"
