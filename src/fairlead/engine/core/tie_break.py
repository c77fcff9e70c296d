"""TieBreak: reproducible choices among equals.

Upstream picks at random. Here a choice is a pure function of the seed and the number of earlier
choices, so the same run makes the same choices on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MASK_64: Final = (1 << 64) - 1


def splitmix64(value: int) -> int:
    """Return a well-mixed 64-bit hash of `value` (Steele, Lea, Flood: SplittableRandom, 2014)."""
    z = (value + 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)


def shuffled(names: Iterable[str], seed: int) -> list[str]:
    """Return `names` in an order that depends only on `seed` and on their number."""
    start = splitmix64(seed & _MASK_64)
    ranked = [(splitmix64(start + number), name) for number, name in enumerate(names)]
    return [name for _, name in sorted(ranked)]


class TieBreak:
    """Picks one of several equal options; `choices` counts the picks from at least two options."""

    def __init__(self, seed: int) -> None:
        """`seed` may be any integer."""
        self._state = splitmix64(seed & _MASK_64)
        self.choices = 0

    def pick(self, count: int) -> int:
        """Return an index from 0 to `count` - 1; increment `choices` if `count` is at least 2."""
        if count == 1:
            return 0
        self.choices += 1
        return splitmix64(self._state + self.choices) % count
