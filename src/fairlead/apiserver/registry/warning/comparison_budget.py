"""ComparisonBudget: limits the comparisons made to find warnings about one pod.

Paths and ports are compared pairwise, as in upstream; tens of thousands of them would take hours
here. Real pods have few, and clients get only the first few kilobytes of warnings anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COMPARISONS_MAX: Final = 50_000


@dataclass(slots=True)
class ComparisonBudget:
    """The comparisons left for one pod."""

    left: int = COMPARISONS_MAX

    def spend(self, comparisons: int) -> bool:
        """Subtract `comparisons`; return whether any are left."""
        self.left = max(self.left - comparisons, 0)
        return self.left > 0
