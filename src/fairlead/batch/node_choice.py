"""NodeChoice: which nodes can take a task, and which of them is best.

    verdicts and scores that depend on a node and its pods      kept per shape (`ShapePlan`)
    those that depend on more (affinity, spread)                asked anew for every task

One instance per question: "into idle room?", "into room that is becoming free?", "if room were
made?" differ in the filters of their frameworks only.
upstream: pkg/scheduler/util/scheduler_helper.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.core.status import Status
from fairlead.core.tie_break import TieBreak
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.diagnosis import Diagnosis
from fairlead.framework.interface import PreFilterResult, Rows, Scores
from fairlead.framework.plan import DEAD, NOT_FEASIBLE, ShapePlan
from fairlead.framework.plugin_split import PluginSplit
from fairlead.framework.points import ScorePoint
from fairlead.framework.runtime import Framework
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo

_NODES_TIMES_PLANS_MAX: Final = 20_000_000  # about 30 bytes each
_PLANS_MIN: Final = 64


@dataclass(slots=True)
class Found:
    """The verdicts for one task: `codes` follow `plan.rows`; `rejected` refuses it everywhere."""

    plan: ShapePlan
    codes: npt.NDArray[np.int32]
    state: CycleState
    restricting: tuple[str, ...] = ()
    rejected: Status | None = None

    def positions(self) -> Rows:
        """Where in `plan.rows` the feasible nodes are, ascending."""
        if self.rejected is not None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.codes == 0)

    def diagnosis(self) -> Diagnosis:
        """Why each node was rejected."""
        plan = self.plan
        return Diagnosis(
            table=plan.table,
            rows=plan.rows,
            codes=self.codes,
            statuses=plan.statuses,
            restricting=self.restricting,
            pre_filter=self.rejected,
        )


class NodeChoice:
    """See the module's docstring."""

    def __init__(self, framework: Framework) -> None:
        """`framework` says what may and what is good."""
        self._framework = framework
        self._table = framework.cluster.table
        self._split = PluginSplit(framework)
        self._plans: dict[int, ShapePlan] = {}
        self._name_rank: Rows = np.zeros(0, np.int64)
        self._ranked_at = -1

    # --- which -----------------------------------------------------------------------------

    def find(self, pod: PodInfo) -> Found:
        """The verdict on every node."""
        plan = self._plan_for(pod)
        found = Found(plan, plan.codes, plan.state, tuple(plan.restricting))
        if plan.rejected:
            found.rejected = next(iter(plan.rejected.values()))
        elif self._split.cluster_pre_filters or self._split.cluster_filters:
            found.state = plan.state.clone()
            self._pre_filter(pod, found)
            if found.rejected is None:
                self._filter(pod, found)
        return found

    def _plan_for(self, pod: PodInfo) -> ShapePlan:
        plan = self._plans.pop(pod.shape.id, None)
        if plan is None:
            self._make_room()
            plan = ShapePlan(self._framework, self._split, pod)
        self._plans[pod.shape.id] = plan
        plan.refresh(pod)
        return plan

    def _make_room(self) -> None:
        bound = max(_NODES_TIMES_PLANS_MAX // max(self._table.capacity, 1), _PLANS_MIN)
        while len(self._plans) >= bound:
            del self._plans[next(iter(self._plans))]

    def _pre_filter(self, pod: PodInfo, found: Found) -> None:
        for plugin in self._split.cluster_pre_filters:
            answer = self._framework.run_pre_filter(found.state, pod, plugin)
            if isinstance(answer, Status):
                found.rejected = answer
                return
            if isinstance(answer, PreFilterResult) and answer.node_names is not None:
                named = (self._table.find(name) for name in answer.node_names)
                kept = np.isin(found.plan.rows, [n.row for n in named if n is not None])
                found.codes = np.where(kept, found.codes, np.int32(DEAD))
                found.restricting += (plugin.name,)

    def _filter(self, pod: PodInfo, found: Found) -> None:
        plan, skipped = found.plan, found.state.skipped_filters
        for point in self._split.cluster_filters:
            if point.name in skipped:
                continue
            open_at = np.flatnonzero(found.codes == 0)
            if not len(open_at):
                return
            codes = plan.ask(point, found.state, pod, plan.rows[open_at])
            if codes.any():
                found.codes = found.codes.copy()
                found.codes[open_at] = codes

    # --- which is best ---------------------------------------------------------------------

    def pick(self, pod: PodInfo, tie_break: TieBreak) -> NodeInfo | None:
        """The best node, chosen among equals by `tie_break`; None if there is none."""
        found = self.find(pod)
        best = self._best(pod, found)
        if not len(best):
            return None
        chosen = int(best[tie_break.pick(len(best))])
        return self._table.at(int(found.plan.rows[chosen]))

    def _best(self, pod: PodInfo, found: Found) -> Rows:
        if found.rejected is not None:
            return np.zeros(0, np.int64)
        plan, asked = found.plan, self._asked(pod)
        if not asked and not plan.live and found.codes is plan.codes:
            highest = plan.total.max() if len(plan.total) else NOT_FEASIBLE
            if highest == NOT_FEASIBLE:
                return np.zeros(0, np.int64)
            return np.flatnonzero(plan.total == highest)
        positions = found.positions()
        if not len(positions):
            return positions
        totals = self._totals(pod, found, positions, asked)
        best: Rows = positions[totals == totals.max()]
        return best

    def _asked(self, pod: PodInfo) -> list[ScorePoint]:
        """The scorers beyond the plan that can make a difference."""
        return [point for point in self._split.cluster_scorers if not point.scores_alike(pod)]

    def _totals(
        self, pod: PodInfo, found: Found, positions: Rows, asked: list[ScorePoint]
    ) -> Scores:
        plan, state = found.plan, found.state
        totals = plan.total[positions]
        for point in plan.live:
            raw = plan.raw_scores[point.name][positions]
            totals = totals + point.weight * point.normalize(state, pod, raw)
        rows = plan.rows[positions]
        for point in asked:
            error = self._framework.run_pre_score(state, pod, point.name, rows)
            if error is None and point.name not in state.skipped_scores:
                raw = point.many(state, pod, self._table, rows)
                totals = totals + point.weight * point.normalize(state, pod, raw)
        return totals

    def ranked(self, pod: PodInfo, among: npt.NDArray[np.bool_]) -> list[NodeInfo]:
        """The feasible nodes at the rows `among`, best first; of equals the last name first.

        upstream: scheduler_helper.go: SortNodes, which reverses an order by score and name.
        """
        found = self.find(pod)
        positions = found.positions()
        if not len(positions):
            return []
        totals = self._totals(pod, found, positions, self._asked(pod))
        rows = found.plan.rows[positions]
        rows, totals = rows[among[rows]], totals[among[rows]]
        order = np.lexsort((self._ranks()[rows], totals))[::-1]
        return [self._table.at(row) for row in rows[order].tolist()]

    def _ranks(self) -> Rows:
        """The place of each row's node in the order of names."""
        table = self._table
        if self._ranked_at != table.node_log.position:
            self._name_rank = np.zeros(table.capacity, np.int64)
            for rank, node in enumerate(sorted(table.nodes(), key=lambda node: node.name)):
                self._name_rank[node.row] = rank
            self._ranked_at = table.node_log.position
        return self._name_rank
