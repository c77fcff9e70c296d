"""What an autoscaler did in a run, in sentences: nodes added and removed, and their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.karpenter.history import KarpenterHistory, KarpenterNodeChange

HOURS_PER_MONTH: Final = 730
_SHOWN_PODS: Final = 5


def karpenter_notes(history: KarpenterHistory) -> Iterator[str]:
    """Return sentences: one per kind of change, one about cost, and why pods trigger no change."""
    if not history.changes:
        yield "Karpenter neither added nor removed a node."
    for added in (True, False):
        changes = [one for one in history.changes if one.added is added]
        if changes:
            word = "added" if added else "removed"
            yield f"Karpenter {word} {_nodes(len(changes))}: {_kinds(changes)}."
    cost = sum(one.price if one.added else -one.price for one in history.changes)
    if history.changes:
        word = "more" if cost >= 0 else "less"
        hour, month = abs(cost), abs(cost) * HOURS_PER_MONTH
        yield f"With them the nodes cost {hour:.4f} {word} per hour, {month:.2f} per month."
    for number, key in enumerate(sorted(history.errors)):
        if number == _SHOWN_PODS:
            yield f"Karpenter creates no node for {len(history.errors) - number} more pods."
            return
        yield f"Karpenter creates no node for pod {key}: {history.errors[key]}"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _kinds(changes: Iterable[KarpenterNodeChange]) -> str:
    counts = Counter(
        (one.pool, one.instance_type, one.capacity_type, one.zone, one.reason) for one in changes
    )
    return "; ".join(
        f"{count} × {kind} {capacity} in {zone or 'no zone'} for {pool} ({reason})"
        for (pool, kind, capacity, zone, reason), count in sorted(counts.items())
    )
