"""Turns report data into the compact JSON value that the page embeds.

Rows become columns, and a column of few distinct values becomes {"of": values, "at": indices}:
eight thousand pods repeat a few dozen shapes, nodes and reasons. `static/data.js` undoes it.
Numbers that JSON cannot carry (NaN, infinity) become null, which the page shows as a dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.whatif.report.data import Node, ReportData
from fairlead.whatif.report.sampling import sampled

Json = dict[str, Any]

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
}  # fmt: skip

INTERNED_MIN = 8  # below this many values an index costs more than it saves


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
    return page


def finite(value: Any) -> Any:
    """`value`, to the millisecond where it is a float, or None where JSON has no such number."""
    if not isinstance(value, float):
        return value
    return round(value, 3) if math.isfinite(value) else None


def figures(row: Mapping[str, Any] | None) -> Json:
    """`row` with only numbers that JSON can carry."""
    return {name: finite(value) for name, value in (row or {}).items()}


def column(values: Iterable[Any]) -> Any:
    """`values` as a list, or interned where at most half of them are distinct."""
    listed = [finite(value) for value in values]
    index = {value: at for at, value in enumerate(dict.fromkeys(listed))}
    if len(listed) < INTERNED_MIN or len(index) * 2 > len(listed):
        return listed
    return {"of": list(index), "at": [index[value] for value in listed]}


def table(rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> Json:
    """`rows` as one column per field; what a row lacks is None."""
    columns = {field: column(row.get(field) for row in rows) for field in fields}
    return {"length": len(rows), "columns": columns}


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
