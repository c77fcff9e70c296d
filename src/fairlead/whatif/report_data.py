"""What the HTML report shows of a run, as the plain dictionaries it is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.answer import Answer
from fairlead.whatif.difference import Difference, Move, moved_on_the_way
from fairlead.whatif.jobs_report import queue_data, waiting_group_rows
from fairlead.whatif.outage_report import drains_report, outage_report
from fairlead.whatif.outage_result import outage_of_answer
from fairlead.whatif.outcome import Outcome, Sample
from fairlead.whatif.report import ReportData
from fairlead.whatif.report.data import Moved, Node, Resource, Series, Summary, Timeline

_MILLI = frozenset({"cpu"})
_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_MEASURES = ("pending", "running", "preempted", "evicted")


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above a report."""

    title: str
    source: str
    seed: int
    wall_seconds: float


def simulation_report(heading: Heading, outcome: Outcome) -> ReportData:
    """The report of a simulation."""
    return {
        **_common(heading, outcome),
        "kind": "simulate",
        "resources": _resources(outcome, None),
        "moved": _moved(moved_on_the_way(outcome)),
        "outage": outage_report(outcome.outage, outcome.started_at),
    }


def whatif_report(heading: Heading, answer: Answer) -> ReportData:
    """The report of a what-if: the run with the change, beside figures of the one without."""
    return {
        **_common(heading, answer.changed),
        "kind": "whatif",
        "summary_before": _summary(answer.without),
        "all_running_after_s": _recovered_after_s(answer.difference),
        "resources": _resources(answer.changed, answer.without),
        "moved": _moved(answer.difference.moved),
        "outage": outage_report(outage_of_answer(answer), answer.changed.started_at),
    }


def _recovered_after_s(difference: Difference) -> float | None:
    """None where nothing had to recover, as where something did not."""
    after = difference.recovered_after
    return to_seconds(after) if after else None


def _common(heading: Heading, outcome: Outcome) -> ReportData:
    return {
        "kind": "simulate",
        "title": heading.title,
        "subtitle": f"{heading.source}: {len(outcome.nodes):,} nodes, {len(outcome.pods):,} pods",
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
        "drains": drains_report(outcome),
        "nodes": [_node(outcome, number) for number in range(len(outcome.nodes))],
        "queues": queue_data(outcome),
        "waiting_groups": waiting_group_rows(outcome.jobs, outcome.started_at),
        "preemptions": [
            {
                "t_s": _t_s(outcome, one.at),
                "victim": one.pod.key,
                "victim_priority": one.pod.priority,
                "node": one.node,
                "by": one.by,
                "by_priority": one.by_priority,
                "rule": one.rule,
                "candidates": one.candidates,
            }
            for one in outcome.preempted
        ],
        "evictions": [
            {"t_s": _t_s(outcome, one.at), "pod": one.pod.key, "node": one.node, "why": one.reason}
            for one in outcome.evicted
        ],
        "pending": [
            {
                "pod": pod.key,
                "priority": pod.priority,
                "since_s": _t_s(outcome, pod.since),
                "reason": pod.reason,
            }
            for pod in outcome.pending()
        ],
        "pdb_breaches": [
            {"pdb": one.pdb, "t_s": _t_s(outcome, one.at), "pod": one.pod, "by": one.by}
            for one in outcome.pdb_breaches
        ],
    }


def _t_s(outcome: Outcome, instant: Instant) -> float:
    return round(to_seconds(outcome.after_start(instant)), 3)


def _summary(outcome: Outcome) -> Summary:
    pods = outcome.pods.values()
    return {
        "nodes": len(outcome.nodes),
        "pods": len(pods),
        "placed": sum(pod.is_placed for pod in pods),
        "pending": sum(pod.is_pending for pod in pods),
        "preempted": len(outcome.preempted),
        "evicted": len(outcome.evicted),
        "completed": sum(pod.is_completed for pod in pods),
        "choices_among_equals": outcome.choices_among_equals,
    }


def unit_of(resource: str) -> str:
    """How amounts of `resource` are counted: "milli", "bytes" or "" for units."""
    if resource in _MILLI:
        return "milli"
    return "bytes" if resource.startswith(_BYTES) else ""


def _resources(outcome: Outcome, without: Outcome | None) -> list[Resource]:
    before = {one.resource: one.requested for one in without.allocations} if without else {}
    rows: list[Resource] = []
    for one in outcome.allocations:
        row: Resource = {
            "name": one.resource,
            "unit": unit_of(one.resource),
            "allocatable": one.allocatable,
            "requested": one.requested,
        }
        if without:
            row["before"] = before.get(one.resource, 0)
        rows.append(row)
    return rows


def _moved(moved: Iterable[Move]) -> list[Moved]:
    return [{"pod": move.pod.key, "from": move.origin, "to": move.target} for move in moved]


def _node(outcome: Outcome, number: int) -> Node:
    node = outcome.nodes[number]
    return {
        "name": node.name,
        "zone": node.zone,
        "unschedulable": node.unschedulable,
        "allocatable": node.allocatable,
        "requested": node.requested,
        "pods": [(pod.key, pod.priority, pod.requests) for pod in node.pods],
    }


def _timeline(outcome: Outcome) -> Timeline:
    """One entry per instant at which some count changed, all priorities side by side."""
    current: dict[int, Sample] = {}
    by_instant: dict[Instant, dict[int, Sample]] = defaultdict(dict)
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
