"""pick_one_node: finds the best candidates by comparing costs rule by rule (`policy.RULES`).

upstream: framework/preemption/preemption.go: pickOneNodeForPreemption
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.engine.framework.interface import Rows
from fairlead.engine.scheduling.preemption.dry_run.candidate_columns import CandidateColumns

ONLY_CANDIDATE: Final = "only candidate"
AT_RANDOM: Final = "random among equals"


class Pick(Struct, frozen=True):
    """The node rows of the best candidates (ascending), and the rule by which they were chosen.

    `rows` are valid until the next search that uses the same CandidateColumns.
    """

    rows: Sequence[int]
    rule: str


def pick_one_node(columns: CandidateColumns, potential: Rows) -> Pick | None:
    """Return the best candidates among the nodes at `potential`; None if there is no candidate.

    If several candidates tie for best, `columns` stores them. The next search compares only these
    candidates and the nodes that have changed since. A single best candidate is not stored, because
    the next search must compare the costs of all candidates to find the rule that decides
    (`Pick.rule`).
    """
    best = columns.best_of(potential)
    if len(best) > 1:
        return Pick(best, AT_RANDOM)
    left = potential[columns.is_candidate[potential]]
    if not len(left):
        return None
    if len(left) == 1:
        return Pick(left.tolist(), ONLY_CANDIDATE)
    for rule, costs in zip(columns.rules, columns.costs, strict=True):
        values = costs[left]
        kept = left[values == np.minimum.reduce(values)]
        if len(kept) == 1:
            return Pick(kept.tolist(), rule.name)
        left = kept
    columns.keep_best(potential, left)
    return Pick(left.tolist(), AT_RANDOM)
