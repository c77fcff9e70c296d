"""The time that a simulated machine takes from its request until its Node is Ready."""

from __future__ import annotations

from typing import Final

from fairlead.api.nodes.readiness import READY_AFTER
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.core.tie_break import splitmix64

_SHARES: Final = 1 << 16


def provision_time(usual: DurationNs, seed: int, machine: int) -> DurationNs:
    """Return a time between 3/4 and 5/4 of the `usual` time (ns), chosen by `seed` and `machine`.

    `machine` is the sequence number of the machine. If `usual` is at least four seconds, the time
    is rounded down to whole seconds, the resolution of timestamps in the API.
    """
    share = splitmix64(seed ^ splitmix64(machine)) % _SHARES
    found = usual * 3 // 4 + usual * share // (2 * _SHARES)
    if usual < 4 * NANOSECONDS_PER_SECOND:
        return found
    return found // NANOSECONDS_PER_SECOND * NANOSECONDS_PER_SECOND


def registration_time(usual: DurationNs, seed: int, machine: int) -> DurationNs:
    """Return the time in ns from the request of a machine until its Node registers.

    The Node registers `READY_AFTER` before it becomes Ready, but not before the request.
    `provision_time` has the same arguments and returns the time until the Node becomes Ready.
    """
    return max(provision_time(usual, seed, machine) - READY_AFTER, 0)
