"""NodeChoice: finds the nodes that can take a task, and the best of these nodes.

    verdicts and scores that depend on a node and its pods      cached for equal pods (`ShapePlan`)
    verdicts and scores that depend on more (affinity, spread)  evaluated for every task; skipped if
                                                                an equal pod (`EqualPods`) showed
                                                                that they have no effect

A session uses several NodeChoice objects (`NodeChoices`). The objects differ only in the filters of
their frameworks.

upstream: pkg/scheduler/util/scheduler_helper.go
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.feasibility import Feasibility, filter_nodes
from fairlead.engine.framework.interface import Mask, Rows, Scores
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.framework.points import ScorePoint
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.equal_pods import EqualPods, Version, are_comparable
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

_NOWHERE: Final[Rows] = np.zeros(0, np.int64)
_DECIDED_MAX: Final = 1_024


class RankedNodes(Struct, frozen=True):
    """The nodes at `rows`, each with a different key in `keys`; a higher key is better.

    Iteration yields the rows, best node first.
    """

    rows: Rows
    keys: Scores

    def where(self, mask: Mask) -> RankedNodes:
        """Return the nodes for which `mask` is True; `mask` is as long as `rows`."""
        at = mask.nonzero()[0]  # faster than to index both arrays by the mask
        return RankedNodes(self.rows.take(at), self.keys.take(at))

    def __iter__(self) -> Iterator[int]:
        """Yield the rows, best node first."""
        if len(self.rows):
            yield int(self.rows[self.keys.argmax()])
            yield from self.rows[np.argsort(self.keys)[-2::-1]].tolist()


class NodeChoice:
    """Filters and ranks the nodes for one task at a time."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self._plans = PlanCache(framework)
        self._table = framework.cluster.table
        self._equal = EqualPods(framework.cluster)
        self._version: Version | None = None
        self._decided_by_plan: dict[Hashable, None] = {}
        self._name_rank: Rows = np.zeros(0, np.int64)
        self._ranked_at = -1

    # --- feasible nodes --------------------------------------------------------------------

    def find(self, pod: PodInfo) -> Feasibility:
        """Return the nodes that are feasible for `pod`, with the filter results of every node."""
        return filter_nodes(self._plans, pod)

    # --- best node -------------------------------------------------------------------------

    def pick(self, pod: PodInfo, tie_break: TieBreak) -> NodeInfo | None:
        """Return the best node for `pod`, or None if no node is feasible.

        `tie_break` chooses among nodes with equal scores.
        """
        if self._is_decided_by_plan(pod):
            plan = self._plans.plan_for(pod)
            best = plan.best_positions() if plan.count_feasible() else _NOWHERE
        else:
            found = self.find(pod)
            plan, best = found.plan, self._best(pod, found)
        if not len(best):
            return None
        return self._table.at(plan.row(int(best[tie_break.pick(len(best))])))

    def _is_decided_by_plan(self, pod: PodInfo) -> bool:
        """Return whether the cached plan (verdicts and scores) is known to determine the best node.

        The result is True if the plan alone determined the best node for an equal pod
        (`EqualPods`). The input of the plugins that the plan does not cover must also be unchanged
        since then.
        """
        if not self._decided_by_plan:
            return False
        if self._version != self._equal.version():
            self._decided_by_plan.clear()
            return False
        return self._equal.key(pod) in self._decided_by_plan

    def _note_decided_by_plan(self, pod: PodInfo) -> None:
        version = self._equal.version()
        if self._version != version or len(self._decided_by_plan) >= _DECIDED_MAX:
            self._decided_by_plan.clear()
            self._version = version
        self._decided_by_plan[self._equal.key(pod)] = None

    def _best(self, pod: PodInfo, found: Feasibility) -> Rows | array[int]:
        """Return the positions of the best nodes in `found.plan.rows`, ascending.

        The result is empty if no node is feasible.
        """
        if found.rejected is not None:
            return _NOWHERE
        plan, scorers = found.plan, _varying_scorers(found.plan, pod)
        if not scorers and not plan.static.live and found.is_cached and plan.count_feasible():
            skipped = found.state.skipped_filters
            if are_comparable(plan, pod) and all(
                point.name in skipped for point in plan.split.cluster_filters
            ):
                self._note_decided_by_plan(pod)
            return plan.best_positions()
        positions = found.positions()
        if not len(positions):
            return positions
        totals = self._totals(pod, found, positions, scorers)
        best: Rows = positions[totals == totals.max()]
        return best

    def _totals(
        self, pod: PodInfo, found: Feasibility, positions: Rows, scorers: list[ScorePoint]
    ) -> Scores:
        plan, state = found.plan, found.state
        totals = plan.total if positions is plan.rows else plan.total[positions]
        for point in plan.static.live:
            raw = plan.static.raw_scores[point.name][positions]
            totals = totals + point.weight * point.normalize(state, pod, raw)
        rows = plan.rows[positions]
        for point in scorers:
            error = self.framework.run_pre_score(state, pod, point.name, rows)
            if error is None and point.name not in state.skipped_scores:
                raw = point.many(state, pod, self._table, rows)
                totals = totals + point.weight * point.normalize(state, pod, raw)
        return totals

    def ranked(self, pod: PodInfo, among: Mask) -> RankedNodes:
        """Return the feasible nodes for which `among` is True at their row, ranked by score.

        Nodes with equal scores are ordered by descending name.

        upstream: scheduler_helper.go: SortNodes, which reverses an order by score and name.
        """
        found = self.find(pod)
        positions = found.positions()
        if not len(positions):
            return RankedNodes(positions, positions)
        plan = found.plan
        totals = self._totals(pod, found, positions, _varying_scorers(plan, pod))
        rows = positions if positions is plan.rows else plan.rows[positions]
        at = among[rows].nonzero()[0]
        rows = rows.take(at)
        keys = totals.take(at) * self._table.capacity + self._ranks().take(rows)
        return RankedNodes(rows, keys)

    def _ranks(self) -> Rows:
        """Return, for each row, the index of its node in the list of all nodes sorted by name.

        The result has the shape (rows,).
        """
        table = self._table
        if self._ranked_at != table.node_log.position:
            self._name_rank = np.zeros(table.capacity, np.int64)
            for rank, node in enumerate(sorted(table.nodes(), key=lambda node: node.name)):
                self._name_rank[node.row] = rank
            self._ranked_at = table.node_log.position
        return self._name_rank


def _varying_scorers(plan: ShapePlan, pod: PodInfo) -> list[ScorePoint]:
    """Return the Score plugins in `plan.split.cluster_scorers` that can affect the order of nodes.

    Leaves out plugins that give all nodes the same score for `pod`. Scores of `cluster_scorers` are
    not cached.
    """
    return [point for point in plan.split.cluster_scorers if not point.scores_alike(pod)]
