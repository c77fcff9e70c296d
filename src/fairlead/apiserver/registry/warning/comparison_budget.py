"""Patience: how many comparisons are made to find something to warn of.

Files and ports are compared each with each, as upstream does; of tens of thousands that takes hours
here. Nobody writes so many, and of so many warnings clients hear the first few thousand letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COMPARISONS_MAX: Final = 50_000


@dataclass(slots=True)
class Patience:
    """What is left of it, for one pod."""

    left: int = COMPARISONS_MAX

    def spend(self, comparisons: int) -> bool:
        """Whether there is something left after so many more."""
        self.left = max(self.left - comparisons, 0)
        return self.left > 0
