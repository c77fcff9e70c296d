"""JSON merge patch (RFC 7386) without mutation: untouched members are shared with the original.

If the target is not an object, the patch replaces it, without null members. If the patch is not an
object, it replaces the target unchanged.

upstream: gopkg.in/evanphx/json-patch.v4/merge.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with the members of `patch`; a null member removes the target's."""
    if not isinstance(target, Mapping):
        return _without_nulls(patch)
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = ((key, item) for key, item in value.items() if item is not None)
        return {key: _without_nulls(item) for key, item in kept}
    if isinstance(value, list):
        return list(map(_without_nulls, value))
    return value
