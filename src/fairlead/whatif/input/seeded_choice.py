"""Random choices that depend only on a seed, so that every run makes the same choices.

Each number is a hash of (seed, purpose, index). The numbers for one purpose therefore do not depend
on how many numbers are drawn for other purposes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from fairlead.engine.core.tie_break import splitmix64

Item = TypeVar("Item")


def draws(seed: int, purpose: int = 0) -> Iterator[int]:
    """Yield an endless sequence of 64-bit numbers that depends only on `seed` and `purpose`."""
    state = splitmix64(splitmix64(seed & (2**64 - 1)) ^ purpose)
    number = 0
    while True:
        yield splitmix64((state + number) & (2**64 - 1))
        number += 1


def shuffled(items: Sequence[Item], seed: int, purpose: int = 0) -> list[Item]:
    """Return `items` in a random order that `seed` and `purpose` determine."""
    order = list(items)
    for last, draw in zip(range(len(order) - 1, 0, -1), draws(seed, purpose), strict=False):
        chosen = draw % (last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order
