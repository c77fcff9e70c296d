"""Turns report data into the compact JSON value that the page embeds: rows become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.api.json import Json
from fairlead.whatif.report.data import Node, ReportData
from fairlead.whatif.report.outage_pack import packed_outage
from fairlead.whatif.report.queue_pack import packed_queues
from fairlead.whatif.report.sampling import sampled
from fairlead.whatif.report.table_pack import column, figures, finite, table

SCALARS = (
    "kind", "title", "subtitle", "started_at", "virtual_seconds", "wall_seconds",
    "all_running_after_s",
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
}  # fmt: skip


def packed(data: ReportData) -> Json:
    """`data` as columns, without what the page does not show."""
    source: Mapping[str, Any] = data
    page: Json = {name: finite(source.get(name)) for name in SCALARS}
    # As text, because a script's numbers are exact to 2^53 only.
    page["seed"] = str(source["seed"]) if source.get("seed") is not None else None
    page["summary"] = figures(source.get("summary"))
    page["summary_before"] = figures(source.get("summary_before")) or None
    page["resources"] = [figures(row) for row in source.get("resources", ())]
    page["priorities"] = [figures(row) for row in source.get("priorities", ())]
    page["timeline"] = sampled(source.get("timeline") or {})
    page["nodes"] = packed_nodes(source.get("nodes", ()))
    for name, fields in TABLES.items():
        page[name] = table(source.get(name, ()), fields)
    page["outage"] = packed_outage(source.get("outage"))
    page["queues"] = packed_queues(source.get("queues"))
    return page


def packed_nodes(nodes: Sequence[Node]) -> Json:
    """Nodes as columns; their pods as one run of columns, counted per node."""
    return {
        "length": len(nodes),
        "name": column(node["name"] for node in nodes),
        "zone": column(node.get("zone", "") for node in nodes),
        "unschedulable": [at for at, node in enumerate(nodes) if node.get("unschedulable")],
        "allocatable": by_resource([node.get("allocatable", {}) for node in nodes]),
        "requested": by_resource([node.get("requested", {}) for node in nodes]),
        "pods": packed_pods(nodes),
    }


def by_resource(amounts: Sequence[Mapping[str, int]]) -> Json:
    """One column per resource that any of `amounts` names."""
    names = dict.fromkeys(name for amount in amounts for name in amount)
    return {name: column(amount.get(name) for amount in amounts) for name in names}


def packed_pods(nodes: Sequence[Node]) -> Json:
    """The pods of all nodes in node order; equal requests are stored once, as a shape."""
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
