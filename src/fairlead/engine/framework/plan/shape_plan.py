"""ShapePlan: cached results of one profile's plugins on every node, for pods of one shape.

The results of NODE and ROW plugins are cached per row. So the cost of a scheduling cycle depends on
the number of changed rows, not on the number of nodes. `refresh` recomputes the rows that changed
since the last refresh. The node table lists these rows in `node_log` and `pod_log`. If only a few
rows changed, they are recomputed one by one. Otherwise, the plugins compute columns of results for
all these rows together.

    static               the results of the NODE plugins, shared with plans of similar shapes
    statuses[codes[i]]   the first rejection of the node in rows[i]; code 0 if the pod fits,
                         NO_NODE if the row holds no node
    total[i]             static.score[i] plus the weighted scores of ROW plugins; NOT_FEASIBLE if
                         codes[i] is not 0
    best_positions()     the positions at which `total` is highest
    count_feasible()     the number of codes that are 0

Invariant after `refresh`: every array equals the array of a newly built plan. ROW plugins are not
called for nodes that a NODE plugin rejects. If another plan has already refreshed the shared
`static`, the codes and totals of this plan are still old. `refresh` then recomputes the rows in
`node_log`, or all rows if `static.version` has changed.

Example: a pod is bound to row 7. The node table adds 7 to `pod_log`. `refresh` runs the ROW filters
and scorers only for row 7 and writes codes[7] and total[7]. If the Node of row 7 changed as well,
its static results are recomputed first.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, MutableMapping, Sequence
from typing import Final

import numpy as np

from fairlead.engine.core.status import Status
from fairlead.engine.framework.code_counts import CodeCounts
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Mask, PreFilterResult, Rows, Scores
from fairlead.engine.framework.plan.highest_totals import HighestTotals
from fairlead.engine.framework.plan.plan_matrix import PlanMatrix
from fairlead.engine.framework.plan.plugin_split import PluginSplit
from fairlead.engine.framework.plan.row_evaluator import Broken, Codes, RowEvaluator
from fairlead.engine.framework.plan.static_results import NO_NODE, StaticPoints, StaticResults
from fairlead.engine.framework.plan.static_scores import NOT_FEASIBLE
from fairlead.engine.framework.plan.sums_cache import SumsCache, read_only_sums
from fairlead.engine.framework.points import ScorePoint, first_rejection
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

# From this many changed rows on, evaluating columns is cheaper than evaluating rows. In
# measurements, a pass over columns cost about as much as a dozen rows.
_COLUMNS_FROM: Final = 12

# The code of a row that was rejected by the matrix, until `refresh` finds the reason.
_UNEXPLAINED: Final = 1 << 30

_SUMS_MAX: Final = 256  # about 50 KB, as much as all other results of a plan for 5,000 nodes

_ONLY: Final = array("i", [0])  # the positions of a plan with one node

SharedResults = MutableMapping[Hashable, StaticResults]


class ShapePlan:
    """The cached verdicts and scores on every node, for pods with equal specs (`Shape`).

    `state` holds the PreFilter data of the cached plugins. `rejected` maps plugins to their
    PreFilter rejections. If `node_names` is not None, the pods fit only nodes with these names.
    `restricting` lists the plugins whose PreFilter limits the nodes. If `score_error` is set, every
    cycle that needs scores fails with this error. If a Score plugin fails on one node
    (`first_broken`), only cycles in which that node is feasible fail. `is_reused` is True from the
    second cycle that uses the plan.
    """

    # CPython finds attributes and methods of an object with more than 30 attributes slowly, unless
    # the class has __slots__.
    __slots__ = (
        "_broken",
        "_by_sums",
        "_evaluator",
        "_feasible",
        "_framework",
        "_from_static",
        "_highest",
        "_masked",
        "_node_position",
        "_open",
        "_pod",
        "_pod_position",
        "_size",
        "_static_version",
        "_unexplained",
        "code",
        "code_counts",
        "codes",
        "is_reused",
        "matrix",
        "node_names",
        "normalized_scorers",
        "rejected",
        "restricting",
        "row_filters",
        "row_scorers",
        "run_filter",
        "score_error",
        "shape",
        "split",
        "state",
        "static",
        "static_filters",
        "static_scorers",
        "statuses",
        "table",
        "total",
    )

    def __init__(
        self, framework: Framework, split: PluginSplit, pod: PodInfo, shared: SharedResults
    ) -> None:
        """Create a plan for pods of `pod.shape`; call `refresh` before reading the plan.

        `shared` contains results of NODE plugins. Several plans can use the same results. If the
        results for this shape can be shared, and `shared` does not contain them yet, they are
        added.
        """
        self._framework = framework
        self.shape = pod.shape  # keeps the shape interned as long as the plan exists
        self.matrix: PlanMatrix | None = None
        self.is_reused = False
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
        self._evaluator = RowEvaluator(self.table, self.state)
        self.statuses = self._evaluator.statuses
        self.code_counts = CodeCounts(self.statuses)
        self.code = self._evaluator.code
        self.run_filter = self._evaluator.run_filter
        self.static = self._find_static(pod, shared)
        self._static_version = 0
        self._from_static: Codes = np.array((0, NO_NODE), np.int32)
        self._broken: Broken = {}
        self._size = -1
        self._feasible: int | None = None
        self._unexplained: dict[int, None] = {}
        self._open: Rows | None = None  # the result of `feasible_positions`
        self._masked: tuple[Mask, int] | None = None  # (mask, its `count_feasible`)
        self._highest = HighestTotals(self.table.pod_log)
        # The cached results of ROW plugins; nodes with equal sums share them. Each result is (code,
        # weighted sum of the scores). There is no cache if a ROW plugin reads more than the
        # capacity and the sums of a node, or if the plan is limited to some node names.
        self._by_sums: SumsCache[tuple[int, int]] | None = None
        if self.node_names is None and read_only_sums(*self.row_filters, *self.row_scorers):
            self._by_sums = SumsCache(self.table, _SUMS_MAX)

    def _pre_filter(self, pod: PodInfo) -> None:
        """Run PreFilter of the plugins whose results are cached, once for all pods of the shape."""
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
        """Run PreScore of the plugins whose scores are cached in this plan.

        The first error is stored in `score_error`.
        """
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

    def _find_static(self, pod: PodInfo, shared: SharedResults) -> StaticResults:
        """Return the results of the plugins of Locality NODE; other plans may share the object."""
        is_own = self.rejected or self.score_error is not None or self.node_names is not None
        # NodeName reads spec.nodeName, which no shape contains and no pending pod has.
        is_own = is_own or pod.pod.spec.node_name != ""
        key = None if is_own else self.split.static_key(self.shape)
        found = shared.get(key) if key is not None else None
        if found is None:
            # After an error, no cycle reads the scores.
            normalized = self.normalized_scorers if self.score_error is None else ()
            points = StaticPoints(self.static_filters, self.static_scorers, normalized)
            found = StaticResults(self.table, self.state, points, self.node_names)
            if key is not None:
                shared[key] = found
        return found

    @property
    def rows(self) -> Rows:
        """The rows of the plan, ascending."""
        return self._evaluator.rows

    @property
    def has_errors(self) -> bool:
        """Whether one of `statuses` is an ERROR."""
        return self._evaluator.has_errors

    @property
    def has_current_nodes(self) -> bool:
        """Whether no Node object has changed since the last `refresh`; pods may have changed."""
        return self._size >= 0 and self._node_position == self.table.node_log.position

    # --- updates ---------------------------------------------------------------------------

    def refresh(self, pod: PodInfo) -> None:
        """Recompute the results for the nodes that changed since the last call.

        `pod` is any pod of the plan's shape.
        """
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
            self._explain(pod)
            return
        nodes: Sequence[int] | None = ()
        if table.node_log.position != self._node_position:
            nodes = table.node_log.since(self._node_position)
            self.static.refresh(pod)
            if nodes is not None and self.static.changed_at <= self._node_position:
                # `static` records a change of a node unless NODE plugins reject the node before and
                # after it. So they reject all changed nodes, as before, and the verdicts of other
                # plugins do not matter. For example, a failed node gets one taint after another.
                nodes = ()
        pods = table.pod_log.since(self._pod_position)
        # None means that the log no longer contains all changes since the last refresh.
        if nodes is None or pods is None or (nodes and self.node_names is not None):
            self._build(pod)
            return
        if self._size < table.size and self.node_names is None:
            self._extend(table.size)
        self._redo(pod, nodes, pods)
        if nodes and self.matrix is not None:
            self.matrix.rebase(self)
        self._explain(pod)

    def best_positions(self) -> Rows | array[int]:
        """Return the positions of the nodes with the highest total, ascending.

        At least one node must be feasible.
        """
        if self.node_names is None:
            return self._highest.find(self.total)
        if len(self.total) == 1:
            return _ONLY
        return np.flatnonzero(self.total == self.total.max())

    def count_feasible(self, mask: Mask | None = None) -> int:
        """Return the number of feasible nodes.

        If `mask` is given, only nodes whose entry in `mask` is True are counted. The result is
        cached for `mask`, so the caller must not change this array after the call.
        """
        if self._feasible is None:
            self._feasible = len(self.codes) - int(np.count_nonzero(self.codes))
            self._masked = self._open = None
        if mask is None:
            return self._feasible
        if self._masked is None or self._masked[0] is not mask:
            self._masked = mask, int(np.count_nonzero(mask & (self.codes == 0)))
        return self._masked[1]

    def feasible_positions(self) -> Rows:
        """Return the positions of the feasible nodes, ascending, as a read-only array.

        The result is the same array until the set of feasible nodes changes. If all rows of the
        node table are feasible, the result is `rows`.
        """
        count = self.count_feasible()
        if self.node_names is None and count == len(self.codes):
            return self.rows  # the position of each row is the row itself
        if self._open is None:
            self._open = (self.codes == 0).nonzero()[0]
            self._open.flags.writeable = False
        return self._open

    def rows_at(self, positions: Rows) -> Rows:
        """Return the node rows at `positions`."""
        return positions if self.node_names is None else self.rows[positions]

    def detach(self, position: int) -> None:
        """Stop using the PlanMatrix; it has updated this plan up to `position` in the pod log."""
        self.matrix = None
        self.total = self.total.copy()
        self._pod_position = position

    def redo_row(self, row: int) -> None:
        """Recompute the results for the node at `row` after the pods on the node changed.

        The plan must not be limited to certain nodes (`node_names`).
        """
        self._redo_one(self._pod, row)

    def open_row(self, row: int) -> None:
        """Set the code of `row` to feasible. The PlanMatrix that calls this writes `total[row]`."""
        self.codes[row] = 0
        self._feasible = None

    def reject_row(self, row: int) -> None:
        """Mark `row` as rejected by a ROW plugin; the next `refresh` finds the reason."""
        self.codes[row] = _UNEXPLAINED
        self._feasible = None
        self._unexplained[row] = None

    def _explain(self, pod: PodInfo) -> None:
        """Find the reasons for the rows that the PlanMatrix only marked as rejected."""
        if not self._unexplained:
            return
        rows = [row for row in self._unexplained if self.codes[row] == _UNEXPLAINED]
        self._unexplained.clear()
        self._redo_rows(pod, rows)

    def _mark_current(self) -> None:
        self._node_position = self.table.node_log.position
        self._pod_position = self.table.pod_log.position

    def _build(self, pod: PodInfo) -> None:
        if self.matrix is not None:
            self.matrix.remove(self)
        self.static.refresh(pod)
        self._evaluator.rows = rows = self.static.rows
        self.codes = np.full(len(rows), NO_NODE, np.int32)
        self.total = np.full(len(rows), NOT_FEASIBLE, np.int64)
        self._broken.clear()
        self._unexplained.clear()
        self._size = self.table.size
        self._redo_all(pod)
        self._mark_current()

    def _extend(self, size: int) -> None:
        """Append entries for new rows of the node table until there are `size` entries.

        The code of a new entry is NO_NODE until `_redo` computes the code.
        """
        if self.matrix is not None:
            self.matrix.remove(self)
        more = size - self._size
        self._evaluator.rows = self.static.rows
        self.codes = np.append(self.codes, np.full(more, NO_NODE, np.int32))
        self.total = np.append(self.total, np.full(more, NOT_FEASIBLE, np.int64))
        self._size = size
        self._feasible = None
        self._highest.reset()

    def _redo(self, pod: PodInfo, nodes: Sequence[int], pods: Sequence[int]) -> None:
        if self.static.version != self._static_version:
            self._redo_all(pod)
        elif nodes:
            self._highest.reset()  # the pod log does not name these rows
            self._redo_nodes(pod, sorted(set(nodes)))
        changed: Collection[int] = pods if len(pods) == 1 else dict.fromkeys(pods)
        if self.node_names is not None:
            changed = self._positions(changed)
        self._redo_rows(pod, changed)
        self._mark_current()

    def _redo_nodes(self, pod: PodInfo, positions: Sequence[int]) -> None:
        """Recompute the rows at the indexes `positions` of `rows`, whose Node objects changed."""
        if len(positions) >= _COLUMNS_FROM:
            self._redo_columns(pod, np.array(positions, np.int64))
            return
        for at in positions:
            if self.static.codes[at]:
                self.codes[at] = self._own_codes(self.static.codes[at : at + 1])[0]
                self.total[at] = NOT_FEASIBLE
                self._feasible = None
            else:
                self._redo_one(pod, at)

    def _redo_rows(self, pod: PodInfo, positions: Collection[int]) -> None:
        if len(positions) >= _COLUMNS_FROM:
            rows = np.fromiter(positions, np.int64, len(positions))
            rows.sort()
            self._redo_columns(pod, rows)
        else:
            for position in positions:
                self._redo_one(pod, position)

    def _positions(self, rows: Collection[int]) -> Collection[int]:
        if len(self.rows) == 1:
            return _ONLY if int(self.rows[0]) in rows else ()
        at = {row: position for position, row in enumerate(self.rows.tolist())}
        return [at[row] for row in rows if row in at]

    def row(self, position: int) -> int:
        """Return the node row at the index `position` of `rows`."""
        return position if self.node_names is None else int(self.rows[position])

    def position(self, row: int) -> int | None:
        """Return the index of `row` in `rows`; None if the plan does not have the row."""
        if self.node_names is None:
            return row
        at = int(np.searchsorted(self.rows, row))
        return at if at < len(self.rows) and self.rows[at] == row else None

    def static_code(self, row: int) -> int:
        """Return the code in `static.codes` for the node at `row`.

        Returns NO_NODE if the row has no node, or if the plan does not have the row.
        """
        at = self.position(row)
        return NO_NODE if at is None else int(self.static.codes[at])

    # --- row by row ------------------------------------------------------------------------

    def _redo_one(self, pod: PodInfo, position: int) -> None:
        # If a NODE plugin rejects the node, a change of the pods on it does not change the verdict.
        # If the row has no node (NO_NODE), there is nothing to compute either.
        if self.static.codes[position]:
            return
        node = self.table.at(position if self.node_names is None else int(self.rows[position]))
        known = self._by_sums.find(node) if self._by_sums is not None else None
        if known is None:
            known = self._evaluate(pod, node, position)
            if self._by_sums is not None:
                self._by_sums.keep(known)
        code, score = known
        if code:
            self.codes[position] = code
            self.total[position] = NOT_FEASIBLE
            self._feasible = None
            return
        if self.codes[position]:
            self.codes[position] = 0
            self._feasible = None
        self.total[position] = self.static.score[position] + score

    def _evaluate(self, pod: PodInfo, node: NodeInfo, position: int) -> tuple[int, int]:
        """Return (code, weighted sum of the scores) of the ROW plugins for `node`."""
        status = first_rejection(self.row_filters, self.state, pod, node)
        if status is not None:
            return self.code(status), 0
        broken, score = self._broken, 0
        if broken:
            broken.pop(position, None)
        for point in self.row_scorers:
            score += point.weight * self._evaluator.score_one(point, pod, node, position, broken)
        return 0, score

    def first_broken(self, codes: Codes) -> Status | None:
        """Return the first failure among the cached scores of feasible nodes, or None.

        A node is feasible if its entry in `codes` is 0.
        """
        if not self.static.broken and not self._broken:
            return None
        for broken in (self.static.broken, self._broken):
            for position in sorted(broken):
                if not codes[position]:
                    return broken[position]
        return None

    def _redo_all(self, pod: PodInfo) -> None:
        self._static_version = self.static.version
        self._highest.reset()
        self._feasible = None
        count = len(self.rows)
        if count < _COLUMNS_FROM:
            self._redo_nodes(pod, range(count))
        else:
            self._redo_columns(pod, np.arange(count))

    # --- over columns ----------------------------------------------------------------------

    def _redo_columns(self, pod: PodInfo, positions: Rows) -> None:
        evaluator, static = self._evaluator, self.static
        at = evaluator.index(positions)
        codes = self._own_codes(static.codes[at])
        evaluator.run_filters(self.row_filters, pod, positions, codes)
        self.codes[at] = codes
        self._feasible = None
        feasible = positions
        if np.count_nonzero(codes):
            self.total[at] = NOT_FEASIBLE
            feasible = positions[codes == 0]
        if len(feasible):
            at = evaluator.index(feasible)
            self.total[at] = evaluator.weighted_sum(
                self.row_scorers, pod, feasible, static.score[at], self._broken
            )

    def _own_codes(self, codes: Codes) -> Codes:
        """Return a new array: `codes` translated from codes of `static` to this plan's codes."""
        if not np.count_nonzero(codes):
            return codes.copy()
        statuses = self.static.statuses
        if len(self._from_static) <= len(statuses):
            # NO_NODE is -1, which NumPy reads as the index of the last entry.
            own = [0, *(self.code(status) for status in statuses[1:]), NO_NODE]
            self._from_static = np.array(own, np.int32)
        return self._from_static[codes]

    def raw_scores(self, point: ScorePoint, pod: PodInfo, positions: Rows) -> Scores:
        """Return the raw scores of one plugin at `positions`; exceptions are not caught."""
        return self._evaluator.raw_scores(point, pod, positions)
