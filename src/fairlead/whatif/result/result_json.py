"""The versioned JSON of a result (docs/json.md, docs/result-schema.json).

The JSON depends only on the input and the seed. The JSON contains no wall-clock time, and no paths
except paths that the user gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.comparison.difference import Difference, Move, PodUpdate, moves_within
from fairlead.whatif.outcome.comparison.waited_pod import WaitedPod
from fairlead.whatif.outcome.rest import Rest
from fairlead.whatif.outcome.run_outcome import (
    DeletedClaim,
    Evicted,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    RefusedWorkload,
    RunOutcome,
    loops_of,
)
from fairlead.whatif.result.autoscaling_json import (
    autoscaling_json,
    pod_autoscalers_json,
    waiting_times_json,
    waiting_totals_json,
    waits_so_far_json,
)
from fairlead.whatif.result.effect_json import effect_json, verdict_json
from fairlead.whatif.result.jobs_json import gangs, queues, queues_of_both, waiting_groups
from fairlead.whatif.result.outage_json import drains_json, outage_json
from fairlead.whatif.run.experiment import Experiment

API_VERSION: Final = "fairlead.dev/v1beta1"
WHAT_IF: Final = "WhatIfResult"
SIMULATION: Final = "SimulationResult"


def whatif_result(
    answer: WhatIfAnswer, conditions: Iterable[ConditionResult] = (), group_by: str = ""
) -> Json:
    """Return the result of a what-if: the difference between the runs with and without the change.

    `conditions` are the results of the conditions of `--fail-on`. `group_by` is the label that
    divides nodes into pools. If it is "", the pool labels of `answer` are used.
    """
    require_type("whatif_result", "answer", answer, WhatIfAnswer)
    # docs/result-schema.json lists all fields, and docs/json.md explains them. The values of one
    # run are in RunOutcome, which whatif/run/experiment_run.py fills from the recorders.
    without, changed, difference = answer.without, answer.changed, answer.difference
    start, recovered = changed.started_at, difference.recovered_after
    return {
        **_head(WHAT_IF, answer.source, answer.seed, changed),
        **answer.releases.as_json(),
        "scheduler_config": answer.scheduler_config,
        "changes": answer.change.words,
        **effect_json(answer, conditions, group_by),
        "difference": not answer.effect.is_none,
        "recovered_after_s": None if recovered is None else _rounded(to_seconds(recovered)),
        "choices_among_equals": changed.choices_among_equals,
        "choices_among_equals_without": without.choices_among_equals,
        "placed": _placed(difference.placed),
        "completed": _completed(difference.completed, start),
        "moved": [_move(move) for move in difference.moved],
        "returned": _placed(difference.returned),
        "preempted": [_preempted(one, start) for one in difference.preempted],
        "evicted": [_evicted(one, start) for one in difference.evicted],
        "pending": _pending(difference.pending, start),
        "still_pending": _pending(answer.still_pending, start),
        "waited": [_waited(one) for one in answer.effect.waited],
        "updated": [_update(one) for one in difference.replaced],
        "gone": _placed(difference.gone),
        "not_created": _not_created(difference),
        "removed": _placed(difference.removed),
        "deleted_claims": _deleted_claims(answer.effect.deleted_claims, start),
        "pdb_breaches": [_breach(one, start) for one in difference.pdb_breaches],
        "undrained": _undrained(changed),
        "skipped": _skipped(changed),
        "refused_workloads": [_refused_workload(one) for one in answer.effect.refused_workloads],
        "errors": [
            {**_error(one), "also_without": one not in answer.effect.errors}
            for one in changed.errors
        ],
        "recurrences": _recurrences(changed, without),
        "notes": list(changed.notes),
        "queues": queues_of_both(without.jobs, changed.jobs),
        "waiting_groups": waiting_groups(changed.jobs, start),
        "gangs": gangs(changed.jobs),
        "outage": outage_json(answer.outage, start),
        "waiting_times": {
            **waiting_times_json(changed.waits, has_autoscaler=changed.autoscaling is not None),
            "without": waiting_totals_json(without.waits),
        },
        **autoscaling_json(changed.autoscaling, start, without.autoscaling),
        "pod_autoscalers": pod_autoscalers_json(changed.pod_autoscalers, start),
        "drains": drains_json(changed),
        "allocation": _allocation_of_both(without, changed),
        "rest": _rest(without.rest),
    }


def simulation_result(experiment: Experiment, outcome: RunOutcome) -> Json:
    """Return the result of a simulation: its verdict, the cluster at the end, and the events."""
    require_type("simulation_result", "experiment", experiment, Experiment)
    require_type("simulation_result", "outcome", outcome, RunOutcome)
    # Imported only here: a what-if does not need it.
    from fairlead.whatif.outcome.assessment.run_verdict import run_verdict  # noqa: PLC0415

    start = outcome.started_at
    return {
        **_head(SIMULATION, experiment.source, experiment.seed, outcome),
        **experiment.followed.as_json(),
        "verdict": verdict_json(run_verdict(outcome)),
        "choices_among_equals": outcome.choices_among_equals,
        "placed": _placed(outcome.placed),
        "moved": [_move(move) for move in moves_within(outcome)],
        "preempted": [_preempted(one, start) for one in outcome.preempted],
        "evicted": [_evicted(one, start) for one in outcome.evicted],
        "pending": _pending(outcome.pending, start),
        "completed": _completed(outcome.completed, start),
        **lists_of_run(outcome),
        "queues": queues(outcome.jobs),
        "waiting_groups": waiting_groups(outcome.jobs, start),
        "gangs": gangs(outcome.jobs),
        "outage": outage_json(outcome.outage, start),
        "waiting_times": {
            **waiting_times_json(outcome.waits, has_autoscaler=outcome.autoscaling is not None),
            **waits_so_far_json(outcome.waits, outcome.ended_at),
        },
        **autoscaling_json(outcome.autoscaling, start),
        "pod_autoscalers": pod_autoscalers_json(outcome.pod_autoscalers, start),
        "drains": drains_json(outcome),
        "allocation": [
            {
                "resource": one.resource,
                "allocatable_before": one.allocatable_before,
                "allocatable": one.allocatable,
                "requested_before": one.requested_before,
                "requested": one.requested,
            }
            for one in outcome.allocations
        ],
    }


def lists_of_run(outcome: RunOutcome) -> Json:
    """Return the lists of a simulation's result that do not depend on another run."""
    start = outcome.started_at
    return {
        "deleted_claims": _deleted_claims(outcome.deleted_claims, start),
        "pdb_breaches": [_breach(one, start) for one in outcome.pdb_breaches],
        "undrained": _undrained(outcome),
        "skipped": _skipped(outcome),
        "errors": [_error(one) for one in outcome.errors],
        "recurrences": _recurrences(outcome),
        "notes": list(filter(None, (*outcome.notes, outcome.unfinished_deletions))),
    }


