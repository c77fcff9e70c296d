"""JSON merge patch (RFC 7386) without mutation: what is not named is shared with the original.

What was no object is replaced by what a patch has there, without the members that are null; an
object that a list or a single value replaces, by that as it stands.

upstream: gopkg.in/evanphx/json-patch.v4/merge.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with the members that `patch` names; those it names null are gone."""
    if not isinstance(target, Mapping):
        return _without_null_members(patch)
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _without_null_members(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = ((key, item) for key, item in value.items() if item is not None)
        return {key: _without_null_members(item) for key, item in kept}
    if isinstance(value, list):
        return list(map(_without_null_members, value))
    return value
