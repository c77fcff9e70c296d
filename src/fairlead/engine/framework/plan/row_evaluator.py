"""RowEvaluator: calls cached plugins for rows of a plan; failures become statuses.

A position is an index into `rows`. Positions are distinct and ascending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import (
    SCORE_MAX,
    Normalization,
    Rows,
    Scores,
    Verdicts,
)
from fairlead.engine.framework.points import (
    FilterPoint,
    ScorePoint,
    crashed,
    invalid_score,
    is_in_range,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

Codes = npt.NDArray[np.int32]

# The failures of Score plugins, keyed by position.
Broken = dict[int, Status]

# Translates the codes of a plugin. The parts are the plugin's statuses, the evaluator's code for
# each of them (-1: no code yet), and whether every status has a code.
_Mapping = tuple[tuple[Status, ...] | None, Codes | None, bool]
# If a plugin returns at most this many statuses, its first call gives a code to each of them except
# errors. Statuses that no node has get a code as well. Later calls then need no lookup.
_STATUSES_FEW: Final = 8
_NO_MAPPING: Final[_Mapping] = (None, None, False)


class RowEvaluator:
    """Calls plugins for `rows`; `statuses[code]` is the verdict with the number `code`.

    `has_errors` is True if one of `statuses` is an ERROR.
    """

    def __init__(self, table: NodeTable, state: CycleState) -> None:
        """Prepare to evaluate nodes of `table`; `state` has the PreFilter data for the plugins."""
        self._table = table
        self._state = state
        self.rows: Rows = table.every_row()[:0]
        self.statuses: list[Status] = [SUCCESS]
        self.has_errors = False
        self._code_of: dict[Status, int] = {}
        self._mappings: dict[str, _Mapping] = {}

    def code(self, status: Status) -> int:
        """Return the code of `status`; a new status gets the next code."""
        code = self._code_of.get(status)
        if code is None:
            code = self._code_of[status] = len(self.statuses)
            self.statuses.append(status)
            self.has_errors = self.has_errors or status.code is Code.ERROR
        return code

    def index(self, positions: Rows) -> Rows | slice:
        """Return the NumPy index that selects `positions`.

        If `positions` contains every position, the index is a slice. NumPy copies ten times faster
        with a slice.
        """
        return slice(None) if len(positions) == len(self.rows) else positions

    def rows_at(self, positions: Rows) -> Rows:
        """Return the entries of `rows` at the indexes `positions`."""
        return self.rows if len(positions) == len(self.rows) else self.rows[positions]

    # --- Filter ----------------------------------------------------------------------------

    def run_filters(
        self, filters: Sequence[FilterPoint], pod: PodInfo, positions: Rows, codes: Codes
    ) -> None:
        """Run `filters` at `positions`; write the codes of rejections to `codes`.

        The code of a rejection is its index in `statuses`. `codes[i]` belongs to the node at
        `positions[i]`. The caller sets `codes[i]` to 0 if no earlier Filter rejects the node. The
        Filters run only on nodes with the code 0.
        """
        for point in filters:
            if not np.count_nonzero(codes):
                codes[:] = self.run_filter(point, self._state, pod, self.rows_at(positions))
                continue
            open_at = np.flatnonzero(codes == 0)
            if not len(open_at):
                return
            codes[open_at] = self.run_filter(point, self._state, pod, self.rows[positions[open_at]])

    def run_filter(self, point: FilterPoint, state: CycleState, pod: PodInfo, rows: Rows) -> Codes:
        """Run one Filter on the nodes at `rows`; return the code of each verdict (see `code`)."""
        try:
            verdicts = point.many(state, pod, self._table, rows)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            return np.full(len(rows), self.code(crashed(point.plugin, cause)), np.int32)
        return self._intern(point.name, verdicts)

    def _intern(self, plugin: str, verdicts: Verdicts) -> Codes:
        """Translate the plugin's codes in `verdicts` to codes of this evaluator."""
        if not np.count_nonzero(verdicts.codes):
            return verdicts.codes
        statuses, mapping, is_complete = self._mappings.get(plugin, _NO_MAPPING)
        if mapping is not None and statuses is verdicts.statuses:
            codes = mapping.take(verdicts.codes)
            if is_complete or np.minimum.reduce(codes) >= 0:
                return codes
        return self._mapping(plugin, verdicts).take(verdicts.codes)

    def _mapping(self, plugin: str, verdicts: Verdicts) -> Codes:
        """Return the mapping from the plugin's codes to codes of this evaluator.

        The entry of a code that `verdicts` does not use may be -1. The mapping is cached while the
        plugin returns the same tuple of statuses.

        Example: a plugin returns the statuses (SUCCESS, "full", "tainted"). If the evaluator
        already has two statuses, "full" gets the code 2 and "tainted" the code 3, and the mapping
        is [0, 2, 3].
        """
        mapping = np.full(len(verdicts.statuses), -1, np.int32)
        mapping[0] = 0
        used = np.bincount(verdicts.codes, minlength=len(mapping)).tolist()
        is_short = len(mapping) <= _STATUSES_FEW
        for code, rows in enumerate(used):
            status = verdicts.statuses[code]
            if code and (rows or (is_short and status.code is not Code.ERROR)):
                mapping[code] = self.code(status if status.plugin else status.by(plugin))
        if isinstance(verdicts.statuses, tuple):
            is_complete = bool(np.minimum.reduce(mapping) >= 0)
            self._mappings[plugin] = (verdicts.statuses, mapping, is_complete)
        return mapping

    # --- Score -----------------------------------------------------------------------------

    def score_one(
        self, point: ScorePoint, pod: PodInfo, node: NodeInfo, position: int, broken: Broken
    ) -> int:
        """Return the raw score of one plugin for `node`, which is at `position`.

        If the plugin fails or its score is out of range, the result is 0. The error is stored as
        `broken[position]`.
        """
        try:
            raw = point.one(self._state, pod, node)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            broken[position] = crashed(point.plugin, cause)
            return 0
        if 0 <= raw <= SCORE_MAX or point.normalization is not Normalization.NONE:
            return raw
        broken[position] = invalid_score(point.plugin, raw)
        return 0

    def weighted_sum(
        self,
        scorers: Sequence[ScorePoint],
        pod: PodInfo,
        positions: Rows,
        start: Scores,
        broken: Broken,
    ) -> Scores:
        """Return `start` plus the weighted scores of `scorers` at `positions`.

        `broken` maps positions to failures of Score plugins; its entries at `positions` are
        replaced.
        """
        if broken:
            for position in positions.tolist():
                broken.pop(position, None)
        total = start
        for point in scorers:
            scores = self.scores(point, pod, positions, broken)
            total = total + (scores if point.weight == 1 else point.weight * scores)
        return total

    def scores(self, point: ScorePoint, pod: PodInfo, positions: Rows, broken: Broken) -> Scores:
        """Return the raw scores of one plugin for the nodes at `positions`.

        If the plugin fails for a node or its score is out of range, the score is 0. The error is
        stored as `broken[position]`.
        """
        try:
            found = self.raw_scores(point, pod, positions)
        except Exception:  # noqa: BLE001 - the calls for single rows find the failing row
            found = None
        is_raw = point.normalization is not Normalization.NONE
        if found is not None and (is_raw or is_in_range(found)):
            return found
        one_by_one = (
            self.score_one(point, pod, self._table.at(int(self.rows[at])), at, broken)
            for at in positions.tolist()
        )
        return np.fromiter(one_by_one, np.int64, len(positions))

    def raw_scores(self, point: ScorePoint, pod: PodInfo, positions: Rows) -> Scores:
        """Return the raw scores of one plugin at `positions`; exceptions are not caught."""
        return point.many(self._state, pod, self._table, self.rows_at(positions))
