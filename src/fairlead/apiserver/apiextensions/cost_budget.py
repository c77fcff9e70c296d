"""Work: what it may cost to look at one object by its type.

A type may say ten thousand things about each of a list's ten thousand items, and a pattern of a
thousand states has to be tried at each letter of a long text. Each is well below what a request may
hold; together they take hours. The unit is what takes some nanoseconds.

upstream: none for types; apiserver/pkg/apis/cel/config.go:RuntimeCELCostBudget for rules
"""

from __future__ import annotations

from typing import Final

WORK_MAX: Final = 500_000_000
ALTERNATIVE: Final = 4_000
_PATH_CHARACTERS: Final = 8  # that are copied meanwhile


class TooMuchWorkError(Exception):
    """It has cost more than it may."""


class Work:
    """What is left of it."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = WORK_MAX

    def spend(self, units: int) -> None:
        """Raises TooMuchWorkError."""
        self._left -= units
        if self._left < 0:
            raise TooMuchWorkError

    def name(self, path: str) -> None:
        """Spend what it takes to say where a value is. Raises TooMuchWorkError."""
        self.spend(len(path) // _PATH_CHARACTERS)
