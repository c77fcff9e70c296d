"""Reservations: how many instances of each reservation are left during a pass.

upstream: pkg/controllers/provisioning/scheduling/reservationmanager.go
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.labels import RESERVED


class Reservations:
    """Reservations by id; a NodeClaim, named by its host, holds at most one unit of each."""

    def __init__(self, types: Iterable[InstanceType]) -> None:
        """Count units.

        If offerings disagree about a reservation's capacity, the smallest counts.
        """
        self._left: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}
        for instance_type in types:
            for one in instance_type.offerings:
                if one.capacity_type == RESERVED:
                    left = self._left.get(one.reservation_id, one.reservation_capacity)
                    self._left[one.reservation_id] = min(left, one.reservation_capacity)

    def can_reserve(self, host: str, offering: Offering) -> bool:
        """Return whether `host` holds the reservation, or a unit of it is free."""
        reservation = offering.reservation_id
        return reservation in self._held.get(host, ()) or self._left.get(reservation, 0) > 0

    def reserve(self, host: str, offerings: Iterable[Offering]) -> None:
        """Take a unit of each reservation that `host` does not hold yet."""
        held = self._held.setdefault(host, set())
        for one in offerings:
            if one.reservation_id not in held:
                held.add(one.reservation_id)
                self._left[one.reservation_id] -= 1

    def release(self, host: str, offerings: Iterable[Offering]) -> None:
        """Release the units of these reservations that `host` holds."""
        held = self._held.get(host, set())
        for one in offerings:
            if one.reservation_id in held:
                held.remove(one.reservation_id)
                self._left[one.reservation_id] += 1