def encode_result(result: Json) -> bytes:
    """Return `result` as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def _head(kind: str, source: str, seed: int, outcome: RunOutcome) -> Json:
    """Return the first members of a WhatIfResult or SimulationResult, as `kind` says."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "source": source,
        "seed": seed,
        "started_at": format_timestamp(outcome.started_at),
        "virtual_seconds": _rounded(outcome.virtual_seconds),
        "settled": outcome.settled,
    }


def _placed(pods: Iterable[PodEnd]) -> list[Json]:
    return [{"pod": pod.key, "node": pod.node} for pod in pods]


def _completed(pods: Iterable[PodEnd], start: Instant) -> list[Json]:
    return [
        {
            "pod": pod.key,
            "node": pod.node,
            "phase": pod.phase,
            "at_s": None if pod.ended_at is None else _at_s(pod.ended_at, start),
        }
        for pod in pods
    ]


def _not_created(found: Difference) -> list[Json]:
    return [
        {"pod": one.pod.key, "node": one.pod.node, "waits_for": one.awaited or None}
        for one in found.not_created
    ]


def _move(move: Move) -> Json:
    return {"pod": move.pod.key, "from": move.origin, "to": move.target}


def _update(one: PodUpdate) -> Json:
    replaced = None if one.is_resize else one.before.key
    return {"pod": one.pod.key, "node": one.pod.node, "instead_of": replaced}


