"""HighestTotals: the positions of a plan's highest total, updated when single rows change.

A plan (`ShapePlan`) has a total score for each row; a row stands for a node. A placement changes
the total of only one row. So the positions of the highest total are kept as a list. Each call of
`find` updates the list for the rows that changed since the last call. All totals are searched again
only if the list becomes empty, if many rows changed, or after `reset`.

Invariant after `find`: the list contains exactly the positions of the highest total, in ascending
order. `_highest` is that total. The list is `_searched`, or `_positions` if `_searched` is None.
`find` updates the list one changed row at a time. After each row, the list is either empty or exact
for the totals known so far. The known totals are the new totals of the rows already updated, and
the old totals of the other rows.

Example: totals [5, 7, 7, 3] have the highest total 7 at [1, 2]. Row 1 falls to 6: [2]. Row 3 rises
to 7: [2, 3]. Row 0 rises to 8: [0]. Row 0 falls to 4: the list is empty, and a search finds [2, 3].
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np

from fairlead.engine.framework.interface import Mask, Rows, Scores
from fairlead.engine.framework.plan.static_scores import NOT_FEASIBLE
from fairlead.engine.state.change_log import ChangeLog

# Entering a changed row into the list takes as long as searching this many totals.
_TOTALS_PER_ROW: Final = 256
# Removing a position moves all later positions in memory, so each position takes only 4 bytes.
_POSITION: Final = np.dtype(np.intc)


class HighestTotals:
    """Finds the positions (indexes) of the nodes with the highest total of a `ShapePlan`.

    The plan must have all rows of the node table.
    """

    def __init__(self, log: ChangeLog[int], mask: Mask | None = None) -> None:
        """Prepare to find the highest totals; `log` lists the rows of nodes whose pods changed.

        After any other change of totals, call `reset`. If `mask` is given, positions
        where it is False are ignored. The mask must not change.
        """
        self._log = log
        self.mask = mask
        self._read = 0
        self._highest = 0
        self._positions = _nowhere()
        self._searched: Rows | None = None  # a result not copied to `_positions` yet

    def reset(self) -> None:
        """Make the next `find` search all totals."""
        self._positions = _nowhere()
        self._searched = None

    def find(self, totals: Scores) -> Rows | array[int]:
        """Return the positions of the highest of `totals`, ascending; valid until the next call.

        `totals` must not be empty. `totals` must be up to date for all rows in the constructor's
        `log`.
        """
        changes = self._log.position - self._read
        if changes:
            self._read = self._log.position
            rows = None
            if changes * _TOTALS_PER_ROW <= len(totals):
                rows = self._log.since(self._read - changes)
            if rows is None:
                self.reset()
            else:
                self._enter_all(rows, totals)
        if self._searched is None and not self._positions:
            self._searched = self._search(totals)
        return self._positions if self._searched is None else self._searched

    def _search(self, totals: Scores) -> Rows:
        if self.mask is not None:
            totals = np.where(self.mask, totals, NOT_FEASIBLE)
        # `reduce` and `nonzero` have less overhead than `max` and `flatnonzero`.
        highest = np.maximum.reduce(totals)
        self._highest = int(highest)
        best: Rows = (totals == highest).nonzero()[0]
        return best

    def _enter_all(self, rows: Sequence[int], totals: Scores) -> None:
        if self._searched is not None:
            self._positions.frombytes(self._searched.astype(_POSITION).tobytes())
            self._searched = None
        elif not self._positions:
            return
        mask = self.mask
        for row in rows:
            if mask is None or mask[row]:
                self._enter(row, int(totals[row]))

    def _enter(self, position: int, total: int) -> None:
        positions = self._positions
        if total > self._highest:
            self._highest = total
            del positions[:]
            positions.append(position)
            return
        at = bisect_left(positions, position)
        is_listed = at < len(positions) and positions[at] == position
        if total < self._highest:
            if is_listed:
                del positions[at]
        elif not is_listed:
            positions.insert(at, position)


def _nowhere() -> array[int]:
    return array(_POSITION.char)
