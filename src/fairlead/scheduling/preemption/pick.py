"""pick_one_node: which candidate costs least, by ordered rules.

upstream: framework/preemption/preemption.go: pickOneNodeForPreemption
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.framework.interface import Rows
from fairlead.scheduling.preemption.candidate_columns import CandidateColumns, Ints

ONLY_CANDIDATE: Final = "only candidate"
AT_RANDOM: Final = "random among equals"


@dataclass(frozen=True, slots=True)
class Pick:
    """The rows that are left, ascending; `rule` is what decided."""

    rows: tuple[int, ...]
    rule: str


def _rules(columns: CandidateColumns) -> tuple[tuple[str, Ints], ...]:
    """The rules in order, each as (name, column of which the smallest wins)."""
    return (
        # A budget is a promise to the owner of the pods; breaking it is the last resort.
        ("fewest PDB violations", columns.pdb_violations),
        # Whoever must go should matter as little as possible,
        ("lowest highest victim priority", columns.highest_priority),
        # also all together; with equal priorities this already prefers fewer victims.
        ("lowest sum of victim priorities", columns.priority_sum),
        # Can decide only where a victim has the lowest possible priority, which adds 0 above.
        ("fewest victims", columns.victim_count),
        # Whoever runs shortest loses least work.
        ("latest start of the most important victims", -columns.start),
    )


def pick_one_node(columns: CandidateColumns, potential: Rows) -> Pick | None:
    """The candidates among `potential` that no rule tells apart; None without candidates."""
    left = potential[columns.is_candidate[potential]]
    if not len(left):
        return None
    if len(left) == 1:
        return Pick((int(left[0]),), ONLY_CANDIDATE)
    for name, column in _rules(columns):
        values = column[left]
        kept = left[values == values.min()]
        if len(kept) == 1:
            return Pick((int(kept[0]),), name)
        left = kept
    return Pick(tuple(np.sort(left).tolist()), AT_RANDOM)
