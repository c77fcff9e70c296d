"""CandidateColumns: the results of dry runs and the costs of candidates, for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Status
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.interface import Rows

Ints = npt.NDArray[np.int64]


class CandidateColumns:
    """The result of the dry run on each row, with the costs of candidates.

    `unknown[row]` is True if the node has not been evaluated since its last change. `costs[i, row]`
    is the candidate's cost under rule i, and is valid only if `is_candidate[row]`. For any other
    row, `statuses[refusals[row]]` is the reason; `refusals[row]` is 0 for candidates. `find(row)`
    finds the victims of a candidate for which only the costs are stored.
    """

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        """Start with `capacity` rows that are all unknown."""
        self.rules = rules
        self.unknown: npt.NDArray[np.bool_] = np.ones(capacity, np.bool_)
        self.is_candidate: npt.NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.costs: Ints = np.zeros((len(rules), capacity), np.int64)
        self._candidates: dict[int, Candidate] = {}
        self.find: Callable[[int], Candidate | Status] | None = None
        self.refusals: npt.NDArray[np.int32] = np.zeros(capacity, np.int32)
        self.statuses: list[Status] = [SUCCESS]
        self._refusal_of: dict[Status, int] = {}

    def put(self, row: int, answer: Candidate | Status) -> None:
        """Store the result `answer` of the dry run on `row`."""
        self.unknown[row] = False
        self.is_candidate[row] = isinstance(answer, Candidate)
        if isinstance(answer, Candidate):
            self._candidates[row] = answer
            self.costs[:, row] = [rule.cost(answer) for rule in self.rules]
            self.refusals[row] = 0
        else:
            self.refusals[row] = self._refusal(answer)

    def put_costs(self, rows: Rows, costs: Ints) -> None:
        """Store that `rows` are candidates with `costs`, shape (rules, rows).

        The victims of these candidates are determined on demand.
        """
        self.unknown[rows] = False
        self.is_candidate[rows] = True
        self.costs[:, rows] = costs
        self.refusals[rows] = 0
        if self._candidates:
            stale = np.zeros(len(self.unknown), np.bool_)
            stale[rows] = True
            for row in [row for row in self._candidates if stale[row]]:
                del self._candidates[row]

    def refuse(self, rows: Rows, status: Status) -> None:
        """Store `status` as the result of the dry runs on `rows`."""
        self.unknown[rows] = False
        self.is_candidate[rows] = False
        self.refusals[rows] = self._refusal(status)

    def _refusal(self, status: Status) -> int:
        code = self._refusal_of.get(status)
        if code is None:
            code = self._refusal_of[status] = len(self.statuses)
            self.statuses.append(status)
        return code

    def refusal_counts(self, among: Rows) -> Iterator[tuple[Status, int]]:
        """Yield (status, number of rows) for each reason why rows in `among` are not candidates."""
        tally = np.bincount(self.refusals[among], minlength=len(self.statuses))
        tally[0] = 0
        for code in np.flatnonzero(tally).tolist():
            yield self.statuses[code], int(tally[code])

    def count(self, among: Rows) -> int:
        """Return the number of rows in `among` that are candidates."""
        return int(np.count_nonzero(self.is_candidate[among]))

    def rows(self, among: Rows) -> list[int]:
        """Return the rows in `among` that are candidates."""
        found: list[int] = among[self.is_candidate[among]].tolist()
        return found

    def candidate(self, row: int) -> Candidate:
        """Return the candidate at `row`; the node at `row` must be a candidate."""
        found = self._candidates.get(row)
        if found is None:
            assert self.find is not None
            answer = self.find(row)
            assert isinstance(answer, Candidate)
            found = self._candidates[row] = answer
        return found

    def answer(self, row: int) -> Candidate | Status:
        """Return the result of the dry run on `row`, which must have been evaluated."""
        return self.candidate(row) if self.is_candidate[row] else self._status(row)

    def _status(self, row: int) -> Status:
        return self.statuses[int(self.refusals[row])]
