"""Builds the ReportData of a simulation or a what-if from the outcomes of its runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.run_verdict import run_verdict
from fairlead.whatif.outcome.comparison.difference import Difference, Move, moves_within
from fairlead.whatif.outcome.comparison.node_pool import VIRTUAL_NODES, node_pools
from fairlead.whatif.outcome.run_outcome import (
    Evicted,
    NodeEnd,
    PdbBreach,
    PodCountSample,
    PodEnd,
    Preempted,
    RunOutcome,
    unit_of,
)
from fairlead.whatif.report.autoscaling_section import autoscaling_section
from fairlead.whatif.report.data import (
    EvictionRow,
    HistoryRows,
    MovedRow,
    NodeRow,
    PdbBreachRow,
    PendingRow,
    PodRow,
    PreemptionRow,
    ReportData,
    ResourceRow,
    Series,
    Summary,
    Timeline,
)
from fairlead.whatif.report.next_step_row import next_step_rows
from fairlead.whatif.report.outage_section import drain_rows, outage_section
from fairlead.whatif.report.queue_section import queue_section, waiting_group_rows
from fairlead.whatif.result.autoscaling_json import waits_by_workload_json
from fairlead.whatif.result.effect_json import verdict_json
from fairlead.whatif.result.result_json import lists_of_run, whatif_result
from fairlead.whatif.result.table import cell_text

_LISTS: Final = (
    "workloads", "node_pools", "budgets", "fail_on", "packing", "certainty", "start_times",
    "drain_refused",
    "undrained", "returned", "waited", "gone", "not_created", "placed", "completed",
    "updated", "removed",
    "deleted_claims", "skipped", "recurrences", "notes",
)  # fmt: skip
"""The lists of the JSON that the report takes as they are."""

DISPLACED: Final = "displaced"
_MEASURES = ("pending", "running", "down", "preempted", "evicted")


class Heading(Struct, frozen=True):
    """The title of a report, its source, the seed, and the computing time in seconds.

    `scheduler` names the configurations and plugins of the schedulers; "" if they are unknown.
    """

    title: str
    source: str
    seed: int
    wall_seconds: float
    scheduler: str = ""


def simulation_report(heading: Heading, outcome: RunOutcome) -> ReportData:
    """Return the report of a simulation."""
    return {
        **lists_of_run(outcome),  # type: ignore[typeddict-item]
        **_common(heading, outcome),
        "kind": "simulate",
        "verdict": verdict_json(run_verdict(outcome))["findings"],
        "resources": _resources(outcome, None),
        "owners": _workloads_of(_concerned(outcome)),
        "moved": [_moved(move, DISPLACED) for move in moves_within(outcome)],
        "outage": outage_section(outcome.outage, outcome.started_at),
        "autoscaling": autoscaling_section(outcome),
        "waits": waits_by_workload_json(outcome.waits) if outcome.has_long_waits else (),
    }


def _concerned(outcome: RunOutcome) -> Iterator[PodEnd]:
    """Yield the preempted, evicted and pending pods, and those on nodes that are out of service."""
    yield from (one.pod for one in (*outcome.preempted, *outcome.evicted))
    yield from outcome.pending
    history = outcome.cluster_history
    quiet = set(history.out_of_service) if history is not None else set()
    yield from (pod for node in outcome.nodes if node.name in quiet for pod in node.pods)


def whatif_report(
    heading: Heading,
    answer: WhatIfAnswer,
    conditions: Sequence[ConditionResult] = (),
    group_by: str = "",
) -> ReportData:
    """Return the report of a what-if: its verdict, and the lists that its JSON contains.

    `conditions` are the conditions of `--fail-on`. `group_by` is the label that divides nodes into
    pools, "" for the pool labels of `answer`.
    """
    result = whatif_result(answer, conditions, group_by)
    found, changed = answer.difference, answer.changed
    heading = replace(heading, scheduler=answer.scheduler_words)
    common = _common(heading, changed)
    rows = {id(end): row for end, row in zip(changed.nodes, common["nodes"], strict=True)}
    after = found.recovered_after
    return {
        **common,
        "kind": "whatif",
        "summary_before": _summary(answer.without),
        # A node without changes in both runs is one object in both outcomes, so its row is used
        # twice.
        "nodes_before": [rows.get(id(node)) or _node(node) for node in answer.without.nodes],
        "history_before": _history(answer.without),
        "owners": _owners(found, changed),
        "all_running_after_s": to_seconds(after) if after else None,
        "resources": _resources(changed, answer.without),
        "preemptions": _preemptions(changed, found.preempted),
        "evictions": _evictions(changed, found.evicted),
        "pending": _pending(changed, found.pending),
        "moved": list(_moves(found)),
        "pdb_breaches": _breaches(changed, found.pdb_breaches),
        "outage": outage_section(answer.outage, changed.started_at),
        "autoscaling": autoscaling_section(changed, answer.without),
        "node_cost": answer.node_cost,
        "verdict": result["verdict"]["findings"],
        "next_steps": next_step_rows(answer, conditions),
        "rest_after_s": result["rest"]["after_s"],
        "untouched_workloads": result["untouched_workloads"],
        "group_by": result["group_by"],
        "under_way": result["rest"]["under_way"],
        **{name: result[name] for name in _LISTS},  # type: ignore[typeddict-item]
        "errors": [
            {**one, "also_without": cell_text(one["also_without"])} for one in result["errors"]
        ],
        "refused_workloads": [
            {**one, "replacements_refused": cell_text(one["replacements_refused"])}
            for one in result["refused_workloads"]
        ],
        "drain_flags": [{**one, "pods": ", ".join(one["pods"])} for one in result["drain_flags"]],
    }


def _owners(found: Difference, changed: RunOutcome) -> dict[str, str]:
    """Return the workload of each pod in the lists of the report, by the pod's name."""
    pods = [
        *(one.pod for one in found.preempted),
        *(one.pod for one in found.evicted),
        *(one.pod for one in found.moved),
        *(one.pod for one in found.updated),
        *(one.pod for one in found.not_created),
        *(one.pod for one in changed.undrained),
        *(*found.placed, *found.completed, *found.returned, *found.pending),
        *(*found.gone, *found.removed),
    ]
    return _workloads_of(pods)


