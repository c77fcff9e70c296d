"""How long a simulated machine takes from its request until its Node is Ready."""

from __future__ import annotations

from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.core.tie_break import splitmix64

_SHARES: Final = 1 << 16


def provision_time(usual: DurationNs, seed: int, machine: int) -> DurationNs:
    """Return a time between 3/4 and 5/4 of `usual`, by `seed` and the number `machine`.

    From four seconds on it is in whole seconds, the resolution of timestamps in the API. Nodes that
    are Ready in the same second then become Ready at once, so that the scheduler tries waiting pods
    once for all of them.
    """
    share = splitmix64(seed ^ splitmix64(machine)) % _SHARES
    found = usual * 3 // 4 + usual * share // (2 * _SHARES)
    if usual < 4 * NANOSECONDS_PER_SECOND:
        return found
    return found // NANOSECONDS_PER_SECOND * NANOSECONDS_PER_SECOND
