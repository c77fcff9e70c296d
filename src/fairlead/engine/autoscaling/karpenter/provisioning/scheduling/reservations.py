"""Reservations: the number of instances that each reservation has left in a provisioning pass.

upstream: pkg/controllers/provisioning/scheduling/reservationmanager.go
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.labels import RESERVED


class Reservations:
    """Counts the free instances of each reservation.

    A NodeClaim, identified by its host, holds at most one instance of each reservation.
    """

    def __init__(self, types: Iterable[InstanceType]) -> None:
        """Read the reserved offerings of `types`.

        If offerings have different capacities for one reservation, the smallest capacity is used.
        """
        self._left: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}
        for instance_type in types:
            for one in instance_type.offerings:
                if one.capacity_type == RESERVED:
                    left = self._left.get(one.reservation_id, one.reservation_capacity)
                    self._left[one.reservation_id] = min(left, one.reservation_capacity)

    def can_reserve(self, host: str, offering: Offering) -> bool:
        """Return whether `host` holds or can take an instance of the reservation of `offering`."""
        reservation = offering.reservation_id
        return reservation in self._held.get(host, ()) or self._left.get(reservation, 0) > 0

    def reserve(self, host: str, offerings: Iterable[Offering]) -> None:
        """Let `host` hold one instance of the reservation of each offering in `offerings`."""
        held = self._held.setdefault(host, set())
        for one in offerings:
            if one.reservation_id not in held:
                held.add(one.reservation_id)
                self._left[one.reservation_id] -= 1

    def release(self, host: str, offerings: Iterable[Offering]) -> None:
        """For each of `offerings`, release the reserved instance that `host` holds.

        Does nothing for an offering if `host` holds no instance of the offering's reservation.
        """
        held = self._held.get(host, set())
        for one in offerings:
            if one.reservation_id in held:
                held.remove(one.reservation_id)
                self._left[one.reservation_id] += 1
