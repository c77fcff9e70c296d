"""Ranges of sizes and costs.

The largest number, ENDLESS, means that there is no limit. Sums and products above this number
become ENDLESS.

upstream: cel-go's checker/cost.go, common/cost
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

ENDLESS: Final = (1 << 64) - 1


class Estimate(NamedTuple):
    """A size or a cost that is at least `low` and at most `high`."""

    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum of two estimates."""
        return Estimate(_kept(self.low + other.low), _kept(self.high + other.high))

    def times(self, other: Estimate) -> Estimate:
        """Return the product of two estimates."""
        return Estimate(_kept(self.low * other.low), _kept(self.high * other.high))

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate multiplied by `factor`, rounded up."""
        return Estimate(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Estimate) -> Estimate:
        """Return the smallest range that includes both estimates."""
        return Estimate(min(self.low, other.low), max(self.high, other.high))


def fixed(number: int) -> Estimate:
    """Return the estimate of a known number, where `low` equals `high`."""
    return Estimate(number, number)


NOTHING: Final = fixed(0)
ONE: Final = fixed(1)
UNKNOWN: Final = Estimate(0, ENDLESS)


def _kept(number: int) -> int:
    return min(number, ENDLESS)


def _scaled(number: int, factor: float) -> int:
    product = float(number) * factor
    return ENDLESS if product >= ENDLESS else ceil(product)
