"""CandidateColumns: what the ordered rules compare, by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.core.status import Status
from fairlead.framework.interface import Rows
from fairlead.scheduling.preemption.candidate import Candidate

Ints = npt.NDArray[np.int64]


class CandidateColumns:
    """`unknown[row]` where the node has not been asked since it changed.

    The integer columns are int64 per row and mean something only where `is_candidate`.
    """

    def __init__(self, capacity: int) -> None:
        """Nothing is known of any of `capacity` rows."""
        self.unknown: npt.NDArray[np.bool_] = np.ones(capacity, np.bool_)
        self.is_candidate: npt.NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.pdb_violations: Ints = np.zeros(capacity, np.int64)
        self.highest_priority: Ints = np.zeros(capacity, np.int64)
        self.priority_sum: Ints = np.zeros(capacity, np.int64)
        self.victim_count: Ints = np.zeros(capacity, np.int64)
        self.start: Ints = np.zeros(capacity, np.int64)
        self.answers: list[Candidate | Status | None] = [None] * capacity

    def put(self, row: int, answer: Candidate | Status) -> None:
        """Take in what the dry run on `row` found."""
        self.unknown[row] = False
        self.answers[row] = answer
        self.is_candidate[row] = isinstance(answer, Candidate)
        if isinstance(answer, Candidate):
            self.pdb_violations[row] = answer.pdb_violations
            self.highest_priority[row] = answer.highest_priority
            self.priority_sum[row] = answer.priority_sum
            self.victim_count[row] = len(answer.victims)
            self.start[row] = answer.start

    def rows(self, among: Rows) -> list[int]:
        """Which of `among` are candidates."""
        found: list[int] = among[self.is_candidate[among]].tolist()
        return found

    def candidate(self, row: int) -> Candidate:
        """The candidate in `row`, which must be one."""
        answer = self.answers[row]
        assert isinstance(answer, Candidate)
        return answer