def _workloads_of(pods: Iterable[PodEnd]) -> dict[str, str]:
    return {pod.key: str(pod.workload) for pod in pods if pod.owner is not None}


def _subtitle(heading: Heading, outcome: RunOutcome) -> str:
    nodes, pods = counted(len(outcome.nodes), "node"), counted(len(outcome.pods), "pod")
    return ", ".join(filter(None, (f"{heading.source}: {nodes}", pods, heading.scheduler)))


def _common(heading: Heading, outcome: RunOutcome) -> ReportData:
    return {
        "kind": "simulate",
        "title": heading.title,
        "subtitle": _subtitle(heading, outcome),
        "seed": heading.seed,
        "started_at": format_timestamp(outcome.started_at),
        "virtual_seconds": outcome.virtual_seconds,
        "wall_seconds": heading.wall_seconds,
        "summary": _summary(outcome),
        "priorities": [
            {"priority": priority, "name": name}
            for priority, name in sorted(outcome.priority_names.items(), reverse=True)
        ],
        "timeline": _timeline(outcome),
        "drains": drain_rows(outcome),
        "nodes": [_node(node) for node in outcome.nodes],
        "history": _history(outcome),
        "queues": queue_section(outcome),
        "waiting_groups": waiting_group_rows(outcome.jobs, outcome.started_at),
        "preemptions": _preemptions(outcome, outcome.preempted),
        "evictions": _evictions(outcome, outcome.evicted),
        "pending": _pending(outcome, outcome.pending),
        "pdb_breaches": _breaches(outcome, outcome.pdb_breaches),
    }


def _preemptions(outcome: RunOutcome, rows: Iterable[Preempted]) -> list[PreemptionRow]:
    return [
        {
            "t_s": _t_s(outcome, one.at),
            "victim": one.pod.key,
            "victim_priority": one.pod.priority,
            "node": one.node,
            "to": _at_end(outcome, one.pod.key),
            "by": one.by,
            "by_priority": one.by_priority,
            "rule": one.rule,
            "candidates": one.candidates,
        }
        for one in rows
    ]


def _evictions(outcome: RunOutcome, rows: Iterable[Evicted]) -> list[EvictionRow]:
    return [
        {
            "t_s": _t_s(outcome, one.at),
            "pod": one.pod.key,
            "node": one.node,
            "to": _at_end(outcome, one.pod.key),
            "why": one.reason,
        }
        for one in rows
    ]


def _at_end(outcome: RunOutcome, key: str) -> str:
    """Return the node that the pod `key` has at the end, or a word such as "pending"."""
    pod = outcome.pods.get(key)
    if pod is None:
        return "gone"
    if pod.is_pending:
        return "pending"
    if pod.is_terminating:
        return "terminating"
    return "completed" if pod.is_completed else pod.node


