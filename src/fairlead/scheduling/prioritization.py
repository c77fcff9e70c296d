"""prioritize_nodes and select_host: which of the feasible nodes is best.

upstream: pkg/scheduler/schedule_one.go: prioritizeNodes, selectHost;
framework/runtime/framework.go: RunScorePlugins. Total = sum of weight × score (0..100); a skipped
plugin adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fairlead.core.status import SKIP, Code, Status
from fairlead.framework.interface import (
    SCORE_MAX,
    Normalization,
    PreScorePlugin,
    Rows,
    ScoreNormalizer,
    ScoreRelevance,
    Scores,
)
from fairlead.framework.plan import normalization_of, score_many
from fairlead.framework.runtime import AnyScore, attempt, crashed
from fairlead.scheduling.feasibility import Feasibility
from fairlead.scheduling.plan_cache import PlanCache
from fairlead.state.pod_info import PodInfo


@dataclass(slots=True)
class Prioritization:
    """Totals of the feasible nodes at `positions` of the plan; `best` are indices into them."""

    positions: Rows
    totals: Scores
    error: Status | None = None
    by_plugin: dict[str, Scores] = field(default_factory=dict)

    @property
    def best(self) -> Rows:
        """The positions with the highest total, ascending."""
        return self.positions[self.totals == self.totals.max()]


def prioritize_nodes(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Prioritization:
    """Score the feasible nodes; `by_plugin` stays empty, see `explain_scores`."""
    plan = found.plan
    positions = found.positions()
    if plan.score_error is not None:
        return Prioritization(positions, np.zeros(0, np.int64), plan.score_error)
    totals = plan.total[positions]
    result = Prioritization(positions, totals)
    for plugin in plan.live:
        raw = plan.raw_scores[plugin.name][positions]
        totals += plans.framework.weights[plugin.name] * normalized(plugin, raw)
    _add_cluster_scores(plans, pod, found, result)
    return result


def best_positions(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Rows | Status:
    """The positions of the best nodes; an ERROR status if a plugin failed.

    Where nothing but cached scores counts, the plan's totals are searched as they are.
    """
    plan = found.plan
    if plan.score_error is not None:
        return plan.score_error
    asked = [p for p in plans.split.cluster_scorers if _makes_a_difference(p, pod)]
    if found.is_cached and not plan.live and not asked:
        return np.flatnonzero(plan.total == plan.total.max())
    result = prioritize_nodes(plans, pod, found)
    return result.best if result.error is None else result.error


def _makes_a_difference(plugin: AnyScore, pod: PodInfo) -> bool:
    return not (isinstance(plugin, ScoreRelevance) and plugin.scores_alike(pod))


def _add_cluster_scores(
    plans: PlanCache, pod: PodInfo, found: Feasibility, result: Prioritization
) -> None:
    rows = found.plan.rows[result.positions]
    for plugin in plans.split.cluster_scorers:
        if not _wants_to_score(plugin, pod, found, rows, result):
            if result.error is not None:
                return
            continue
        scores = _cluster_score(plugin, pod, found, result)
        if scores is None:
            return
        result.by_plugin[plugin.name] = scores
        result.totals += plans.framework.weights[plugin.name] * scores


def _wants_to_score(
    plugin: AnyScore, pod: PodInfo, found: Feasibility, rows: Rows, result: Prioritization
) -> bool:
    if not isinstance(plugin, PreScorePlugin):
        return True
    answer = attempt(plugin, lambda: plugin.pre_score(found.state, pod, rows))
    if answer is SKIP:
        found.state.skipped_scores[plugin.name] = None
        return False
    if isinstance(answer, Status) and answer.code is not Code.SUCCESS:
        text = f'running PreScore plugin "{plugin.name}": {answer.message}'
        result.error = Status(Code.ERROR, (text,), plugin.name)
        return False
    return True


def _cluster_score(
    plugin: AnyScore, pod: PodInfo, found: Feasibility, result: Prioritization
) -> Scores | None:
    try:
        raw = score_many(plugin, found.state, pod, found.plan, result.positions)
        if isinstance(plugin, ScoreNormalizer):
            return plugin.normalize_scores(found.state, pod, raw)
        return normalized(plugin, raw)
    except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
        result.error = crashed(plugin, cause)
        return None


def normalized(plugin: AnyScore, raw: Scores) -> Scores:
    """Raw scores as 0..100 (plugins/helper/normalize_score.go: DefaultNormalizeScore)."""
    kind = normalization_of(plugin)
    if kind is Normalization.NONE:
        return raw
    highest = int(raw.max()) if len(raw) else 0
    scaled = raw * SCORE_MAX // highest if highest else np.zeros_like(raw)
    return SCORE_MAX - scaled if kind is Normalization.REVERSED else scaled


def explain_scores(plans: PlanCache, pod: PodInfo, found: Feasibility) -> Prioritization:
    """As `prioritize_nodes`, with every plugin's normalised scores and the full totals."""
    result = prioritize_nodes(plans, pod, found)
    if result.error is not None:
        return result
    plan, weights = found.plan, plans.framework.weights
    for plugin in (*plan.static_scorers, *plan.row_scorers):
        scores = score_many(plugin, found.state, pod, plan, result.positions)
        result.by_plugin[plugin.name] = scores
    for plugin in plan.normalized_scorers:
        raw = plan.raw_scores[plugin.name][result.positions]
        result.by_plugin[plugin.name] = normalized(plugin, raw)
    result.totals = np.zeros(len(result.positions), np.int64)
    for name, scores in result.by_plugin.items():
        result.totals = result.totals + weights[name] * scores
    return result
