"""Extender scores: adds the extenders' scores to the scores of the plugins.

All extenders are called in parallel. Extenders usually give scores from 0 to 10. Each score is
multiplied by 10 and by the extender's weight. A failed extender adds nothing.
upstream: pkg/scheduler/schedule_one.go: prioritizeNodes; extender.go: Prioritize
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from fairlead.api.extender import INT64_MAX, PRIORITY_MAX, HostPriority
from fairlead.engine.core.status import Status
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import SCORE_MAX, Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.scheduling.extender.answer import ExtenderError, read_answer
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.extender.extender import ExtenderCalls
from fairlead.engine.scheduling.prioritization import prioritize
from fairlead.engine.state.pod_info import PodInfo

_SCALE: Final = SCORE_MAX // PRIORITY_MAX
_WRAP: Final = 1 << 64


def best_with_extenders(
    extenders: Sequence[ExtenderCalls], plans: PlanCache, pod: PodInfo, found: Feasibility
) -> Consultation[Rows | Status]:
    """Return the nodes with the highest total score, as positions in `found.plan.rows`.

    Returns an ERROR status if a plugin failed. The result is empty if all feasible nodes were
    deleted during the extender calls.
    """
    ranked = prioritize(plans, pod, found)
    if ranked.error is not None:
        return ranked.error
    table, rows = found.plan.table, found.plan.rows
    nodes = [table.at(row) for row in rows[ranked.positions].tolist()]
    names = [node.name for node in nodes]
    given = yield from extender_scores(extenders, names)
    totals = with_extenders(dict(zip(names, ranked.totals.tolist(), strict=True)), given)
    there = [table.find(node.name) is node for node in nodes]  # some nodes may have been deleted
    ranked.positions = ranked.positions[there]
    ranked.totals = np.array([totals[name] for name in names], np.int64)[there]
    return ranked.best if len(ranked.positions) else ranked.positions


def extender_scores(
    extenders: Sequence[ExtenderCalls], names: Sequence[str]
) -> Consultation[list[tuple[ExtenderCalls, dict[str, int]]]]:
    """Return (extender, scores by node name) for each extender with a prioritize verb.

    `names` are the nodes to score. An extender's scores are usually 0..10; they are multiplied by
    10. An extender whose call failed is left out.
    """
    scorers = [calls for calls in extenders if calls.extender.prioritize_verb]
    if not scorers:
        return []
    responses = yield tuple(calls.prioritize(names) for calls in scorers)
    given = []
    for calls, answer in zip(scorers, responses, strict=True):
        try:
            entries = read_answer(calls, answer, list[HostPriority])
        except ExtenderError as cause:
            calls.ignore(calls.extender.prioritize_verb, cause)  # a failed extender adds nothing
            continue
        given.append((calls, _by_host(entries)))
    return given


def _by_host(entries: Iterable[HostPriority]) -> dict[str, int]:
    scores: dict[str, int] = {}
    for entry in entries:
        scores[entry.host] = scores.get(entry.host, 0) + entry.score * _SCALE
    return scores


def with_extenders(
    totals: dict[str, int], scores_by_extender: Iterable[tuple[ExtenderCalls, dict[str, int]]]
) -> dict[str, int]:
    """Return the sums of `totals` and the extenders' weighted scores, by node name.

    `totals` maps node names to scores. `scores_by_extender` contains pairs of an extender and its
    scores by node name. Each score is multiplied by the extender's weight. As in Go, a sum that
    overflows wraps at 64 bits.
    """
    totals = dict(totals)
    for calls, scores in scores_by_extender:
        for name in totals:
            totals[name] = _wrapped(totals[name] + calls.extender.weight * scores.get(name, 0))
    return totals


def _wrapped(total: int) -> int:
    return (total + INT64_MAX + 1) % _WRAP - INT64_MAX - 1
