"""Turns ReportData into the compact JSON value that the page embeds: rows become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.api.json import Json
from fairlead.whatif.report.autoscaling_section import AutoscalingSection
from fairlead.whatif.report.columns import column, figures, finite, table
from fairlead.whatif.report.data import NodeRow, ReportData
from fairlead.whatif.report.outage_section import OutageSection
from fairlead.whatif.report.queue_section import QueueSection
from fairlead.whatif.report.sampling import UNTHINNED_MAX, sampled, slices

SCALARS = (
    "kind", "title", "subtitle", "started_at", "virtual_seconds", "wall_seconds",
    "all_running_after_s", "rest_after_s", "untouched_workloads", "group_by",
)  # fmt: skip

TABLES = {
    "preemptions": (
        "t_s", "victim", "victim_priority", "node", "by", "by_priority", "rule", "candidates",
    ),
    "evictions": ("t_s", "pod", "node", "why"),
    "pending": ("pod", "priority", "since_s", "reason"),
    "moved": ("pod", "from", "to"),
    "pdb_breaches": ("t_s", "pdb", "pod", "by"),
    "waiting_groups": ("group", "queue", "ready", "why", "starts_s"),
    "drains": ("node", "begun_s", "empty_s", "back_s", "held_up_by"),
    "workloads": (
        "workload", "wanted", "lowest", "lowest_for", "ready_before", "at_end", "budget", "what",
        "harmed",
    ),
    "budgets": ("pdb", "rule", "allowed", "lowest_healthy", "needed", "what", "state"),
    "certainty": (
        "subject", "what", "seeds", "total", "least", "median", "p90", "most", "certain",
    ),
    "drain_refused": ("node", "message"),
    "drain_flags": ("flag", "needed_for", "pods"),
    "undrained": ("pod", "node", "why"),
    "gone": ("pod", "node"),
    "not_created": ("pod", "node", "waits_for"),
    "placed": ("pod", "node"),
    "updated": ("pod", "node", "instead_of"),
    "removed": ("pod", "node"),
    "skipped": ("event", "at_s", "why"),
    "complaints": ("object", "missing", "message"),
    "recurrences": ("kind", "message", "at_s"),
    "under_way": ("workload", "what"),
}  # fmt: skip


def packed(data: ReportData) -> Json:
    """Return `data` with rows as columns, reduced to what the page shows."""
    source: Mapping[str, Any] = data
    page: Json = {name: finite(source.get(name)) for name in SCALARS}
    # As text, because JavaScript numbers are exact only up to 2^53.
    page["seed"] = str(source["seed"]) if source.get("seed") is not None else None
    page["summary"] = figures(source.get("summary"))
    page["summary_before"] = figures(source.get("summary_before")) or None
    page["resources"] = [figures(row) for row in source.get("resources", ())]
    page["priorities"] = [figures(row) for row in source.get("priorities", ())]
    page["timeline"] = sampled(source.get("timeline") or {})
    page["nodes"] = packed_nodes(source.get("nodes", ()), source.get("nodes_before"))
    page["owners"] = dict(source.get("owners", {}))
    for name, fields in TABLES.items():
        page[name] = table(source.get(name, ()), fields)
    for name in ("verdict", "fail_on", "node_pools", "notes"):
        page[name] = list(source.get(name, ()))
    page["outage"] = packed_outage(source.get("outage"))
    page["autoscaling"] = packed_autoscaling(source.get("autoscaling"))
    page["queues"] = packed_queues(source.get("queues"))
    return page


GROUPS_MAX = 40  # values of a label by which nodes can be grouped


def packed_nodes(after: Sequence[NodeRow], before: Sequence[NodeRow] | None = None) -> Json:
    """Return nodes as columns; the pods of all nodes as further columns, with a count per node.

    `before` are the nodes without the change, if there was one. Nodes that only they contain come
    last; `added` and `deleted` are the positions of nodes that are only on one side.
    """
    names, names_before = ({node["name"] for node in side} for side in (after, before or ()))
    deleted = [node.copy() for node in before or () if node["name"] not in names]
    for node in deleted:
        node["requested"] = {}
    nodes = [*after, *deleted]
    added = [] if before is None else [node["name"] not in names_before for node in after]
    return {
        "length": len(nodes),
        "name": column(node["name"] for node in nodes),
        "zone": column(node.get("zone", "") for node in nodes),
        "labels": _groups(nodes),
        **_state(nodes),
        "pods": packed_pods(nodes),
        "added": [at for at, is_new in enumerate(added) if is_new],
        "deleted": list(range(len(after), len(nodes))),
        "before": None if before is None else _state(_aligned(nodes, before)),
    }


def _state(nodes: Sequence[NodeRow]) -> Json:
    return {
        "unschedulable": [at for at, node in enumerate(nodes) if node.get("unschedulable")],
        "allocatable": by_resource([node.get("allocatable", {}) for node in nodes]),
        "requested": by_resource([node.get("requested", {}) for node in nodes]),
    }


def _aligned(nodes: Sequence[NodeRow], before: Sequence[NodeRow]) -> list[NodeRow]:
    """Return the rows of `before` in the order of `nodes`; empty rows for new nodes."""
    by_name = {node["name"]: node for node in before}
    return [by_name.get(node["name"], {"name": node["name"]}) for node in nodes]


def _groups(nodes: Sequence[NodeRow]) -> Json:
    """Return one column for each label by which the nodes can be grouped."""
    keys = dict.fromkeys(key for node in nodes for key in node.get("labels", {}))
    columns = {key: [node.get("labels", {}).get(key, "") for node in nodes] for key in sorted(keys)}
    return {
        key: column(values)
        for key, values in columns.items()
        if 1 < len(set(values)) <= min(GROUPS_MAX, len(nodes) - 1)
    }


def by_resource(amounts: Sequence[Mapping[str, int]]) -> Json:
    """Return one column per resource that any of `amounts` names."""
    names = dict.fromkeys(name for amount in amounts for name in amount)
    return {name: column(amount.get(name) for amount in amounts) for name in names}


def packed_pods(nodes: Sequence[NodeRow]) -> Json:
    """Return the pods of all nodes in node order; equal requests are stored once, as a shape."""
    pods = [pod for node in nodes for pod in node.get("pods", ())]
    requests = [tuple(sorted(figures(pod[2]).items())) for pod in pods]
    shapes = {shape: at for at, shape in enumerate(dict.fromkeys(requests))}
    return {
        "count": column(len(node.get("pods", ())) for node in nodes),
        "name": column(pod[0] for pod in pods),
        "priority": column(pod[1] for pod in pods),
        "shape": [shapes[shape] for shape in requests],
        "shapes": [dict(shape) for shape in shapes],
    }


RATES_MAX = 6  # zones; more lines would be hard to tell apart

OUTAGE_TABLES = {
    "nodes": (
        "node", "zone", "quiet_s", "unready_s", "tainted_s", "first_eviction_s", "back_s", "pods",
        "evicted",
    ),
    "lost": ("pod", "priority", "node", "cause", "why"),
    "preempted": ("t_s", "victim", "victim_priority", "node", "by"),
    "zones": ("t_s", "zone", "state", "unready", "size", "rate"),
}  # fmt: skip


def packed_outage(outage: OutageSection | None) -> Json | None:
    """Return `outage` as columns; None stays None."""
    if outage is None:
        return None
    source: Mapping[str, Any] = outage
    return {
        "figures": figures(outage["figures"]),
        "nodes_over_time": thinned_counts(source.get("nodes_over_time")),
        "pods_over_time": thinned_counts(source.get("pods_over_time")),
        "rates": [_zone_rate(one) for one in source.get("rates", ())[:RATES_MAX]],
        "beliefs": [dict(one) for one in source.get("beliefs", ())],
        **{name: table(source.get(name, ()), fields) for name, fields in OUTAGE_TABLES.items()},
    }


def thinned_counts(timeline: Mapping[str, Any] | None) -> Json:
    """Return a time line reduced to what a screen can show, peaks included."""
    t_s: Sequence[float] = list((timeline or {}).get("t_s", ()))
    counts = {name: list(values) for name, values in (timeline or {}).get("counts", {}).items()}
    kept = _kept_indices(t_s, list(counts.values()))
    return {
        "t_s": [finite(float(t_s[at])) for at in kept],
        "counts": {name: [values[at] for at in kept] for name, values in counts.items()},
    }


def _kept_indices(t_s: Sequence[float], columns: Sequence[Sequence[int]]) -> list[int]:
    if len(t_s) <= UNTHINNED_MAX:
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
    "waiting": (
        "workload", "bound", "median_s", "p95_s", "longest_s", "longest_pod", "still_waiting",
    ),
    "nodes": ("at_s", "event", "node", "group", "reason"),
    "no_scale_up": ("pod", "why"),
    "no_scale_down": ("node", "why"),
}  # fmt: skip
_AUTOSCALING_LINES = ("nodes_without", "cost", "cost_without", "spent", "spent_without")


def packed_autoscaling(section: AutoscalingSection | None) -> Json | None:
    """Return `section` as columns, reduced to what a screen can show; None stays None."""
    if section is None:
        return None
    source: Mapping[str, Any] = section
    counts = {name: source[name] for name in _AUTOSCALING_LINES if source.get(name) is not None}
    for division in ("by_group", "by_type"):
        for at, line in enumerate(source.get(division, ())):
            counts[f"{division} {at}"] = line["nodes"]
    kept = thinned_counts({"t_s": source.get("t_s", ()), "counts": counts})
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
    """`queues` reduced to what a screen can show; None stays None."""
    if queues is None:
        return None
    lines = queues["lines"][:QUEUES_MAX]
    counts = {f"held {n}": line["held"] for n, line in enumerate(lines)}
    counts |= {f"deserved {n}": line["deserved"] for n, line in enumerate(lines)}
    kept = thinned_counts({"t_s": queues["t_s"], "counts": counts})
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
