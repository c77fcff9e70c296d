"""Dominant shares: the largest fraction of any resource that a job or queue holds."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.batch.nodes.room import Room
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.state.node_table import NodeTable

Total = tuple[tuple[int, int], ...]


def share(held: float, whole: float) -> float:
    """`held` ÷ `whole`; 1 if only `whole` is 0, 0 if both are (helpers.go: Share)."""
    if whole:
        return held / whole
    return 1.0 if held else 0.0


def dominant_share(held: Sequence[int], total: Total) -> float:
    """The largest fraction of `total` (by column) that is held; missing columns hold nothing."""
    known = len(held)
    return max((share(held[c] if c < known else 0, whole) for c, whole in total), default=0.0)


def cluster_total(room: Room, rules: BatchRules) -> Total:
    """The total that the session's nodes offer, by counted column, including zeros."""
    table = room.table
    counted = table.alive & ~room.is_left_out
    sums = table.allocatable[:, counted].sum(axis=1).tolist()
    names = table.resources.names
    return tuple(
        (column, whole)
        for column, whole in enumerate(sums)
        if names[column] not in rules.uncounted and (whole or _is_offered(table, names[column]))
    )


def _is_offered(table: NodeTable, name: str) -> bool:
    if name in ("cpu", "memory"):
        return True
    return any(name in node.node.status.allocatable for node in table.nodes())