def _pending(outcome: RunOutcome, rows: Iterable[PodEnd]) -> list[PendingRow]:
    return [
        {
            "pod": pod.key,
            "priority": pod.priority,
            "since_s": _t_s(outcome, pod.since),
            "reason": pod.reason,
        }
        for pod in rows
    ]


def _breaches(outcome: RunOutcome, rows: Iterable[PdbBreach]) -> list[PdbBreachRow]:
    return [
        {"pdb": one.pdb, "t_s": _t_s(outcome, one.at), "pod": one.pod, "by": one.by} for one in rows
    ]


def _t_s(outcome: RunOutcome, instant: Instant) -> float:
    return round(to_seconds(outcome.after_start(instant)), 3)


def _summary(outcome: RunOutcome) -> Summary:
    return {
        "nodes": len(outcome.nodes),
        "pods": len(outcome.pods),
        "placed": len(outcome.placed),
        "pending": len(outcome.pending),
        "preempted": len(outcome.preempted),
        "evicted": len(outcome.evicted),
        "completed": len(outcome.completed),
        "choices_among_equals": outcome.choices_among_equals,
    }


def _resources(outcome: RunOutcome, without: RunOutcome | None) -> list[ResourceRow]:
    rows: list[ResourceRow] = []
    for pool in node_pools(without or outcome, outcome, ()):  # one pool with all other nodes
        if pool.name == VIRTUAL_NODES:
            continue
        for name in (one.resource for one in outcome.allocations):
            row: ResourceRow = {
                "name": name,
                "unit": unit_of(name),
                "allocatable": pool.allocatable.get(name, 0),
                "requested": pool.requested.get(name, 0),
            }
            if without:
                row["before"] = pool.requested_without.get(name, 0)
                row["allocatable_before"] = pool.allocatable_without.get(name, 0)
            rows.append(row)
    return rows


def _moves(found: Difference) -> Iterator[MovedRow]:
    elsewhere = {pod.key for pod in found.elsewhere}
    for move in found.moved:
        yield _moved(move, move.how if move.pod.key in elsewhere else DISPLACED)


def _moved(move: Move, how: str) -> MovedRow:
    return {"pod": move.pod.key, "from": move.origin, "to": move.target, "how": how}


def _node(node: NodeEnd) -> NodeRow:
    return {
        "name": node.name,
        "zone": node.zone,
        "labels": node.labels,
        "unschedulable": node.unschedulable,
        "allocatable": node.allocatable,
        "requested": node.requested,
        "pods": [_pod(pod) for pod in node.pods],
    }


def _pod(pod: PodEnd) -> PodRow:
    return pod.key, pod.priority, pod.requests


def _history(outcome: RunOutcome) -> HistoryRows | None:
    history = outcome.cluster_history
    if history is None:
        return None
    return {
        "placements": [
            {
                "t_s": _t_s(outcome, one.at),
                "node": one.node,
                "pod": _pod(one.pod),
                "arrives": one.is_arrival,
            }
            for one in history.placements
        ],
        "statuses": [
            {
                "t_s": _t_s(outcome, one.at),
                "node": one.node,
                "exists": one.exists,
                "serving": one.is_serving,
                "unschedulable": one.unschedulable,
            }
            for one in history.statuses
        ],
        "deleted": [_node(node) for node in history.deleted],
        "out_of_service": history.out_of_service,
    }


def _timeline(outcome: RunOutcome) -> Timeline:
    """Return the numbers of pods of each priority, at each instant at which a number changed."""
    current: dict[int, PodCountSample] = {}
    by_instant: dict[Instant, dict[int, PodCountSample]] = defaultdict(dict)
    priorities = sorted({sample.priority for sample in outcome.samples}, reverse=True)
    for sample in outcome.samples:
        by_instant[sample.at][sample.priority] = sample
    series: dict[int, Series] = {
        priority: {"priority": priority, **{measure: [] for measure in _MEASURES}}  # type: ignore[typeddict-item]
        for priority in priorities
    }
    for instant in sorted(by_instant):
        current |= by_instant[instant]
        for priority in priorities:
            for measure in _MEASURES:
                value = getattr(current.get(priority), measure, 0)
                series[priority][measure].append(value)  # type: ignore[literal-required]
    return {
        "t_s": [_t_s(outcome, instant) for instant in sorted(by_instant)],
        "series": list(series.values()),
    }
