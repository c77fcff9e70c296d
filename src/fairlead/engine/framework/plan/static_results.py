"""StaticResults: the results of NODE plugins on every node, shared by many plans.

NODE plugins have the locality NODE: their results depend only on the pod and the Node object. Most
of them read little of a pod: its tolerations, node affinity or images. Such plugins state which
part they read (`ShapeKeyed`). Shapes that differ only in their requests get the same results, so
their `ShapePlan`s share one StaticResults. A plan has StaticResults of its own if a NODE plugin
does not state which part it reads, or if PreScore fails. A plan also has StaticResults of its own
if PreFilter rejects the pod or limits the nodes by name.

    statuses[codes[i]]   the first rejection of the node in rows[i] by a NODE plugin; code 0 if no
                         plugin rejects it, NO_NODE if the row holds no node
    score[i]             sum of the weighted scores of NODE plugins without normalization
    raw_scores[name][i]  raw score of the NODE plugin `name`, if its scores are normalized over the
                         feasible nodes; `live` lists the plugins whose scores are not all 0

If few Nodes changed, `refresh` evaluates them one by one, otherwise all of them together.

Invariant after `refresh`: every array equals the array of newly built StaticResults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Rows, Scores
from fairlead.engine.framework.plan.row_evaluator import Broken, Codes, RowEvaluator
from fairlead.engine.framework.points import FilterPoint, ScorePoint, first_rejection
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo

NO_NODE: Final = -1
# From this many changed nodes on, evaluating columns is cheaper than evaluating nodes one by one.
_COLUMNS_FROM: Final = 6


class StaticPoints(Struct, frozen=True):
    """The plugins of Locality NODE that run for pods of one `Shape`.

    `normalized` are the Score plugins whose raw scores are normalized over the feasible nodes.
    """

    filters: Sequence[FilterPoint]
    scorers: Sequence[ScorePoint]
    normalized: Sequence[ScorePoint]


class StaticResults:
    """The verdicts and scores of the plugins in `points` on every node.

    If `node_names` is not None, there are results only for the nodes with these names. The node log
    lists the changed Nodes; the results take into account its entries before `position`. `refresh`
    sets `changed_at` to the new `position` if it may have changed a result. `refresh` increments
    `version` if results of unchanged nodes may have changed.
    """

    def __init__(
        self,
        table: NodeTable,
        state: CycleState,
        points: StaticPoints,
        node_names: tuple[str, ...] | None = None,
    ) -> None:
        """Create empty results; `refresh` computes them with the PreFilter data in `state`."""
        self._table = table
        self._state = state
        self._points = points
        self._node_names = node_names
        self._evaluator = RowEvaluator(table, state)
        self.statuses = self._evaluator.statuses
        self.broken: Broken = {}
        self.version = 0
        self._size = -1
        self.position = self.changed_at = -1
        epochs = [getattr(p.plugin, "epoch", None) for p in (*points.scorers, *points.normalized)]
        self._epoch_functions = [epoch for epoch in epochs if epoch is not None]
        self._epochs: list[object] = []
        self.codes: Codes
        self.score: Scores
        self.raw_scores: dict[str, Scores] = {}
        self.live: list[ScorePoint] = []

    @property
    def rows(self) -> Rows:
        """The rows for which there are results, ascending."""
        return self._evaluator.rows

    def refresh(self, pod: PodInfo) -> None:
        """Recompute the rows whose Nodes changed; `pod` is any pod that shares these results."""
        log, table = self._table.node_log, self._table
        if log.position == self.position:
            return
        nodes = None if self._size < 0 else log.since(self.position)
        if nodes is None or self._node_names is not None:
            self._build(pod)
            has_changed = True
        else:
            if self._size < table.size:
                self._extend(table.size)
            has_changed = self._redo_nodes(pod, sorted(set(nodes)))
            has_changed |= self._refresh_epochs(pod)
        self.position = log.position
        if has_changed:
            self.changed_at = log.position

    def _build(self, pod: PodInfo) -> None:
        self._evaluator.rows = rows = self._candidate_rows()
        self.codes = np.full(len(rows), NO_NODE, np.int32)
        self.score = np.zeros(len(rows), np.int64)
        self.raw_scores = {
            point.name: np.zeros(len(rows), np.int64) for point in self._points.normalized
        }
        self.broken.clear()
        self.version += 1
        self._size = self._table.size
        self._epochs = self._current_epochs()
        if len(rows) < _COLUMNS_FROM:
            for position in range(len(rows)):
                self._redo_one(pod, position)
            self._find_live()
        else:
            self._redo(pod, np.arange(len(rows)))

    def _candidate_rows(self) -> Rows:
        if self._node_names is None:
            return self._table.every_row()
        found = [self._table.find(name) for name in self._node_names]
        return np.array(sorted(node.row for node in found if node is not None), np.int64)

    def _extend(self, size: int) -> None:
        """Append rows without results, up to `size` rows; the caller computes the results."""
        more = size - self._size
        self._evaluator.rows = self._table.every_row()
        self.codes = np.append(self.codes, np.full(more, NO_NODE, np.int32))
        self.score = np.append(self.score, np.zeros(more, np.int64))
        for name, scores in self.raw_scores.items():
            self.raw_scores[name] = np.append(scores, np.zeros(more, np.int64))
        self._size = size

    def _redo_nodes(self, pod: PodInfo, rows: Sequence[int]) -> bool:
        """Recompute `rows`, whose Nodes changed; return whether a result may have changed."""
        if len(rows) >= _COLUMNS_FROM:
            self._redo(pod, np.array(rows, np.int64))
            return True
        has_changed = False
        for row in rows:
            has_changed |= self._redo_one(pod, row)
        if has_changed:
            self._find_live()
        return has_changed

    def _redo_one(self, pod: PodInfo, position: int) -> bool:
        """Recompute the results for the node in the row `rows[position]`.

        Return False if the node was rejected before and is still rejected for the same reason, or
        if the row has had no node since the last call.
        """
        evaluator, points, before = self._evaluator, self._points, self.codes[position]
        row = position if self._node_names is None else int(self.rows[position])
        if not self._table.alive[row]:
            self.codes[position] = NO_NODE
            return bool(before != NO_NODE)
        node = self._table.at(row)
        status = first_rejection(points.filters, self._state, pod, node)
        code = self.codes[position] = 0 if status is None else evaluator.code(status)
        if status is not None:
            return bool(code != before)
        self.broken.pop(position, None)
        self.score[position] = sum(
            point.weight * evaluator.score_one(point, pod, node, position, self.broken)
            for point in points.scorers
        )
        for point in points.normalized:
            raw = evaluator.score_one(point, pod, node, position, self.broken)
            self.raw_scores[point.name][position] = raw
        return True

    def _redo(self, pod: PodInfo, positions: Rows) -> None:
        evaluator, table = self._evaluator, self._table
        alive = table.values(table.alive, evaluator.rows_at(positions))
        codes = alive.astype(np.int32)
        codes += NO_NODE  # 0 where the row has a node
        evaluator.run_filters(self._points.filters, pod, positions, codes)
        self.codes[evaluator.index(positions)] = codes
        self._score(pod, positions[codes == 0] if np.count_nonzero(codes) else positions)

    def _score(self, pod: PodInfo, positions: Rows) -> None:
        evaluator, points, at = self._evaluator, self._points, self._evaluator.index(positions)
        nothing = np.zeros(len(positions), np.int64)
        self.score[at] = evaluator.weighted_sum(
            points.scorers, pod, positions, nothing, self.broken
        )
        for point in points.normalized:
            raw = evaluator.scores(point, pod, positions, self.broken)
            self.raw_scores[point.name][at] = raw
        self._find_live()

    def _find_live(self) -> None:
        raw_scores = self.raw_scores
        self.live = [point for point in self._points.normalized if raw_scores[point.name].any()]

    def _current_epochs(self) -> list[object]:
        return [epoch() for epoch in self._epoch_functions]

    def _refresh_epochs(self, pod: PodInfo) -> bool:
        """Recompute scores that depend on the set of all nodes, if that set has changed.

        If a score changes, this method increments `version` and returns True. Often no score
        changes, for example if no node has an image of the pod.
        """
        epochs = self._current_epochs()
        if epochs == self._epochs:
            return False
        self._epochs = epochs
        before = [scores.copy() for scores in (self.score, *self.raw_scores.values())]
        self._score(pod, np.flatnonzero(self.codes == 0))
        after = (self.score, *self.raw_scores.values())
        if all(map(np.array_equal, before, after)):
            return False
        self.version += 1
        return True
