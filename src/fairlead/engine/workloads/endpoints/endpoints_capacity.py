"""Limits the Endpoints of a Service to 1,000 addresses; its EndpointSlices contain all addresses.

If there are more than 1,000 ready addresses, 1,000 of them are kept. All addresses that are not
ready are dropped. Each subset keeps a share in proportion to its number of ready addresses.

If there are at most 1,000 ready addresses, all of them are kept. The remaining places up to 1,000
are filled with addresses that are not ready. Each subset gets a share of these places in proportion
to its number of addresses that are not ready.

Shares are rounded up, so the last subsets may get less than their share.

Example: subsets with 900 and 300 ready addresses keep 750 and 250.

upstream: pkg/controller/endpoint/endpoints_controller.go:truncateEndpoints
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from fairlead.api.json import Json

ADDRESSES_MAX: Final = 1_000
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
TRUNCATED: Final = "truncated"
_READY: Final = "addresses"
_NOT_READY: Final = "notReadyAddresses"


def truncated(subsets: Sequence[Json]) -> list[Json] | None:
    """Return `subsets` reduced to 1,000 addresses, or None if they have at most 1,000."""
    ready, not_ready = (_count(subsets, key) for key in (_READY, _NOT_READY))
    if ready + not_ready <= ADDRESSES_MAX:
        return None
    if ready > ADDRESSES_MAX:
        only_ready = [
            {key: part for key, part in one.items() if key != _NOT_READY} for one in subsets
        ]
        return _shared(only_ready, _READY, ADDRESSES_MAX)
    return _shared(subsets, _NOT_READY, ADDRESSES_MAX - ready)


def _count(subsets: Sequence[Json], key: str) -> int:
    return sum(len(one.get(key, ())) for one in subsets)


def _shared(subsets: Sequence[Json], key: str, room: int) -> list[Json]:
    """Return `subsets` with at most `room` addresses in total in the field `key`.

    Each subset keeps a share in proportion to its number of addresses in this field.
    """
    total, left = _count(subsets, key), room
    found: list[Json] = []
    for one in subsets:
        addresses = one.get(key, [])
        # computed with floats, as in upstream
        kept = addresses[: min(left, ceil(len(addresses) / total * room))]
        left -= len(kept)
        others = {name: part for name, part in one.items() if name != key}
        found.append({key: kept, **others} if kept else others)
    return found