def _preempted(one: Preempted, start: Instant) -> Json:
    return {
        "pod": one.pod.key,
        "node": one.node,
        "by": one.by,
        "rule": one.rule,
        "at_s": _at_s(one.at, start),
        "priority": one.pod.priority,
        "by_priority": one.by_priority,
        "candidates": one.candidates,
    }


def _evicted(one: Evicted, start: Instant) -> Json:
    return {
        "pod": one.pod.key,
        "node": one.node,
        "at_s": _at_s(one.at, start),
        "why": one.why,
        "tolerated_s": one.tolerated_s,
        "priority": one.pod.priority,
    }


def _pending(pods: Iterable[PodEnd], start: Instant) -> list[Json]:
    return [
        {
            "pod": pod.key,
            "reason": pod.reason,
            "priority": pod.priority,
            "since_s": _at_s(pod.since, start),
        }
        for pod in pods
    ]


def _waited(one: WaitedPod) -> Json:
    return {
        "pod": one.pod.key,
        "node": one.pod.node,
        "waited_s": _rounded(to_seconds(one.waited)),
        "reason": one.pod.reason,
    }


def _deleted_claims(claims: Iterable[DeletedClaim], start: Instant) -> list[Json]:
    return [
        {
            "claim": one.claim,
            "volume": one.volume or None,
            "reclaim_policy": one.reclaim_policy or None,
            "at_s": _at_s(one.at, start),
            "in_use": one.is_in_use,
        }
        for one in claims
    ]


def _breach(one: PdbBreach, start: Instant) -> Json:
    return {"pdb": one.pdb, "pod": one.pod, "by": one.by, "at_s": _at_s(one.at, start)}


def _undrained(outcome: RunOutcome) -> list[Json]:
    return [{"pod": one.pod.key, "node": one.pod.node, "why": one.why} for one in outcome.undrained]


def _skipped(outcome: RunOutcome) -> list[Json]:
    start = outcome.started_at
    return [
        {"event": one.what, "at_s": _at_s(one.at, start), "why": one.why} for one in outcome.skipped
    ]


def _error(one: ObjectError) -> Json:
    return {"object": one.subject, "message": one.message, "missing": one.missing}


def _refused_workload(one: RefusedWorkload) -> Json:
    return {
        "workload": str(one.workload),
        "message": one.message,
        "replacements_refused": one.replacements_refused,
    }


def _recurrences(outcome: RunOutcome, *others: RunOutcome) -> list[Json]:
    start, counting = outcome.started_at, loops_of(outcome, *others)
    return [
        {
            "kind": one.kind,
            "message": one.message,
            "at_s": _at_s(one.at, start),
            "negative_priority": one not in counting,
        }
        for one in outcome.recurrences
    ]


def _rest(rest: Rest) -> Json:
    return {
        "after_s": None if rest.after is None else _rounded(to_seconds(rest.after)),
        "under_way": [
            {
                "workload": str(one.workload),
                "what": one.words,
                "created": one.created,
                "deleted": one.deleted,
                "started": one.started,
                "rollout": one.is_rollout,
            }
            for one in rest.activities
        ],
    }


def _allocation_of_both(without: RunOutcome, changed: RunOutcome) -> list[Json]:
    """Return the allocations in both runs, in the resource order of the run with the change."""
    before = {one.resource: one for one in without.allocations}
    after = {one.resource: one for one in changed.allocations}
    rows: list[dict[str, Any]] = []
    for resource in dict.fromkeys([*after, *before]):
        old, new = before.get(resource), after.get(resource)
        rows.append(
            {
                "resource": resource,
                "allocatable_without": old.allocatable if old else 0,
                "allocatable": new.allocatable if new else 0,
                "requested_without": old.requested if old else 0,
                "requested": new.requested if new else 0,
            }
        )
    return rows


def _at_s(instant: Instant, start: Instant) -> float:
    return _rounded(to_seconds(instant - start))


def _rounded(seconds: float) -> float:
    """Return `seconds` rounded to milliseconds; smaller differences have no meaning."""
    return round(seconds, 3)
