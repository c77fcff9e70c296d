"""CandidateColumns: what the ordered rules compare, by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairlead.core.status import Status
from fairlead.framework.candidate import Candidate, CandidateRule
from fairlead.framework.interface import Rows

Ints = npt.NDArray[np.int64]


class CandidateColumns:
    """`unknown[row]` where the node has not been asked since it changed.

    `costs[i, row]` is what rule i makes of the candidate; it means something only where
    `is_candidate`.
    """

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        """Nothing is known of any of `capacity` rows."""
        self.rules = rules
        self.unknown: npt.NDArray[np.bool_] = np.ones(capacity, np.bool_)
        self.is_candidate: npt.NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.costs: Ints = np.zeros((len(rules), capacity), np.int64)
        self.answers: list[Candidate | Status | None] = [None] * capacity

    def put(self, row: int, answer: Candidate | Status) -> None:
        """Take in what the dry run on `row` found."""
        self.unknown[row] = False
        self.answers[row] = answer
        self.is_candidate[row] = isinstance(answer, Candidate)
        if isinstance(answer, Candidate):
            self.costs[:, row] = [rule.cost(answer) for rule in self.rules]

    def rows(self, among: Rows) -> list[int]:
        """Which of `among` are candidates."""
        found: list[int] = among[self.is_candidate[among]].tolist()
        return found

    def candidate(self, row: int) -> Candidate:
        """The candidate in `row`, which must be one."""
        answer = self.answers[row]
        assert isinstance(answer, Candidate)
        return answer
