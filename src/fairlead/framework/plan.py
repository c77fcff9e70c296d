"""ShapePlan: what one profile's plugins say about every node, for pods of one shape.

The heart of "cost follows what changed". Verdicts and scores that depend only on a node and its
pods (Locality NODE and ROW) are kept per row and redone only for rows that the table's change logs
name since the plan last looked: one by one when few changed, over columns when many did.

    statuses[codes[i]]   the first rejection of the node in rows[i]; code 0 where it fits,
                         DEAD where the row holds no node
    static_score[i]      weighted scores of NODE plugins that need no normalisation
    total[i]             static_score plus the weighted scores of ROW plugins; NOT_FEASIBLE where
                         codes[i] is not 0
    raw_scores[name][i]  raw scores of NODE plugins that are normalised over the feasible nodes;
                         `live` names those that are not 0 everywhere and so make a difference

Plugins of Locality CLUSTER are not cached; the cycle asks them
(`fairlead.scheduling.feasibility`, `fairlead.scheduling.prioritization`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.core.status import SKIP, SUCCESS, Status, error
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.diagnosis import restricted_by
from fairlead.framework.interface import (
    ColumnFilterPlugin,
    ColumnScorePlugin,
    FilterPlugin,
    Locality,
    Normalization,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Rows,
    ScoreNormalizer,
    Scores,
    Verdicts,
)
from fairlead.framework.runtime import (
    AnyFilter,
    AnyScore,
    Framework,
    crashed,
    filter_one,
    locality_of,
    score_one,
)
from fairlead.state.pod_info import PodInfo

DEAD: Final = -1
NOT_FEASIBLE: Final = -1

# From this many changed rows on, redoing them over columns is cheaper than one by one (measured:
# a pass over columns costs about as much as eight rows).
_COLUMNS_FROM: Final = 12


def normalization_of(plugin: object) -> Normalization | None:
    """How the plugin's raw scores become 0..100; None if it has a rule of its own."""
    if isinstance(plugin, ScoreNormalizer):
        return None
    found = getattr(plugin, "normalization", Normalization.NONE)
    assert isinstance(found, Normalization)
    return found


class PluginSplit:
    """A profile's Filter and Score plugins, split by what may be cached; one per framework.

    The cached filters are the longest leading run of NODE and ROW plugins, so that "the first
    failing plugin" stays the first in configured order.
    """

    def __init__(self, framework: Framework) -> None:
        """Split the plugins of `framework`."""
        filters = framework.filters
        self.static_filters = _leading(filters, (Locality.NODE,))
        cached = _leading(filters, (Locality.NODE, Locality.ROW))
        self.row_filters = cached[len(self.static_filters) :]
        self.cluster_filters = filters[len(cached) :]
        self.static_scorers: list[AnyScore] = []
        self.row_scorers: list[AnyScore] = []
        self.normalized_scorers: list[AnyScore] = []
        self.cluster_scorers: list[AnyScore] = []
        for plugin in framework.scorers:
            self._sort_scorer(plugin)
        scorers = (*self.static_scorers, *self.row_scorers, *self.normalized_scorers)
        self.local_names = frozenset(plugin.name for plugin in (*cached, *scorers))
        self.cluster_pre_filters = [
            plugin for plugin in framework.pre_filters if plugin.name not in self.local_names
        ]

    def _sort_scorer(self, plugin: AnyScore) -> None:
        match locality_of(plugin), normalization_of(plugin):
            case Locality.NODE, Normalization.NONE:
                self.static_scorers.append(plugin)
            case Locality.NODE, Normalization.SCALED | Normalization.REVERSED:
                self.normalized_scorers.append(plugin)
            case Locality.ROW, Normalization.NONE:
                self.row_scorers.append(plugin)
            case _:
                self.cluster_scorers.append(plugin)


def _leading(filters: list[AnyFilter], kinds: tuple[Locality, ...]) -> list[AnyFilter]:
    count = 0
    while count < len(filters) and locality_of(filters[count]) in kinds:
        count += 1
    return filters[:count]


