"""CandidateColumns: the costs of all candidates, by rule and row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Status
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.interface import Rows

Ints = npt.NDArray[np.int64]


class CandidateColumns:
    """`unknown[row]` is set if the node was not evaluated since it changed.

    `costs[i, row]` is the candidate's cost by rule i, valid only where `is_candidate`.
    `statuses[refusals[row]]` is why the node is no candidate; 0 if it is one.
    """

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        """Start with `capacity` unknown rows."""
        self.rules = rules
        self.unknown: npt.NDArray[np.bool_] = np.ones(capacity, np.bool_)
        self.is_candidate: npt.NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.costs: Ints = np.zeros((len(rules), capacity), np.int64)
        self.answers: list[Candidate | Status | None] = [None] * capacity
        self.refusals: npt.NDArray[np.int32] = np.zeros(capacity, np.int32)
        self.statuses: list[Status] = [SUCCESS]
        self._refusal_of: dict[Status, int] = {}

    def put(self, row: int, answer: Candidate | Status) -> None:
        """Store the result of the dry run on `row`."""
        self.unknown[row] = False
        self.answers[row] = answer
        self.is_candidate[row] = isinstance(answer, Candidate)
        if isinstance(answer, Candidate):
            self.costs[:, row] = [rule.cost(answer) for rule in self.rules]
            self.refusals[row] = 0
        else:
            self.refusals[row] = self._refusal(answer)

    def _refusal(self, status: Status) -> int:
        code = self._refusal_of.get(status)
        if code is None:
            code = self._refusal_of[status] = len(self.statuses)
            self.statuses.append(status)
        return code

    def refusal_counts(self, among: Rows) -> Iterator[tuple[Status, int]]:
        """Why nodes in `among` are no candidates, with the number of nodes for each reason."""
        tally = np.bincount(self.refusals[among], minlength=len(self.statuses))
        tally[0] = 0
        for code in np.flatnonzero(tally).tolist():
            yield self.statuses[code], int(tally[code])

    def rows(self, among: Rows) -> list[int]:
        """The candidates in `among`."""
        found: list[int] = among[self.is_candidate[among]].tolist()
        return found

    def candidate(self, row: int) -> Candidate:
        """The candidate in `row`, which must be one."""
        answer = self.answers[row]
        assert isinstance(answer, Candidate)
        return answer
