"""Computes when a Lease was last renewed.

A real kubelet rewrites its Lease every ten seconds. A simulated kubelet instead writes the interval
into the annotation `fairlead.dev/renewed-every`. The Lease then counts as renewed at
spec.renewTime and after each further interval. To end the renewals, the simulated kubelet removes
the annotation and sets spec.renewTime to the time of the last renewal.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.objects import Lease
from fairlead.api.timestamp import parse_duration, parse_timestamp

NODE_LEASES: Final = "kube-node-lease"
RENEWED_EVERY: Final = "fairlead.dev/renewed-every"


class Renewals(Struct, frozen=True):
    """The renewals of a Lease: one at `first`, the others at intervals of `every` (both in ns).

    If `every` is 0, there is only one renewal.
    """

    first: int
    every: int = 0

    def last(self, now: int) -> int:
        """Return the time of the last renewal at or before `now`, or `first` if there is none."""
        if not self.every or now <= self.first:
            return self.first
        return now - (now - self.first) % self.every


def renewals_of(lease: Lease) -> Renewals | None:
    """Return the renewals of `lease`, or None if it was never renewed.

    Raises ValueError if spec.renewTime is invalid, or if the annotation
    `fairlead.dev/renewed-every` is not a duration.
    """
    if not lease.spec.renew_time:
        return None
    every = parse_duration(lease.metadata.annotations.get(RENEWED_EVERY, "0"))
    return Renewals(parse_timestamp(lease.spec.renew_time), max(0, every))
