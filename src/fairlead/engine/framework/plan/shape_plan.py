"""ShapePlan: cached results of one profile's plugins on every node, for pods of one shape.

Because of these caches, the cost of a scheduling cycle depends on the number of changes. Verdicts
and scores that depend only on a node and its pods (Locality NODE and ROW) are cached per row.
`refresh` recomputes the rows that the table's change logs name since the last refresh: one by one
if there are few, over columns if there are many.

    statuses[codes[i]]   the first rejection of the node in rows[i]; code 0 if the pod fits,
                         DEAD if the row holds no node
    static_score[i]      sum of the weighted scores of NODE plugins without normalization
    total[i]             static_score plus the weighted scores of ROW plugins; NOT_FEASIBLE if
                         codes[i] is not 0
    raw_scores[name][i]  raw scores of NODE plugins that are normalized over the feasible nodes;
                         `live` lists those that are not 0 everywhere
    best_positions()     where `total` is highest; `count_feasible()`: how many codes are 0

Invariant after `refresh`: every array equals the array of a newly built plan. `codes` depends on
`static_codes`: if a NODE plugin rejects a node, ROW plugins are not called for it, because the
node's pods cannot change the verdict.

Example: a pod is bound to row 7. The pod log names row 7; no Node changed. `refresh` runs the ROW
filters and scorers only for row 7 and writes codes[7] and total[7]; static_codes and static_score
stay unchanged. If the Node of row 7 changed as well, the static arrays of that row are recomputed
first.

Plugins of Locality CLUSTER are not cached; each scheduling cycle calls them
(`engine.framework.feasibility`, `engine.scheduling.prioritization`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.core.status import SUCCESS, Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import (
    SCORE_MAX,
    Normalization,
    PreFilterResult,
    Rows,
    Scores,
    Verdicts,
)
from fairlead.engine.framework.plan.highest_totals import HighestTotals
from fairlead.engine.framework.plan.plan_matrix import NOT_FEASIBLE, PlanMatrix
from fairlead.engine.framework.plan.plugin_split import PluginSplit
from fairlead.engine.framework.points import (
    FilterPoint,
    ScorePoint,
    crashed,
    invalid_score,
    is_in_range,
)
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Codes = npt.NDArray[np.int32]

DEAD: Final = -1

Broken = dict[int, Status]

# From this many changed rows on, evaluating columns is cheaper than evaluating rows (measured: a
# pass over columns costs about as much as a dozen rows).
_COLUMNS_FROM: Final = 12


# a plugin's statuses, the plan's code for each (-1: none yet), and whether all have one
_Mapping = tuple[tuple[Status, ...] | None, Codes | None, bool]
# Up to this number of statuses, all get codes at once, so that later calls need no lookup.
_STATUSES_FEW: Final = 8
_NO_MAPPING: Final[_Mapping] = (None, None, False)


class ShapePlan:
    """The cached verdicts and scores on every node, for pods of one shape.

    `state` holds the PreFilter data of the cached plugins. `rejected` maps plugins to their
    PreFilter rejections. If `node_names` is set, the plugins `restricting` limit the nodes to these
    names. If `score_error` is set, every cycle that needs scores fails with it. If a Score plugin
    fails on one node, only the cycles in which that node is feasible fail (`first_broken`).
    """

    def __init__(self, framework: Framework, split: PluginSplit, pod: PodInfo) -> None:
        """Create a plan for pods of `pod.shape`; call `refresh` before reading it."""
        self._framework = framework
        self.shape = pod.shape  # keeps the shape interned as long as the plan exists
        self.matrix: PlanMatrix | None = None
        self.codes: Codes
        self.total: Scores
        self.split = split
        self.table = framework.cluster.table
        self.state = CycleState()
        self.rejected: dict[str, Status] = {}
        self.node_names: tuple[str, ...] | None = None
        self.restricting: list[str] = []
        self.score_error: Status | None = None
        self._pre_filter(pod)
        self._pre_score(pod)
        self._drop_skipped()
        self.statuses: list[Status] = [SUCCESS]
        self._code_of: dict[Status, int] = {}
        self._mappings: dict[str, _Mapping] = {}
        self.has_errors = False
        self._static_broken: Broken = {}
        self._row_broken: Broken = {}
        self._size = -1
        self._epochs: list[object] = []
        self._feasible: int | None = None
        self._highest = HighestTotals(self.table.pod_log)

    def _pre_filter(self, pod: PodInfo) -> None:
        """Run PreFilter of the cached plugins once; the results are valid for the whole shape."""
        self.state.skipped_filters |= dict.fromkeys(self._framework.filter_names(self.split.idle))
        for plugin in self.split.pre_filters:
            if plugin.name not in self.split.local_names:
                continue
            answer = self._framework.run_pre_filter(self.state, pod, plugin)
            if isinstance(answer, Status):
                self.rejected[plugin.name] = answer
            elif isinstance(answer, PreFilterResult) and answer.node_names is not None:
                self.restricting.append(plugin.name)
                before = answer.node_names if self.node_names is None else self.node_names
                self.node_names = tuple(n for n in before if n in answer.node_names)

    def _pre_score(self, pod: PodInfo) -> None:
        """Run PreScore of the cached plugins once; an error fails only cycles that score."""
        self.state.skipped_scores |= dict.fromkeys(self._framework.score_names(self.split.idle))
        nothing = np.zeros(0, np.int64)
        for point in self.split.local_scorers:
            error = self._framework.run_pre_score(self.state, pod, point.name, nothing)
            self.score_error = self.score_error or error

    def _drop_skipped(self) -> None:
        skipped, unscored = self.state.skipped_filters, self.state.skipped_scores
        split = self.split
        self.static_filters = [p for p in split.static_filters if p.name not in skipped]
        self.row_filters = [p for p in split.row_filters if p.name not in skipped]
        self.static_scorers = [p for p in split.static_scorers if p.name not in unscored]
        self.row_scorers = [p for p in split.row_scorers if p.name not in unscored]
        self.normalized_scorers = [p for p in split.normalized_scorers if p.name not in unscored]

    # --- updates ---------------------------------------------------------------------------

    def refresh(self, pod: PodInfo) -> None:
        """Recompute the rows changed since the last call; `pod` is any pod of the shape."""
        table = self.table
        self._pod = pod
        if self._size < 0:
            self._build(pod)
            return
        if self.matrix is not None:
            self.matrix.refresh()
        if self.matrix is not None:  # still a member
            self._pod_position = self.matrix.position
            self.matrix.use(self)
        if (
            table.pod_log.position == self._pod_position
            and table.node_log.position == self._node_position
        ):
            return
        nodes = table.node_log.since(self._node_position)
        pods = table.pod_log.since(self._pod_position)
        # None means that the log no longer contains all changes since the last refresh.
        if nodes is None or pods is None or (nodes and self.node_names is not None):
            self._build(pod)
            return
        if self._size < table.size and self.node_names is None:
            self._extend(table.size)
        if nodes or pods:
            self._redo(pod, nodes, pods)
        if nodes:
            self._refresh_epochs(pod)
            if self.matrix is not None:
                self.matrix.rebase(self)

    def best_positions(self) -> Rows | array[int]:
        """Return the positions of the nodes with the highest total, ascending.

        At least one node must be feasible.
        """
        if self.node_names is None:
            return self._highest.find(self.total)
        return np.flatnonzero(self.total == self.total.max())

    def count_feasible(self) -> int:
        """Return the number of feasible nodes."""
        if self._feasible is None:
            self._feasible = len(self.codes) - int(np.count_nonzero(self.codes))
        return self._feasible

    def detach(self, position: int) -> None:
        """Leave the matrix; the plan's arrays are up to date with the pod log at `position`."""
        self.matrix = None
        self.total, self.codes = self.total.copy(), self.codes.copy()
        self._pod_position = position

    def redo_row(self, row: int) -> None:
        """Recompute `row` after the pods on its node changed; the plan must have all rows."""
        self._redo_one(self._pod, row)

    def open_row(self, row: int) -> None:
        """Mark `row` as feasible; the matrix writes its total."""
        self.codes[row] = 0
        self._feasible = None

    def _mark_current(self) -> None:
        self._node_position = self.table.node_log.position
        self._pod_position = self.table.pod_log.position

    def _build(self, pod: PodInfo) -> None:
        if self.matrix is not None:
            self.matrix.remove(self)
        self.rows = self._candidate_rows()
        count = len(self.rows)
        self.codes = np.full(count, DEAD, np.int32)
        self.static_codes: Codes = np.full(count, DEAD, np.int32)
        self.static_score: Scores = np.zeros(count, np.int64)
        self.total = np.full(count, NOT_FEASIBLE, np.int64)
        self.raw_scores: dict[str, Scores] = {
            point.name: np.zeros(count, np.int64) for point in self.normalized_scorers
        }
        self.live: list[ScorePoint] = []
        self._static_broken.clear()
        self._row_broken.clear()
        self._size = self.table.size
        self._epochs = self._current_epochs()
        self._redo_columns(pod, np.arange(count), static=True)
        self._mark_current()

    def _extend(self, size: int) -> None:
        """Append rows up to `size`; they are DEAD until `_redo` computes them.

        The node log contains the new rows, so `_redo` does compute them.
        """
        if self.matrix is not None:
            self.matrix.remove(self)
        more = size - self._size
        self.rows = self.table.every_row()
        self.codes = np.append(self.codes, np.full(more, DEAD, np.int32))
        self.static_codes = np.append(self.static_codes, np.full(more, DEAD, np.int32))
        self.static_score = np.append(self.static_score, np.zeros(more, np.int64))
        self.total = np.append(self.total, np.full(more, NOT_FEASIBLE, np.int64))
        for name, scores in self.raw_scores.items():
            self.raw_scores[name] = np.append(scores, np.zeros(more, np.int64))
        self._size = size
        self._feasible = None
        self._highest.reset()

    def _candidate_rows(self) -> Rows:
        if self.node_names is None:
            return self.table.every_row()
        found = [self.table.find(name) for name in self.node_names]
        return np.array(sorted(node.row for node in found if node is not None), np.int64)

    def _redo(self, pod: PodInfo, nodes: list[int], pods: list[int]) -> None:
        if nodes:
            self._redo_columns(pod, np.array(sorted(set(nodes)), np.int64), static=True)
        changed: Collection[int] = pods if len(pods) == 1 else dict.fromkeys(pods)
        if self.node_names is not None:
            changed = self._positions(changed)
        if len(changed) >= _COLUMNS_FROM:
            self._redo_columns(pod, np.array(sorted(changed), np.int64), static=False)
        else:
            for position in changed:
                self._redo_one(pod, position)
        self._mark_current()

    def _positions(self, rows: Collection[int]) -> Collection[int]:
        at = {row: position for position, row in enumerate(self.rows.tolist())}
        return [at[row] for row in rows if row in at]

    def position(self, row: int) -> int | None:
        """Return the index of `row` in `rows`, None if the plan does not have the row."""
        if self.node_names is None:
            return row
        at = int(np.searchsorted(self.rows, row))
        return at if at < len(self.rows) and self.rows[at] == row else None

    def static_code(self, row: int) -> int:
        """Return the code of the NODE plugins for the node at `row`; DEAD if it has no code."""
        at = self.position(row)
        return DEAD if at is None else int(self.static_codes[at])

    def _current_epochs(self) -> list[object]:
        epochs = (getattr(point.plugin, "epoch", None) for point in self.static_scorers)
        return [epoch() if epoch is not None else None for epoch in epochs]

    def _refresh_epochs(self, pod: PodInfo) -> None:
        """Recompute static scores that depend on the set of all nodes, if that set has changed.

        The only such plugin is ImageLocality.
        """
        epochs = self._current_epochs()
        if epochs != self._epochs:
            self._epochs = epochs
            everything = np.arange(len(self.rows))
            self._score_static(pod, everything)
            self._redo_columns(pod, everything, static=False)
            self._highest.reset()

    # --- row by row ------------------------------------------------------------------------

    def _redo_one(self, pod: PodInfo, position: int) -> None:
        # Pods changed on this row, but a NODE plugin rejects the node (or the row is DEAD): the
        # verdict cannot change.
        if self.static_codes[position]:
            return
        row = position if self.node_names is None else int(self.rows[position])
        node = self.table.at(row)
        status = self._filter_one(pod, node)
        if status is not None:
            self.codes[position] = self.code(status)
            self.total[position] = NOT_FEASIBLE
            self._feasible = None
            return
        if self._row_broken:
            self._row_broken.pop(position, None)
        total = int(self.static_score[position])
        for point in self.row_scorers:
            total += point.weight * self._score_one(point, pod, node, position, self._row_broken)
        if self.codes[position]:
            self.codes[position] = 0
            self._feasible = None
        self.total[position] = total

    def _score_one(
        self, point: ScorePoint, pod: PodInfo, node: NodeInfo, position: int, broken: Broken
    ) -> int:
        """Return the raw score of one plugin for `node`, which is at `position`.

        If the plugin fails or its score is out of range, the result is 0 and the error is added to
        `broken`.
        """
        try:
            raw = point.one(self.state, pod, node)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            broken[position] = crashed(point.plugin, cause)
            return 0
        if 0 <= raw <= SCORE_MAX or point.normalization is not Normalization.NONE:
            return raw
        broken[position] = invalid_score(point.plugin, raw)
        return 0

    def first_broken(self, codes: Codes) -> Status | None:
        """Return the first failure of a cached Score plugin on a feasible node, or None.

        A node is feasible if its entry in `codes` is 0.
        """
        if not self._static_broken and not self._row_broken:
            return None
        for broken in (self._static_broken, self._row_broken):
            for position in sorted(broken):
                if not codes[position]:
                    return broken[position]
        return None

    def _filter_one(self, pod: PodInfo, node: NodeInfo) -> Status | None:
        state = self.state
        for point in self.row_filters:
            try:
                status = point.one(state, pod, node)
            except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                return crashed(point.plugin, cause)
            if status is not None and status.code is not Code.SUCCESS:
                return status if status.plugin else status.by(point.name)
        return None

    def code(self, status: Status) -> int:
        """Return the code of `status` in this plan; a new status gets the next code."""
        code = self._code_of.get(status)
        if code is None:
            code = self._code_of[status] = len(self.statuses)
            self.statuses.append(status)
            self.has_errors = self.has_errors or status.code is Code.ERROR
        return code

    # --- over columns ----------------------------------------------------------------------

    def _redo_columns(self, pod: PodInfo, positions: Rows, *, static: bool) -> None:
        # Order matters: static codes decide which rows ROW plugins see, and static scores are the
        # base that ROW scores are added to.
        self._feasible = None
        if static:
            self._highest.reset()  # the pod log does not name these rows
            self._filter_static(pod, positions)
            self._score_static(pod, positions)
        codes = self.static_codes[positions]
        self._run_filters(self.row_filters, pod, positions, codes)
        self.codes[positions] = codes
        feasible = positions
        if np.count_nonzero(codes):
            self.total[positions] = NOT_FEASIBLE
            feasible = positions[codes == 0]
        if len(feasible):
            total = self.static_score[feasible]
            _forget(self._row_broken, feasible)
            for point in self.row_scorers:
                total = total + point.weight * self._scores(point, pod, feasible, self._row_broken)
            self.total[feasible] = total

    def _filter_static(self, pod: PodInfo, positions: Rows) -> None:
        alive = self.table.values(self.table.alive, self._rows_at(positions))
        codes = alive.astype(np.int32)
        codes += DEAD  # 0 where a node is alive
        self._run_filters(self.static_filters, pod, positions, codes)
        self.static_codes[positions] = codes

    def _score_static(self, pod: PodInfo, positions: Rows) -> None:
        live = positions
        if np.count_nonzero(self.static_codes[positions]):
            live = positions[self.static_codes[positions] == 0]
        score: Scores = np.zeros(len(live), np.int64)
        broken = self._static_broken
        _forget(broken, live)
        for point in self.static_scorers:
            score = score + point.weight * self._scores(point, pod, live, broken)
        self.static_score[live] = score
        if self.score_error is None:
            for point in self.normalized_scorers:
                self.raw_scores[point.name][live] = self._scores(point, pod, live, broken)
        self.live = [p for p in self.normalized_scorers if self.raw_scores[p.name].any()]

    def scores(self, point: ScorePoint, pod: PodInfo, positions: Rows) -> Scores:
        """Return the raw scores of one plugin for the nodes at `positions`."""
        return point.many(self.state, pod, self.table, self._rows_at(positions))

    def _rows_at(self, positions: Rows) -> Rows:
        """Return the rows at `positions`, which are distinct and ascending."""
        return self.rows if len(positions) == len(self.rows) else self.rows[positions]

    def _scores(self, point: ScorePoint, pod: PodInfo, positions: Rows, broken: Broken) -> Scores:
        """Return the raw scores of one plugin for the nodes at `positions`.

        Where the plugin fails or its score is out of range, the score is 0 and the error is added
        to `broken`.
        """
        try:
            found = self.scores(point, pod, positions)
        except Exception:  # noqa: BLE001 - calling it row by row finds the failing row
            found = None
        is_raw = point.normalization is not Normalization.NONE
        if found is not None and (is_raw or is_in_range(found)):
            return found
        one_by_one = (
            self._score_one(point, pod, self.table.at(int(self.rows[at])), at, broken)
            for at in positions.tolist()
        )
        return np.fromiter(one_by_one, np.int64, len(positions))

    def _run_filters(
        self, filters: Sequence[FilterPoint], pod: PodInfo, positions: Rows, codes: Codes
    ) -> None:
        """Run `filters` on feasible positions; write the codes of rejections to `codes`."""
        for point in filters:
            if not np.count_nonzero(codes):
                codes[:] = self.ask(point, self.state, pod, self._rows_at(positions))
                continue
            open_at = np.flatnonzero(codes == 0)
            if not len(open_at):
                return
            codes[open_at] = self.ask(point, self.state, pod, self.rows[positions[open_at]])

    def ask(self, point: FilterPoint, state: CycleState, pod: PodInfo, rows: Rows) -> Codes:
        """Return the verdicts of one plugin on `rows`, as codes of this plan."""
        try:
            verdicts = point.many(state, pod, self.table, rows)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            return np.full(len(rows), self.code(crashed(point.plugin, cause)), np.int32)
        return self._intern(point.name, verdicts)

    def _intern(self, plugin: str, verdicts: Verdicts) -> Codes:
        """Translate the codes of one plugin to codes of this plan."""
        if not np.count_nonzero(verdicts.codes):
            return verdicts.codes
        statuses, mapping, is_complete = self._mappings.get(plugin, _NO_MAPPING)
        if mapping is not None and statuses is verdicts.statuses:
            codes = mapping.take(verdicts.codes)
            if is_complete or np.minimum.reduce(codes) >= 0:
                return codes
        return self._mapping(plugin, verdicts).take(verdicts.codes)

    def _mapping(self, plugin: str, verdicts: Verdicts) -> Codes:
        """Return the plan's code for each of the plugin's own codes, -1 for untranslated codes.

        A code is translated when the plugin first uses it. If the plugin has few statuses, all of
        them except errors are translated together. The mapping is cached while the plugin returns
        the same tuple of statuses.

        Example: a plugin returns the statuses (SUCCESS, "full", "tainted"). If the plan already has
        two statuses, "full" gets code 2 of the plan and "tainted" code 3, and the mapping is [0, 2,
        3].
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


def _forget(broken: Broken, positions: Rows) -> None:
    if broken:
        for position in positions.tolist():
            broken.pop(position, None)
