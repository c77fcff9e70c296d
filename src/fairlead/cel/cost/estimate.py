"""Estimate: from how little to how much something may be, a size or a cost.

The greatest number stands for no bound, and stays what it is.

upstream: cel-go's checker/cost.go, common/cost
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

ENDLESS: Final = (1 << 64) - 1


class Estimate(NamedTuple):
    """At least `low`, at most `high`."""

    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        """Both, one after the other."""
        return Estimate(_kept(self.low + other.low), _kept(self.high + other.high))

    def times(self, other: Estimate) -> Estimate:
        """One for each of the other."""
        return Estimate(_kept(self.low * other.low), _kept(self.high * other.high))

    def scaled(self, factor: float) -> Estimate:
        """So much for each, rounded up."""
        return Estimate(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Estimate) -> Estimate:
        """Either of them."""
        return Estimate(min(self.low, other.low), max(self.high, other.high))


def fixed(number: int) -> Estimate:
    """Exactly so much."""
    return Estimate(number, number)


NOTHING: Final = fixed(0)
ONE: Final = fixed(1)
UNKNOWN: Final = Estimate(0, ENDLESS)


def _kept(number: int) -> int:
    return min(number, ENDLESS)


def _scaled(number: int, factor: float) -> int:
    product = float(number) * factor
    return ENDLESS if product >= ENDLESS else ceil(product)
