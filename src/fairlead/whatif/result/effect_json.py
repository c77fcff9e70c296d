"""The first part of a what-if's JSON: verdict, workloads, node pools, budgets and conditions."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.json import Json
from fairlead.engine.core.instant import DurationNs, to_seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.certainty import CertaintyRow
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.verdict import Verdict
from fairlead.whatif.outcome.budget import BudgetOutcome
from fairlead.whatif.outcome.comparison.node_pool import NodePoolOutcome, node_pools
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import resource_rank
from fairlead.whatif.outcome.start_time import StartTimeRow, StartTimes
from fairlead.whatif.run.capacity.allocation import PODS


def effect_json(answer: WhatIfAnswer, conditions: Iterable[ConditionResult], group_by: str) -> Json:
    """Return the fields `verdict` to `drain_refused` of a what-if's JSON.

    The worst findings, workloads and budgets come first in their lists.

    `group_by` is the label that divides nodes into pools, "" for the pool labels of `answer`.
    """
    effect, conditions = answer.effect, list(conditions)
    labels = (group_by,) if group_by else answer.pool_labels
    return {
        "verdict": verdict_json(answer.verdict),
        "fail_on": [
            {"condition": one.text, "holds": one.holds, "evidence": list(one.evidence)}
            for one in conditions
        ],
        "next_steps": [one.to_json() for one in answer.next_steps_if(conditions)],
        "workloads": [_workload(one) for one in effect.workloads],
        "untouched_workloads": effect.untouched_workloads,
        "group_by": ",".join(labels),
        "node_pools": [_pool(one) for one in node_pools(effect.without, effect.changed, labels)],
        "budgets": [_budget(one) for one in effect.budgets],
        "packing": [
            {
                "measure": one.measure,
                "today": one.today,
                "without": one.without,
                "changed": one.changed,
            }
            for one in answer.packing
        ],
        "certainty": [_certainty(one) for one in answer.certainty],
        **start_times_json(answer.start_times),
        "drain_flags": [
            {"flag": one.flag, "needed_for": len(one.pods), "pods": list(one.pods)}
            for one in effect.drain.needed
        ],
        "drain_refused": [
            {"node": one.node, "message": one.message} for one in effect.drain.refused
        ],
    }


def verdict_json(verdict: Verdict) -> Json:
    """Return the field `verdict` of a result."""
    return {
        "outcome": verdict.first.kind.value,
        "severity": verdict.first.severity.value,
        "sentence": verdict.first.sentence,
        "findings": [
            {"outcome": one.kind.value, "severity": one.severity.value, "sentence": one.sentence}
            for one in verdict.findings
        ],
    }


def _certainty(one: CertaintyRow) -> Json:
    return {
        "subject": one.subject,
        "what": one.what,
        "seeds": one.seeds,
        "total": one.total,
        "least": one.least,
        "median": one.median,
        "p90": one.p90,
        "most": one.most,
        "certain": one.words,
    }


def start_times_json(start_times: StartTimes | None) -> Json:
    """Return the fields `start_times` and `start_times_basis`."""
    if start_times is None or not start_times.draws:
        return {"start_times": [], "start_times_basis": None}
    basis = {
        "draws": start_times.draws,
        "running": start_times.running,
        "known": start_times.known,
        "known_from_file": start_times.stated,
        "simulated_s": to_seconds(start_times.look_ahead),
    }
    return {"start_times": [_start(one) for one in start_times.rows], "start_times_basis": basis}


def _start(one: StartTimeRow) -> Json:
    return {
        "subject": one.subject,
        "kind": one.kind,
        "pods": one.pods,
        "started": one.started,
        "p10_s": _seconds(one.p10),
        "p50_s": _seconds(one.p50),
        "p90_s": _seconds(one.p90),
    }


def _seconds(duration: DurationNs | None) -> float | None:
    return None if duration is None else round(to_seconds(duration), 3)


def _workload(one: WorkloadEffect) -> Json:
    ready = one.readiness
    lasted = ready.lowest_for
    return {
        "workload": str(one.workload),
        "kind": one.workload.object_kind,
        "namespace": one.workload.namespace,
        "name": one.workload.name,
        "wanted": ready.wanted,
        "ready_before": ready.before,
        "lowest": ready.lowest,
        "lowest_for_s": None if lasted is None else round(to_seconds(lasted), 3),
        "lowest_for": ready.lowest_for_words,
        "at_end": ready.at_end,
        "preempted": one.preempted,
        "evicted": one.evicted,
        "moved": one.moved,
        "returned": one.returned,
        "updated": one.updated,
        "placed": one.placed,
        "completed": one.completed,
        "failed": one.failed,
        "pending": one.pending,
        "gone": one.gone,
        "not_created": one.not_created,
        "missing": one.missing,
        "removed": one.removed,
        "down": one.down,
        "undrained": one.undrained,
        "outdated": one.outdated,
        "waited": one.waited,
        "reasons": list(one.reasons),
        "by": list(one.by),
        "budget": None if one.budget is None else one.budget.value,
        "budget_what": None if one.budget is None else one.budget.words,
        "budgets": [{"pdb": pdb, "state": state.value} for pdb, state in one.budgets],
        "harmed": one.is_harmed,
        "what": one.words,
    }


def _pool(pool: NodePoolOutcome) -> Json:
    offered = {**pool.allocatable, **pool.allocatable_without}
    resources = {*offered, *pool.requested, *pool.requested_without}
    return {
        "pool": pool.name,
        "nodes": pool.nodes,
        "nodes_without": pool.nodes_without,
        "not_ready": pool.not_ready,
        "not_ready_without": pool.not_ready_without,
        "cordoned": pool.cordoned,
        "pods": pool.pods,
        "pods_without": pool.pods_without,
        "resources": [
            {
                "resource": name,
                "allocatable": pool.allocatable.get(name, 0),
                "allocatable_without": pool.allocatable_without.get(name, 0),
                "requested": pool.requested.get(name, 0),
                "requested_without": pool.requested_without.get(name, 0),
            }
            for name in sorted(resources, key=resource_rank)
            if name != PODS
        ],
    }


def _budget(one: BudgetOutcome) -> Json:
    return {
        "pdb": one.pdb,
        "rule": one.rule,
        "allowed": one.allowed,
        "lowest_healthy": one.lowest_healthy,
        "needed": one.needed,
        "displaced": one.displaced,
        "delayed": one.delayed,
        "blocked": one.blocked,
        "breaches": one.breaches,
        "allowed_at_end": one.allowed_at_end,
        "allowed_without": one.allowed_without,
        "state": one.state.value,
        "what": one.words,
    }
