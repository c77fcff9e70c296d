"""CodeCounts: the number of nodes with each verdict, stored from one failed cycle to the next.

A verdict is a Status. A row is the index of a node in `NodeTable`. A node's code is the index of
its verdict in a list of statuses. A failed cycle counts the codes of all nodes for its message, and
lists the nodes where preemption might help. Between two failed cycles for equal pods, usually few
codes change. Then only the changed codes are counted again. The nodes are listed again only if the
class of a node's verdict (`Status.code`, such as UNSCHEDULABLE) changed.

Example: 4,000 nodes are full and 1,000 are tainted. A victim leaves node 7, so the verdict on node
7 changes. Another pod is placed there, and the verdict changes back. The next failed cycle finds
equal codes. The list of the 4,000 nodes is then the same array as before, so results for this array
can be reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import Code, Status

Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
# If more codes than this have changed, counting all codes again takes less time.
_CHANGED_MAX: Final = 16


class CodeCounts:
    """Counts the nodes with each status; lists the nodes whose status has a given `Code`."""

    def __init__(self, statuses: Sequence[Status]) -> None:
        """Codes are indexes into `statuses`, which may grow later."""
        self._statuses = statuses
        self._rows: Rows = np.zeros(0, np.int64)
        self._codes: Codes = np.zeros(0, np.int32)
        self._tally: dict[int, int] = {}
        self._listed: dict[Code, Rows] = {}

    def tally(self, rows: Rows, codes: Codes) -> list[tuple[int, int]]:
        """Return (code, number of rows) for each rejection in `codes`, by ascending code.

        `codes` has an entry for each of `rows`: the index of the node's status. The entry is 0 if
        the node is accepted, and -1 if the row has no verdict.
        """
        self._update(rows, codes)
        return sorted((code, count) for code, count in self._tally.items() if code > 0 and count)

    def rows_with(self, rows: Rows, codes: Codes, wanted: Code) -> Rows:
        """Return the entries of `rows` whose status has the class `wanted`, as a read-only array.

        `codes[i]` is the index of the status of `rows[i]`. A class is, for example, UNSCHEDULABLE.
        If `rows` is the same array as in the previous call, and the class of every row's status is
        unchanged, the result is the same array as in the previous call.
        """
        self._update(rows, codes)
        found = self._listed.get(wanted)
        if found is None:
            has = np.array([status.code is wanted for status in self._statuses], np.bool_)
            found = self._listed[wanted] = rows[has[codes] & (codes > 0)]
            found.flags.writeable = False
        return found

    def _update(self, rows: Rows, codes: Codes) -> None:
        if rows is not self._rows or len(codes) != len(self._codes):
            self._count_all(rows, codes)
            return
        changed = (codes != self._codes).nonzero()[0]
        if len(changed) > _CHANGED_MAX:
            self._count_all(rows, codes)
            return
        tally = self._tally
        for at in changed.tolist():
            before, after = int(self._codes[at]), int(codes[at])
            tally[before] -= 1
            tally[after] = tally.get(after, 0) + 1
            if self._class(before) is not self._class(after):
                self._listed.clear()
            self._codes[at] = after

    def _count_all(self, rows: Rows, codes: Codes) -> None:
        self._rows, self._codes = rows, codes.copy()
        counts = np.bincount(codes + 1)
        at = counts.nonzero()[0].tolist()
        self._tally = {code - 1: int(counts[code]) for code in at}
        self._listed.clear()

    def _class(self, code: int) -> Code | None:
        """Return the class of the status with the index `code`; None if `code` is 0 or less."""
        return self._statuses[code].code if code > 0 else None