class ShapePlan:
    """See the module's docstring. `state` holds what the cached plugins' PreFilter left."""

    def __init__(self, framework: Framework, split: PluginSplit, pod: PodInfo) -> None:
        """Plan for all pods of `pod.shape`; call `refresh` before reading."""
        self._framework = framework
        self._split = split
        self.table = framework.cluster.table
        self.state = CycleState()
        self.rejected: dict[str, Status] = {}
        self.node_names: tuple[str, ...] | None = None
        self.restricting: list[str] = []
        self._pre_filter(pod)
        self.score_error: Status | None = None
        self._pre_score(pod)
        skipped = self.state.skipped_filters
        self.static_filters = [p for p in split.static_filters if p.name not in skipped]
        self.row_filters = [p for p in split.row_filters if p.name not in skipped]
        unscored = self.state.skipped_scores
        self.normalized_scorers = [p for p in split.normalized_scorers if p.name not in unscored]
        self.static_scorers = [p for p in split.static_scorers if p.name not in unscored]
        self.row_scorers = [p for p in split.row_scorers if p.name not in unscored]
        self._weighted_row_scorers = [(p, framework.weights[p.name]) for p in self.row_scorers]
        self.statuses: list[Status] = [SUCCESS]
        self._code_of: dict[Status, int] = {}
        self._capacity = -1
        self._epochs: list[object] = []
        self.version = 0

    def _pre_filter(self, pod: PodInfo) -> None:
        """Ask the cached plugins' PreFilter once; their answers hold for the shape."""
        for plugin in self._framework.pre_filters:
            if plugin.name in self._split.local_names:
                self._take(plugin, pod)

    def _take(self, plugin: PreFilterPlugin, pod: PodInfo) -> None:
        answer = self._framework.run_pre_filter(self.state, pod, plugin)
        if isinstance(answer, Status):
            self.rejected[plugin.name] = answer
        elif isinstance(answer, PreFilterResult) and answer.node_names is not None:
            self.restricting.append(plugin.name)
            before = answer.node_names if self.node_names is None else self.node_names
            self.node_names = tuple(n for n in before if n in answer.node_names)

    def _pre_score(self, pod: PodInfo) -> None:
        """Ask the cached plugins' PreScore once; an error only counts when scores are needed."""
        split = self._split
        for plugin in (*split.static_scorers, *split.row_scorers, *split.normalized_scorers):
            if isinstance(plugin, PreScorePlugin):
                answer = plugin.pre_score(self.state, pod, np.zeros(0, np.int64))
                if answer is SKIP:
                    self.state.skipped_scores[plugin.name] = None
                elif answer is not None and self.score_error is None:
                    text = f'running PreScore plugin "{plugin.name}": {answer.message}'
                    self.score_error = error(text).by(plugin.name)

    # --- keeping current -------------------------------------------------------------------

    def refresh(self, pod: PodInfo) -> None:
        """Redo what changed since the last call. `pod` is any pod of the shape."""
        table = self.table
        nodes = table.node_log.since(self._node_position) if self._capacity >= 0 else None
        pods = table.pod_log.since(self._pod_position) if nodes is not None else None
        stale = nodes is None or pods is None or self._capacity != table.capacity
        if stale or (nodes and self.node_names is not None):
            self._build(pod)
            return
        assert nodes is not None
        assert pods is not None
        if nodes or pods:
            self._redo(pod, nodes, pods)
        self._refresh_epochs(pod)

    def _mark_current(self) -> None:
        self._node_position = self.table.node_log.position
        self._pod_position = self.table.pod_log.position

    def _build(self, pod: PodInfo) -> None:
        table = self.table
        self.rows = self._candidate_rows()
        count = len(self.rows)
        self.codes: npt.NDArray[np.int32] = np.full(count, DEAD, np.int32)
        self.static_codes: npt.NDArray[np.int32] = np.full(count, DEAD, np.int32)
        self.static_score: Scores = np.zeros(count, np.int64)
        self.total: Scores = np.full(count, NOT_FEASIBLE, np.int64)
        self.raw_scores: dict[str, Scores] = {
            plugin.name: np.zeros(count, np.int64) for plugin in self.normalized_scorers
        }
        self.live: list[AnyScore] = []
        self._capacity = table.capacity
        self._epochs = self._current_epochs()
        self._redo_columns(pod, np.arange(count), static=True)
        self._mark_current()

    def _candidate_rows(self) -> Rows:
        if self.node_names is None:
            return np.arange(self.table.capacity)
        found = [self.table.find(name) for name in self.node_names]
        return np.array(sorted(node.row for node in found if node is not None), np.int64)

    def _redo(self, pod: PodInfo, nodes: list[int], pods: list[int]) -> None:
        if nodes:
            self._redo_columns(pod, np.array(sorted(set(nodes)), np.int64), static=True)
        changed = dict.fromkeys(pods)
        if self.node_names is not None:
            changed = self._positions(changed)
        if len(changed) >= _COLUMNS_FROM:
            self._redo_columns(pod, np.array(sorted(changed), np.int64), static=False)
        else:
            for position in changed:
                self._redo_one(pod, position)
        self._mark_current()

    def _positions(self, rows: dict[int, None]) -> dict[int, None]:
        at = {int(row): position for position, row in enumerate(self.rows)}
        return {at[row]: None for row in rows if row in at}

    def _current_epochs(self) -> list[object]:
        epochs = (getattr(plugin, "epoch", None) for plugin in self.static_scorers)
        return [epoch() if epoch is not None else None for epoch in epochs]

    def _refresh_epochs(self, pod: PodInfo) -> None:
        """Redo static scores that depend on the cluster as a whole (ImageLocality)."""
        epochs = self._current_epochs()
        if epochs != self._epochs:
            self._epochs = epochs
            everything = np.arange(len(self.rows))
            self._score_static(pod, everything)
            self._redo_columns(pod, everything, static=False)

    # --- one by one ------------------------------------------------------------------------

    def _redo_one(self, pod: PodInfo, position: int) -> None:
        if self.static_codes[position]:
            return
        table, state = self.table, self.state
        node = table.at(int(self.rows[position]))
        self.version += 1
        for plugin in self.row_filters:
            status = filter_one(plugin, state, pod, node, table)
            if status is not None:
                self.codes[position] = self._code(status)
                self.total[position] = NOT_FEASIBLE
                return
        total = int(self.static_score[position])
        for scorer, weight in self._weighted_row_scorers:
            total += weight * score_one(scorer, state, pod, node, table)
        self.codes[position] = 0
        self.total[position] = total

    def _code(self, status: Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            code = self._code_of[status] = len(self.statuses)
            self.statuses.append(status)
        return code

    # --- over columns ----------------------------------------------------------------------

    def _redo_columns(self, pod: PodInfo, positions: Rows, *, static: bool) -> None:
        self.version += 1
        if static:
            self._filter_static(pod, positions)
            self._score_static(pod, positions)
        codes = self.static_codes[positions].copy()
        self._run_filters(self.row_filters, pod, positions, codes)
        self.codes[positions] = codes
        self.total[positions] = NOT_FEASIBLE
        feasible = positions[codes == 0]
        if len(feasible):
            total = self.static_score[feasible]
            for plugin, weight in self._weighted_row_scorers:
                total = total + weight * score_many(plugin, self.state, pod, self, feasible)
            self.total[feasible] = total

    def _filter_static(self, pod: PodInfo, positions: Rows) -> None:
        alive = self.table.alive[self.rows[positions]]
        codes = np.where(alive, 0, DEAD).astype(np.int32)
        self._run_filters(self.static_filters, pod, positions, codes)
        self.static_codes[positions] = codes

    def _score_static(self, pod: PodInfo, positions: Rows) -> None:
        live = positions[self.static_codes[positions] == 0]
        score: Scores = np.zeros(len(live), np.int64)
        for plugin in self.static_scorers:
            weight = self._framework.weights[plugin.name]
            score = score + weight * score_many(plugin, self.state, pod, self, live)
        self.static_score[live] = score
        if self.score_error is None:
            for plugin in self.normalized_scorers:
                raw = score_many(plugin, self.state, pod, self, live)
                self.raw_scores[plugin.name][live] = raw
        self.live = [p for p in self.normalized_scorers if self.raw_scores[p.name].any()]

    def _run_filters(
        self, filters: list[AnyFilter], pod: PodInfo, positions: Rows, codes: npt.NDArray[np.int32]
    ) -> None:
        """Give each still feasible position the code of the first plugin that rejects it."""
        for plugin in filters:
            open_at = np.flatnonzero(codes == 0)
            if not len(open_at):
                return
            rows = self.rows[positions[open_at]]
            verdicts = filter_many(self._framework, plugin, self.state, pod, rows)
            codes[open_at] = self.intern(plugin.name, verdicts)

    def intern(self, plugin: str, verdicts: Verdicts) -> npt.NDArray[np.int32]:
        """A plugin's own codes as codes of this plan, with the statuses attributed."""
        rejected = verdicts.codes != 0
        if not rejected.any():
            return verdicts.codes
        mapping = np.zeros(len(verdicts.statuses), np.int32)
        for code in np.unique(verdicts.codes[rejected]):
            status = verdicts.statuses[code]
            mapping[code] = self._code(status if status.plugin else status.by(plugin))
        return mapping[verdicts.codes]

    def excluded(self) -> Status | None:
        """The verdict on the nodes that are not in `rows`."""
        return restricted_by(self.restricting) if self.node_names is not None else None


def filter_many(
    framework: Framework, plugin: AnyFilter, state: CycleState, pod: PodInfo, rows: Rows
) -> Verdicts:
    """One plugin's verdicts on `rows`, over columns where it can, else node by node."""
    table = framework.cluster.table
    if isinstance(plugin, ColumnFilterPlugin):
        try:
            return plugin.filter_columns(state, pod, table, rows)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            return Verdicts(np.ones(len(rows), np.int32), (SUCCESS, crashed(plugin, cause)))
    assert isinstance(plugin, FilterPlugin)
    statuses: list[Status] = [SUCCESS]
    index: dict[Status, int] = {}
    codes = np.zeros(len(rows), np.int32)
    for i, row in enumerate(rows.tolist()):
        status = filter_one(plugin, state, pod, table.at(row), table)
        if status is not None:
            if status not in index:
                index[status] = len(statuses)
                statuses.append(status)
            codes[i] = index[status]
    return Verdicts(codes, statuses)


def score_many(
    plugin: AnyScore, state: CycleState, pod: PodInfo, plan: ShapePlan, positions: Rows
) -> Scores:
    """One plugin's raw scores of the nodes at `positions` of `plan`."""
    rows = plan.rows[positions]
    table = plan.table
    if isinstance(plugin, ColumnScorePlugin):
        return plugin.score_columns(state, pod, table, rows)
    return np.array([plugin.score(state, pod, table.at(row)) for row in rows.tolist()], np.int64)
