"""Substitutes: the sets of new nodes that could replace some nodes at a lower price.

A set of nodes is a substitute if it costs less than a limit, and supplies everything that the pods
require (`Requirement`). Only the scheduler can decide whether the pods really fit, so each
substitute must be tried.

Example: pods request 6 cores. There are small nodes with 2 cores for 0.40, and large nodes with 4
cores for 0.90. Below a limit of 1.50, the substitutes are 3 small nodes (1.20), and a small and a
large node (1.30).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer
from fairlead.whatif.planner.cluster_size.requirement import Requirement

Floats = npt.NDArray[np.float64]

Kind = tuple[int, ...]
"""The indexes of offers that differ only in their zones."""

_SETS_MAX: Final = 500
_TOLERANCE: Final = 1e-6


def substitutes(
    offers: Sequence[NodeOffer], required: Sequence[Requirement], limit: float
) -> Iterator[tuple[Kind, ...]]:
    """Yield the substitutes that cost less than `limit` per hour, the cheapest first.

    `offers` are the kinds of nodes that can be added, and `required` is what the pods require. No
    further node is added to a set that is already a substitute. The search ends after `_SETS_MAX`
    sets, whether or not they are substitutes.
    """
    kinds = _kinds(offers, required)
    prices = np.array([offers[kind[0]].price for kind in kinds], np.float64)
    supplies = np.array([[one.supplies[kind[0]] for one in required] for kind in kinds], np.float64)
    supplies = supplies.reshape(len(kinds), len(required))
    units = _unit_prices(prices, supplies)
    amounts = np.array([one.amount for one in required], np.float64)
    # The sets to examine: (lower bound on the price of each substitute that contains the set,
    # number, price, kinds, what is still lacking). Of equal bounds, the newest set comes first,
    # because it is the nearest to a substitute. A set grows only by its last kind and later kinds,
    # so no set occurs twice.
    sets: list[tuple[float, int, float, tuple[int, ...], Floats]] = [(0.0, 0, 0.0, (), amounts)]
    number = 0
    for _ in range(_SETS_MAX):
        if not sets:
            return
        _, _, price, taken, lacking = heappop(sets)
        if not (lacking > _TOLERANCE).any():
            yield tuple(kinds[at] for at in taken)
            continue
        first = taken[-1] if taken else 0
        left = np.maximum(lacking - supplies[first:], 0.0)
        left[left <= _TOLERANCE] = 0.0
        is_useful = (left < lacking).any(axis=1)
        rest = np.multiply(left, units[first:], out=np.zeros_like(left), where=left > 0)
        bounds = price + prices[first:] + rest.max(axis=1, initial=0.0)
        for at in np.flatnonzero(is_useful & (bounds < limit - _TOLERANCE)).tolist():
            number -= 1
            total = price + float(prices[first + at])
            heappush(sets, (float(bounds[at]), number, total, (*taken, first + at), left[at]))


def _unit_prices(prices: Floats, supplies: Floats) -> Floats:
    """Return, in row k, the lowest price of a unit of each requirement in the kinds k and later.

    The price is infinite if no kind from k on supplies the requirement.
    """
    units = np.full_like(supplies, np.inf)
    np.divide(prices[:, None], supplies, out=units, where=supplies > 0)
    found: Floats = np.minimum.accumulate(units[::-1], axis=0)[::-1]
    return found


def _kinds(offers: Sequence[NodeOffer], required: Sequence[Requirement]) -> list[Kind]:
    """Return the kinds of nodes to choose from, by price.

    A kind is left out if it supplies nothing that is required. A kind is also left out if another
    kind costs at most as much and supplies at least as much.
    """
    supplies = [tuple(each.supplies[at] for each in required) for at in range(len(offers))]
    alike: dict[tuple[object, ...], list[int]] = {}
    for at, one in enumerate(offers):
        key = one.price, one.pool, one.node_type, one.size, supplies[at]
        alike.setdefault(key, []).append(at)
    kinds = sorted(map(tuple, alike.values()), key=lambda kind: (offers[kind[0]].price, kind))
    found: list[Kind] = []
    for kind in kinds:
        supply = supplies[kind[0]]
        if any(supply) and not any(_is_covered(supply, supplies[other[0]]) for other in found):
            found.append(kind)
    return found


def _is_covered(supply: Sequence[float], other: Sequence[float]) -> bool:
    return all(amount <= more for amount, more in zip(supply, other, strict=True))
