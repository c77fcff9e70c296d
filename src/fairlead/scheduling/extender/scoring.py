"""What the extenders think of the nodes that are left.

All are asked at once. Their scores of 0..10 count ten times their weight beside the plugins'; one
that fails gives none.
upstream: pkg/scheduler/schedule_one.go: prioritizeNodes; extender.go: Prioritize
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fairlead.api.extender import INT64_MAX, PRIORITY_MAX, HostPriority
from fairlead.core.status import Status
from fairlead.framework.interface import SCORE_MAX, Rows
from fairlead.scheduling.extender.answer import ExtenderError, read_answer
from fairlead.scheduling.extender.consultation import Consultation
from fairlead.scheduling.extender.extender import Asker
from fairlead.scheduling.feasibility import Feasibility
from fairlead.scheduling.plan_cache import PlanCache
from fairlead.scheduling.prioritization import prioritize
from fairlead.state.pod_info import PodInfo

_SCALE: Final = SCORE_MAX // PRIORITY_MAX
_WRAP: Final = 1 << 64


def best_with_extenders(
    asked: Sequence[Asker], plans: PlanCache, pod: PodInfo, found: Feasibility
) -> Consultation[Rows | Status]:
    """The positions of the best nodes; an ERROR status if a plugin failed."""
    ranked = prioritize(plans, pod, found)
    if ranked.error is not None:
        return ranked.error
    table, rows = found.plan.table, found.plan.rows
    nodes = [table.at(row) for row in rows[ranked.positions].tolist()]
    scores = yield from _scores(asked, [node.name for node in nodes])
    totals = [
        _wrapped(total + scores.get(node.name, 0))
        for total, node in zip(ranked.totals.tolist(), nodes, strict=True)
    ]
    there = [table.find(node.name) is node for node in nodes]  # some may be gone by now
    ranked.positions = ranked.positions[there]
    ranked.totals = np.array(totals, np.int64)[there]
    return ranked.best if len(ranked.positions) else ranked.positions


def _scores(asked: Sequence[Asker], names: Sequence[str]) -> Consultation[dict[str, int]]:
    """By node, what all extenders together add."""
    scorers = [asker for asker in asked if asker.extender.prioritize_verb]
    scores: dict[str, int] = {}
    if not scorers:
        return scores
    answers = yield tuple(asker.prioritize(names) for asker in scorers)
    for asker, answer in zip(scorers, answers, strict=True):
        try:
            given = read_answer(asker, answer, list[HostPriority])
        except ExtenderError:
            continue  # the others determine the order
        for entry in given:
            score = entry.score * asker.extender.weight * _SCALE
            scores[entry.host] = scores.get(entry.host, 0) + score
    return scores


def _wrapped(total: int) -> int:
    """As 64 bits hold it, whatever an extender may claim."""
    return (total + INT64_MAX + 1) % _WRAP - INT64_MAX - 1
