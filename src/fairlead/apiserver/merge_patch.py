"""JSON merge patch (RFC 7386) without mutation: what is not named is shared with the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.api.codec import without_nulls


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with the members that `patch` names; those it names null are gone."""
    if not isinstance(patch, Mapping):
        return without_nulls(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
