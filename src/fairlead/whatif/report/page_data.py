"""Turns ReportData into the compact JSON value that the page embeds: rows become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.api.json import Json
from fairlead.whatif.report.autoscaling_section import AutoscalingSection
from fairlead.whatif.report.columns import figures, finite, table
from fairlead.whatif.report.data import ReportData
from fairlead.whatif.report.outage_section import OutageSection
from fairlead.whatif.report.packed_nodes import NodeSide, packed_nodes
from fairlead.whatif.report.queue_section import QueueSection
from fairlead.whatif.report.sampling import SAMPLES_MAX, sampled, slices

SCALARS = (
    "kind", "title", "subtitle", "started_at", "virtual_seconds", "wall_seconds",
    "all_running_after_s", "rest_after_s", "untouched_workloads", "group_by", "replaced",
    "node_cost",
)  # fmt: skip

WAIT_FIELDS = (
    "workload", "bound", "median_s", "p95_s", "longest_s", "longest_pod", "still_waiting",
)  # fmt: skip
TABLES = {
    "preemptions": (
        "t_s", "victim", "victim_priority", "node", "to", "by", "by_priority", "rule", "candidates",
    ),
    "evictions": ("t_s", "pod", "node", "to", "why"),
    "pending": ("pod", "priority", "since_s", "reason"),
    "moved": ("pod", "from", "to", "how"),
    "returned": ("pod", "node"),
    "pdb_breaches": ("t_s", "pdb", "pod", "by"),
    "waiting_groups": ("group", "queue", "ready", "why", "starts_s"),
    "drains": ("node", "begun_s", "empty_s", "back_s", "held_up_by"),
    "workloads": (
        "workload", "wanted", "lowest", "lowest_for", "ready_before", "at_end", "budget_what",
        "what", "harmed",
    ),
    "budgets": ("pdb", "rule", "allowed", "lowest_healthy", "needed", "what", "state"),
    "packing": ("measure", "today", "without", "changed"),
    "certainty": (
        "subject", "what", "seeds", "total", "least", "median", "p90", "most", "certain",
    ),
    "start_times": ("subject", "kind", "pods", "p10_s", "p50_s", "p90_s", "started"),
    "drain_refused": ("node", "message"),
    "drain_flags": ("flag", "needed_for", "pods"),
    "undrained": ("pod", "node", "why"),
    "waited": ("pod", "node", "waited_s", "reason"),
    "waits": WAIT_FIELDS,
    "gone": ("pod", "node"),
    "not_created": ("pod", "node", "waits_for"),
    "placed": ("pod", "node"),
    "completed": ("pod", "node", "phase", "at_s"),
    "updated": ("pod", "node", "instead_of"),
    "removed": ("pod", "node"),
    "deleted_claims": ("claim", "volume", "reclaim_policy", "at_s"),
    "refused_workloads": ("workload", "replacements_refused", "message"),
    "skipped": ("event", "at_s", "why"),
    "errors": ("object", "missing", "message", "also_without"),
    "recurrences": ("kind", "message", "at_s"),
    "under_way": ("workload", "what"),
}  # fmt: skip


def packed(data: ReportData) -> Json:
    """Return `data` with rows as columns, reduced to the parts that the page shows."""
    source: Mapping[str, Any] = data
    page: Json = {name: finite(source.get(name)) for name in SCALARS}
    # As text, because JavaScript represents numbers exactly only up to 2^53.
    page["seed"] = str(source["seed"]) if source.get("seed") is not None else None
    page["summary"] = figures(source.get("summary"))
    page["summary_before"] = figures(source.get("summary_before")) or None
    page["resources"] = [figures(row) for row in source.get("resources", ())]
    page["priorities"] = [figures(row) for row in source.get("priorities", ())]
    page["timeline"] = sampled(source.get("timeline") or {})
    page["nodes"] = packed_nodes(
        NodeSide(source.get("nodes", ()), source.get("history")),
        NodeSide(source["nodes_before"], source.get("history_before"))
        if "nodes_before" in source
        else None,
    )
    page["owners"] = dict(source.get("owners", {}))
    for name, fields in TABLES.items():
        page[name] = table(source.get(name, ()), fields)
    for name in ("verdict", "fail_on", "node_pools", "notes", "next_steps", "without_pods"):
        page[name] = list(source.get(name, ()))
    page["outage"] = packed_outage(source.get("outage"))
    page["autoscaling"] = packed_autoscaling(source.get("autoscaling"))
    page["queues"] = packed_queues(source.get("queues"))
    return page


RATES_MAX = 6  # number of zones; more lines would be hard to tell apart

OUTAGE_TABLES = {
    "nodes": (
        "node", "zone", "failures", "quiet_s", "unready_s", "tainted_s", "first_eviction_s",
        "back_s", "pods", "evicted",
    ),
    "lost": ("pod", "priority", "node", "cause", "why"),
    "preempted": ("t_s", "victim", "victim_priority", "node", "by"),
    "zones": ("t_s", "zone", "state", "unready", "size", "rate"),
}  # fmt: skip


def packed_outage(outage: OutageSection | None) -> Json | None:
    """Return `outage` as columns; None if `outage` is None."""
    if outage is None:
        return None
    source: Mapping[str, Any] = outage
    return {
        "figures": figures(outage["figures"]),
        "nodes_over_time": sampled_counts(source.get("nodes_over_time")),
        "pods_over_time": sampled_counts(source.get("pods_over_time")),
        "rates": [_zone_rate(one) for one in source.get("rates", ())[:RATES_MAX]],
        "misconceptions": [dict(one) for one in source.get("misconceptions", ())],
        **{name: table(source.get(name, ()), fields) for name, fields in OUTAGE_TABLES.items()},
    }


def sampled_counts(timeline: Mapping[str, Any] | None) -> Json:
    """Return a time line with only the samples that a screen can show, including peaks."""
    t_s: Sequence[float] = list((timeline or {}).get("t_s", ()))
    counts = {name: list(values) for name, values in (timeline or {}).get("counts", {}).items()}
    kept = _kept_indices(t_s, list(counts.values()))
    return {
        "t_s": [finite(float(t_s[at])) for at in kept],
        "counts": {name: [values[at] for at in kept] for name, values in counts.items()},
    }


def _kept_indices(t_s: Sequence[float], columns: Sequence[Sequence[int]]) -> list[int]:
    if len(t_s) <= SAMPLES_MAX:
        return list(range(len(t_s)))
    kept = set[int]()
    for first, last in slices(t_s):
        inside = range(first, last + 1)
        kept.update((first, last))
        for values in columns:
            kept.update((max(inside, key=values.__getitem__), min(inside, key=values.__getitem__)))
    return sorted(kept)


def _zone_rate(one: Mapping[str, Any]) -> Json:
    return {
        "zone": one["zone"],
        "t_s": [finite(float(value)) for value in one["t_s"]],
        "tainted": list(one["tainted"]),
        "allowed": [finite(float(value)) for value in one["allowed"]],
    }


AUTOSCALING_TABLES = {
    "groups": (
        "group", "instance_type", "min", "max", "nodes_before", "nodes_after", "added", "removed",
        "node_hours", "cost",
    ),
    "waiting": WAIT_FIELDS,
    "nodes": ("at_s", "event", "node", "group", "reason"),
    "no_scale_up": ("pod", "why"),
    "no_scale_down": ("node", "why"),
    "insufficient_capacity": ("group", "machines"),
}  # fmt: skip
_AUTOSCALING_LINES = ("nodes_without", "cost", "cost_without", "spent", "spent_without")


def packed_autoscaling(section: AutoscalingSection | None) -> Json | None:
    """Return `section` as columns, with only the samples that a screen can show."""
    if section is None:
        return None
    source: Mapping[str, Any] = section
    counts = {name: source[name] for name in _AUTOSCALING_LINES if source.get(name) is not None}
    for division in ("by_group", "by_type"):
        for at, line in enumerate(source.get(division, ())):
            counts[f"{division} {at}"] = line["nodes"]
    kept = sampled_counts({"t_s": source.get("t_s", ()), "counts": counts})
    return {
        "autoscaler": section["autoscaler"],
        "figures": figures(source.get("figures")),
        "figures_without": figures(source.get("figures_without")) or None,
        "t_s": kept["t_s"],
        **{name: kept["counts"].get(name) for name in _AUTOSCALING_LINES},
        **{
            division: [
                {"name": line["name"], "nodes": kept["counts"][f"{division} {at}"]}
                for at, line in enumerate(source.get(division, ()))
            ]
            for division in ("by_group", "by_type")
        },
        **{
            name: table(source.get(name, ()), fields) for name, fields in AUTOSCALING_TABLES.items()
        },
    }


QUEUES_MAX = 7  # the number of colours in the chart's palette


def packed_queues(queues: QueueSection | None) -> Json | None:
    """Return `queues` with only the samples that a screen can show; None if `queues` is None."""
    if queues is None:
        return None
    lines = queues["lines"][:QUEUES_MAX]
    counts = {f"held {n}": line["held"] for n, line in enumerate(lines)}
    counts |= {f"deserved {n}": line["deserved"] for n, line in enumerate(lines)}
    kept = sampled_counts({"t_s": queues["t_s"], "counts": counts})
    return {
        "resource": queues["resource"],
        "left_out": len(queues["lines"]) - len(lines),
        "t_s": kept["t_s"],
        "lines": [
            {
                "queue": line["queue"],
                "weight": line["weight"],
                "held": kept["counts"][f"held {n}"],
                "deserved": kept["counts"][f"deserved {n}"],
            }
            for n, line in enumerate(lines)
        ],
        "gangs": figures(queues.get("gangs")),
    }
