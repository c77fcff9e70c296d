"""Turns what a report says about an outage into the compact value that the page embeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.api.json import Json
from fairlead.whatif.report.outage_data import Outage
from fairlead.whatif.report.sampling import UNTHINNED_MAX, slices
from fairlead.whatif.report.table_pack import figures, finite, table

RATES_MAX = 6  # zones; more lines than that cannot be told apart

TABLES = {
    "nodes": (
        "node", "zone", "quiet_s", "unready_s", "tainted_s", "first_eviction_s", "back_s", "pods",
        "evicted",
    ),
    "lost": ("pod", "priority", "node", "cause", "why"),
    "preempted": ("t_s", "victim", "victim_priority", "node", "by"),
    "zones": ("t_s", "zone", "state", "unready", "size", "rate"),
}  # fmt: skip


def packed_outage(outage: Outage | None) -> Json | None:
    """`outage` as columns; None stays None."""
    if outage is None:
        return None
    source: Mapping[str, Any] = outage
    return {
        "figures": figures(outage["figures"]),
        "nodes_over_time": thinned(source.get("nodes_over_time")),
        "pods_over_time": thinned(source.get("pods_over_time")),
        "rates": [_rate(one) for one in source.get("rates", ())[:RATES_MAX]],
        "beliefs": [dict(one) for one in source.get("beliefs", ())],
        **{name: table(source.get(name, ()), fields) for name, fields in TABLES.items()},
    }


def thinned(timeline: Mapping[str, Any] | None) -> Json:
    """A time line with no more samples than a screen can show, without losing a peak."""
    t_s: Sequence[float] = list((timeline or {}).get("t_s", ()))
    counts = {name: list(values) for name, values in (timeline or {}).get("counts", {}).items()}
    kept = _kept(t_s, list(counts.values()))
    return {
        "t_s": [finite(float(t_s[at])) for at in kept],
        "counts": {name: [values[at] for at in kept] for name, values in counts.items()},
    }


def _kept(t_s: Sequence[float], columns: Sequence[Sequence[int]]) -> list[int]:
    if len(t_s) <= UNTHINNED_MAX:
        return list(range(len(t_s)))
    kept = set[int]()
    for first, last in slices(t_s):
        inside = range(first, last + 1)
        kept.update((first, last))
        for values in columns:
            kept.update((max(inside, key=values.__getitem__), min(inside, key=values.__getitem__)))
    return sorted(kept)


def _rate(one: Mapping[str, Any]) -> Json:
    return {
        "zone": one["zone"],
        "t_s": [finite(float(value)) for value in one["t_s"]],
        "tainted": list(one["tainted"]),
        "allowed": [finite(float(value)) for value in one["allowed"]],
    }
