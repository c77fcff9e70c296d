"""Finds taints that a pod does not tolerate. PreferNoSchedule counts like the other effects.

upstream: pkg/scheduling/taints.go
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.nodes.taint import taint_text, tolerates
from fairlead.api.objects import Taint, Toleration
from fairlead.api.text.integer import parse_int64


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> str | None:
    """Return upstream's text about the untolerated taints; None if all taints are tolerated."""
    found = [one for one in taints if not any(_matches(t, one) for t in tolerations)]
    if not found:
        return None
    return "; ".join(f"did not tolerate taint (taint={taint_text(one)})" for one in found)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    """Return whether the toleration, which may have the operator Gt or Lt, tolerates the taint."""
    if toleration.operator not in ("Gt", "Lt"):
        return tolerates(toleration, taint)
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    bound, value = parse_int64(toleration.value), parse_int64(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if toleration.operator == "Gt" else value < bound
