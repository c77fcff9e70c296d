"""Updates status.conditions, a list with at most one condition of each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json

_REPLACED_FIELDS: Final = ("reason", "message", "observedGeneration")


def with_conditions(
    conditions: Iterable[Json], changes: Iterable[Mapping[str, Any]], timestamp: str
) -> list[Json]:
    """Return `conditions` with `changes` merged in by type.

    Each change is a condition with at least its type and status. The non-empty fields of the change
    replace the same fields of the existing condition. The fields reason, message and
    observedGeneration are removed if they are absent or empty in the change. All other fields are
    kept. lastTransitionTime becomes `timestamp` if the status changes or the condition is new.
    """
    # upstream: pkg/api/v1/pod/util.go:UpdatePodCondition
    merged = list(conditions)
    for change in changes:
        place = _place(merged, change["type"])
        before = merged[place] if place < len(merged) else {}
        after = dict(before)
        for key in _REPLACED_FIELDS:
            after.pop(key, None)
        after |= {key: value for key, value in change.items() if value}
        if before.get("status") != change["status"]:
            after["lastTransitionTime"] = timestamp
        merged[place : place + 1] = [after]
    return merged


def _place(conditions: list[Json], condition_type: str) -> int:
    """Return the index of the condition of type `condition_type`, or else the list's length."""
    for place, condition in enumerate(conditions):
        if condition.get("type") == condition_type:
            return place
    return len(conditions)
