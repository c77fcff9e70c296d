"""TieBreak: reproducible choices among equals.

Upstream picks at random. Here a choice depends only on the seed and the number of earlier choices.
So the same run makes the same choices on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

_MASK_64: Final = (1 << 64) - 1
BLOCK: Final = 256  # the hashes of a block take as long as 20 to 40 calls of `splitmix64`


def splitmix64(value: int) -> int:
    """Return a well-mixed 64-bit hash of `value` (Steele, Lea, Flood: SplittableRandom, 2014)."""
    z = (value + 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)


def shuffled(names: Iterable[str], seed: int) -> list[str]:
    """Return `names`, shuffled; the permutation depends only on `seed` and the number of names."""
    start = splitmix64(seed & _MASK_64)
    ranked = [(splitmix64(start + number), name) for number, name in enumerate(names)]
    return [name for _, name in sorted(ranked)]


def splitmix64_block(start: int) -> list[int]:
    """Return `splitmix64(start + i)` for each i from 0 to BLOCK - 1.

    NumPy computes sums and products of arrays of uint64 modulo 2^64.
    """
    number = np.uint64
    z = np.arange(BLOCK, dtype=number) + number((start + 0x9E3779B97F4A7C15) & _MASK_64)
    z = (z ^ (z >> number(30))) * number(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> number(27))) * number(0x94D049BB133111EB)
    found: list[int] = (z ^ (z >> number(31))).tolist()
    return found


class TieBreak:
    """Picks one of several equal options; `choices` counts picks among two or more options.

    Each pick has a number, and a hash of the seed and this number selects the option. `_block` has
    the hashes of the picks from number `_first` on. These hashes are computed together, because
    computing a single hash in Python takes longer than the rest of the pick.
    """

    def __init__(self, seed: int) -> None:
        """`seed` may be any integer."""
        self._state = splitmix64(seed & _MASK_64)
        self.choices = 0
        self._first = 0
        self._block: list[int] = []

    def pick(self, count: int) -> int:
        """Return an index from 0 to `count` - 1; increment `choices` if `count` is at least 2."""
        if count == 1:
            return 0
        self.choices += 1
        at = self.choices - self._first
        if not 0 <= at < len(self._block):
            self._first, at = self.choices, 0
            self._block = splitmix64_block(self._state + self._first)
        return self._block[at] % count
