"""prioritize: scores the feasible nodes. best_positions: returns the nodes with the best score.

The total score of a node is the sum of weight × score (0..100) over the plugins. A skipped plugin
adds nothing.
upstream: pkg/scheduler/schedule_one.go: prioritizeNodes, selectHost;
framework/runtime/framework.go: RunScorePlugins
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

import numpy as np
from msgspec import Struct, field

from fairlead.engine.core.status import Status
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Rows, Scores
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.static_scores import NOT_FEASIBLE
from fairlead.engine.framework.points import ScorePoint, crashed, out_of_range
from fairlead.engine.state.pod_info import PodInfo

Positions: TypeAlias = "Rows | array[int]"


class Prioritization(Struct):
    """The total scores of the feasible nodes (`totals`).

    `positions` are the indexes of these nodes in the rows of the pod's plan (`ShapePlan`).
    `by_plugin` holds normalised scores by plugin name. `explain_scores` fills `by_plugin` for all
    plugins. The other functions of this module fill `by_plugin` only for plugins without cached
    scores.
    """

    positions: Rows
    totals: Scores
    error: Status | None = None
    by_plugin: dict[str, Scores] = field(default_factory=dict)

    @property
    def best(self) -> Rows:
        """The entries of `positions` with the highest total, ascending."""
        best: Rows = self.positions[self.totals == np.maximum.reduce(self.totals)]
        return best


def best_positions(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Positions | Status:
    """Return the best nodes (indexes in `found.plan.rows`); an ERROR status if a plugin failed."""
    plan = found.plan
    failure = _broken(found)
    if failure is not None:
        return failure
    scorers = _uncached_scorers(found, pod)
    if not scorers and not plan.static.live:
        return plan.best_positions() if found.is_cached else _highest(plan.total, found)
    result = _prioritize(plans, pod, found, scorers)
    return result.best if result.error is None else result.error


def _highest(totals: Scores, found: Feasibility) -> Rows:
    """Return the feasible nodes with the highest of `totals`, as indexes in `found.plan.rows`.

    At least one node must be feasible.
    """
    codes = found.codes
    best: Rows = np.asarray(found.plan.best_positions())
    kept: Rows = best[codes.take(best) == 0]
    if not len(kept):
        totals = np.where(codes == 0, totals, NOT_FEASIBLE)
        kept = np.flatnonzero(totals == totals.max())
    return kept


def prioritize(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Prioritization:
    """Score the feasible nodes; plugins that give all nodes the same score are left out."""
    failure = _broken(found)
    if failure is not None:
        return Prioritization(found.positions(), np.zeros(0, np.int64), failure)
    return _prioritize(plans, pod, found, _uncached_scorers(found, pod))


def _broken(found: Feasibility) -> Status | None:
    return found.plan.score_error or found.plan.first_broken(found.codes)


def _uncached_scorers(found: Feasibility, pod: PodInfo) -> list[ScorePoint]:
    """Return the Score plugins whose scores are not cached and may differ between nodes."""
    return [point for point in found.plan.split.cluster_scorers if not point.scores_alike(pod)]


def _prioritize(
    plans: PlanCache, pod: PodInfo, found: Feasibility, scorers: list[ScorePoint]
) -> Prioritization:
    """Score the feasible nodes with the plugins `scorers`, and add the cached scores."""
    plan = found.plan
    positions = found.positions()
    is_whole = positions is plan.rows
    result = Prioritization(positions, plan.total.copy() if is_whole else plan.total[positions])
    for point in plan.static.live:
        raw = plan.static.raw_scores[point.name][positions]
        scores = point.normalize(found.state, pod, raw)
        result.error = result.error or out_of_range(point.plugin, scores)
        result.totals += point.weight * scores
    if result.error is not None:
        return result
    _add_cluster_scores(plans, pod, found, scorers, result)
    return result


def _add_cluster_scores(
    plans: PlanCache,
    pod: PodInfo,
    found: Feasibility,
    scorers: list[ScorePoint],
    result: Prioritization,
) -> None:
    rows = found.plan.rows_at(result.positions)
    for point in scorers:
        result.error = plans.framework.run_pre_score(found.state, pod, point.name, rows)
        if result.error is not None:
            return
        if point.name in found.state.skipped_scores:
            continue
        try:
            raw = point.many(found.state, pod, found.plan.table, rows)
            scores = point.normalize(found.state, pod, raw)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            result.error = crashed(point.plugin, cause)
            return
        result.error = out_of_range(point.plugin, scores)
        if result.error is not None:
            return
        result.by_plugin[point.name] = scores
        weighted = scores if point.weight == 1 else point.weight * scores
        result.totals = result.totals + weighted


def explain_scores(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Prioritization:
    """Score the feasible nodes, and return every plugin's normalised scores and the totals."""
    plan = found.plan
    failure = _broken(found)
    if failure is not None:
        return Prioritization(found.positions(), np.zeros(0, np.int64), failure)
    result = _prioritize(plans, pod, found, plan.split.cluster_scorers)
    if result.error is not None:
        return result
    for point in (*plan.static_scorers, *plan.row_scorers):
        result.by_plugin[point.name] = plan.raw_scores(point, pod, result.positions)
    for point in plan.normalized_scorers:
        raw = plan.static.raw_scores[point.name][result.positions]
        result.by_plugin[point.name] = point.normalize(found.state, pod, raw)
    weights = plans.framework.weights()
    result.totals = np.zeros(len(result.positions), np.int64)
    for name, scores in result.by_plugin.items():
        result.totals = result.totals + weights[name] * scores
    return result
