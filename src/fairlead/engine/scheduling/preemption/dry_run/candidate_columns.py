"""CandidateColumns: the results of dry runs and the costs of candidates, for each node."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Status
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.interface import Mask, Rows

Ints = npt.NDArray[np.int64]
# If more rows than this have changed, searching all rows for the best candidates takes less time.
_CHANGED_MAX: Final = 16


class CandidateColumns:
    """The result of the dry run on each node, with the costs of candidates.

    `row` is a node's row in the node table. `unknown[row]` is True if the node has not been
    evaluated since its last change. If `is_candidate[row]` is True, `costs[i, row]` is the
    candidate's cost under `rules[i]`, and `refusals[row]` is 0. If a node was evaluated and is not
    a candidate, `statuses[refusals[row]]` is the reason. `find(row)` finds the victims of a
    candidate for which only the costs are stored.
    """

    def __init__(self, capacity: int, rules: Sequence[CandidateRule]) -> None:
        """Start with `capacity` rows, one for each node, whose results are all unknown."""
        self.rules = rules
        self.unknown: npt.NDArray[np.bool_] = np.ones(capacity, np.bool_)
        self.is_candidate: npt.NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.costs: Ints = np.zeros((len(rules), capacity), np.int64)
        self._candidates: dict[int, Candidate] = {}
        self.find: Callable[[int], Candidate | Status] | None = None
        self.refusals: npt.NDArray[np.int32] = np.zeros(capacity, np.int32)
        self.statuses: list[Status] = [SUCCESS]
        self._refusal_of: dict[Status, int] = {}
        self._potential: Rows | None = None
        self._is_potential: Mask = np.zeros(0, np.bool_)
        self._count: int | None = None  # the number of candidates in `_potential`
        self._best: list[int] = []
        self._lowest: list[int] = []  # the costs of each of the best candidates
        self._changed: list[int] = []  # the rows stored since `keep_best`

    def put(self, row: int, answer: Candidate | Status) -> None:
        """Store the result `answer` of the dry run on the node at `row`."""
        self.unknown[row] = False
        is_candidate = isinstance(answer, Candidate)
        if is_candidate != self.is_candidate[row]:
            self.is_candidate[row] = is_candidate
            if self._count is not None and self._is_potential[row]:
                self._count += 1 if is_candidate else -1
        if self._best:
            self._note([row])
        if isinstance(answer, Candidate):
            self._candidates[row] = answer
            self.costs[:, row] = [rule.cost(answer) for rule in self.rules]
            self.refusals[row] = 0
        else:
            self.refusals[row] = self._refusal(answer)

    def put_costs(self, rows: Rows, costs: Ints) -> None:
        """Store that `rows` are candidates with `costs`, an array of shape (rules, rows)."""
        self.unknown[rows] = False
        self.is_candidate[rows] = True
        self._count = None
        if self._best:
            self._note(rows.tolist())
        self.costs[:, rows] = costs
        self.refusals[rows] = 0
        if self._candidates:
            stale = np.zeros(len(self.unknown), np.bool_)
            stale[rows] = True
            for row in [row for row in self._candidates if stale[row]]:
                del self._candidates[row]

    def refuse(self, rows: Rows, status: Status) -> None:
        """Store `status` as the result of the dry runs on the nodes at `rows`."""
        if not len(rows):
            return
        self.unknown[rows] = False
        self.is_candidate[rows] = False
        self._count = None
        if self._best:
            self._note(rows.tolist())
        self.refusals[rows] = self._refusal(status)

    def _refusal(self, status: Status) -> int:
        code = self._refusal_of.get(status)
        if code is None:
            code = self._refusal_of[status] = len(self.statuses)
            self.statuses.append(status)
        return code

    def is_potential(self, potential: Rows) -> Mask:
        """Return a mask over the rows of the node table that is True for the rows in `potential`.

        Callers must not change the mask.
        """
        if potential is not self._potential:
            self._potential, self._best, self._count = potential, [], None
            self._is_potential = np.zeros(len(self.unknown), np.bool_)
            self._is_potential[potential] = True
        return self._is_potential

    def unknown_rows(self, potential: Rows) -> Rows:
        """Return the rows in `potential` whose nodes must be evaluated, ascending."""
        found: Rows = (self.unknown & self.is_potential(potential)).nonzero()[0]
        return found

    # --- the best candidates ---------------------------------------------------------------

    def keep_best(self, potential: Rows, best: Rows) -> None:
        """Let `best_of` return `best`, the cheapest candidates among `potential`."""
        self.is_potential(potential)
        self._best, self._changed = best.tolist(), []
        self._lowest = self.costs[:, best[0]].tolist()

    def best_of(self, potential: Rows) -> list[int]:
        """Return the best candidates in `potential`, if `keep_best` has stored them.

        Results that have changed since `keep_best` are taken into account. Returns [] if the best
        candidates are not known; the caller must then compare all candidates. The list is valid
        until the next call.
        """
        if potential is not self._potential:
            return []
        for row in self._changed if self._best else ():
            if self._is_potential[row]:
                self._enter(row)
        self._changed.clear()
        return self._best

    def _enter(self, row: int) -> None:
        """Update `_best` and `_lowest` after the result on the node at `row` has changed.

        `row` must be one of the rows in `_potential`. Invariant: every candidate in `_potential`
        has costs that are not lower than `_lowest`. `_best` contains the candidates in `_potential`
        with exactly these costs. `_best` may be empty.
        """
        rows = self._best
        at = bisect_left(rows, row)
        is_listed = at < len(rows) and rows[at] == row
        costs = self.costs[:, row].tolist() if self.is_candidate[row] else None
        if costs is not None and costs < self._lowest:
            self._best, self._lowest = [row], costs
        elif costs != self._lowest:
            if is_listed:
                del rows[at]
        elif not is_listed:
            rows.insert(at, row)

    def _note(self, rows: list[int]) -> None:
        self._changed += rows
        if len(self._changed) > _CHANGED_MAX:
            self._best = []

    # --- all results -----------------------------------------------------------------------

    def refusal_counts(self, among: Rows) -> list[tuple[Status, int]]:
        """Return (reason, number of nodes) for the nodes at `among` that are not candidates."""
        tally = np.bincount(self.refusals[among]).tolist()
        found = zip(self.statuses, tally, strict=False)  # later statuses have no node in `among`
        return [(status, count) for status, count in found if count and status is not SUCCESS]

    def count(self, among: Rows) -> int:
        """Return the number of nodes at the rows `among` that are candidates."""
        if among is not self._potential:
            return int(np.count_nonzero(self.is_candidate[among]))
        if self._count is None:
            self._count = int(np.count_nonzero(self.is_candidate & self._is_potential))
        return self._count

    def rows(self, among: Rows) -> list[int]:
        """Return the rows in `among` whose nodes are candidates."""
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

    def result(self, row: int) -> Candidate | Status:
        """Return the result of the dry run on the node at `row`, which must have been evaluated."""
        if self.is_candidate[row]:
            return self.candidate(row)
        return self.statuses[int(self.refusals[row])]
