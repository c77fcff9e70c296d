"""Leases as heartbeats: when one was renewed last, also where nobody writes every renewal.

A real kubelet rewrites its Lease every ten seconds. The annotation `fairlead.dev/renewed-every`
stands for those writes: such a Lease was first renewed at spec.renewTime and every so often since,
until further notice, so a healthy simulated node costs nothing. Whoever ends the renewals takes
the annotation away and leaves the last renewal in spec.renewTime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.objects import Lease
from fairlead.api.timestamp import parse_duration, parse_timestamp

NODE_LEASES: Final = "kube-node-lease"
RENEWED_EVERY: Final = "fairlead.dev/renewed-every"


@dataclass(frozen=True, slots=True)
class Renewals:
    """Renewed at `first` and, unless `every` is 0, every so many ns since (all in ns)."""

    first: int
    every: int = 0

    def last(self, now: int) -> int:
        """The newest renewal at or before `now`; `first` when that is still to come."""
        if not self.every or now <= self.first:
            return self.first
        return now - (now - self.first) % self.every


def renewals_of(lease: Lease) -> Renewals | None:
    """How `lease` is renewed, None for one that never was.

    Raises ValueError for a renewTime that is no timestamp or an annotation that is no duration.
    """
    if not lease.spec.renew_time:
        return None
    every = parse_duration(lease.metadata.annotations.get(RENEWED_EVERY, "0"))
    return Renewals(parse_timestamp(lease.spec.renew_time), max(0, every))
