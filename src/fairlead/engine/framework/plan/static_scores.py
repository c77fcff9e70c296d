"""StaticScores: the static scores of the members of a PlanMatrix, one array per StaticResults.

    scores[index[m], row]   `static.score` of member m for the node at `row`; NOT_FEASIBLE if a
                            Filter with `Locality.NODE` rejects that node

The plans of similar shapes share their StaticResults, so there are few arrays `scores[i]`. An array
that no member of the matrix uses any more is free for the scores of other StaticResults.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.engine.framework.interface import Mask, Rows, Scores
from fairlead.engine.framework.plan.static_results import StaticResults

NOT_FEASIBLE: Final = -1


class StaticScores:
    """The static scores of the plans in a PlanMatrix; `member` is a plan's index in the matrix."""

    def __init__(self, width: int) -> None:
        self._scores: Scores = np.zeros((0, width), np.int64)
        self._statics: list[StaticResults | None] = []  # the source of each array in `_scores`
        self._changed_at: list[int] = []  # `changed_at` of each of `_statics`
        self._index: Rows = np.zeros(16, np.int64)
        self._count = 0

    def append(self, static: StaticResults) -> None:
        """Append a member with the results `static`."""
        at = next((i for i, known in enumerate(self._statics) if known is static), None)
        if at is None:
            at = self._new_row()
        self._copy(static, at)
        if self._count == len(self._index):
            self._index = np.concatenate((self._index, self._index))
        self._index[self._count] = at
        self._count += 1

    def _new_row(self) -> int:
        at = next((i for i, known in enumerate(self._statics) if known is None), None)
        if at is None:
            at = len(self._statics)
            self._statics.append(None)
            self._changed_at.append(-1)
        if at >= len(self._scores):
            more = np.zeros((max(1, at), self._scores.shape[1]), np.int64)
            self._scores = np.concatenate((self._scores, more))
        return at

    def remove(self, member: int) -> None:
        """Remove the member at index `member`; the last member moves to this index."""
        at = int(self._index[member])
        self._count -= 1
        self._index[member] = self._index[self._count]
        if not (self._index[: self._count] == at).any():
            self._statics[at] = None

    def update(self, member: int) -> None:
        """Copy the scores of the plan `member` again, because its StaticResults have changed."""
        at = int(self._index[member])
        static = self._statics[at]
        assert static is not None
        self._copy(static, at)

    def _copy(self, static: StaticResults, at: int) -> None:
        if self._statics[at] is not static or self._changed_at[at] != static.changed_at:
            self._statics[at], self._changed_at[at] = static, static.changed_at
            self._scores[at] = np.where(static.codes == 0, static.score, NOT_FEASIBLE)

    def rejected(self, member: int) -> Mask:
        """Return, by row, whether a Locality.NODE Filter of the plan `member` rejects the node."""
        rejected: Mask = self._scores[self._index[member]] < 0
        return rejected

    def at(self, row: int) -> Scores | np.int64:
        """Return the static score of the node at `row` for each member of the PlanMatrix.

        If all members have the same StaticResults, the result is a single score.
        """
        if len(self._statics) == 1:
            score: np.int64 = self._scores[0, row]
            return score
        return self._scores[:, row].take(self._index[: self._count])
