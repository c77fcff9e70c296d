"""JSON merge patch (RFC 7386) without mutation: unchanged members are shared with the original.

upstream: gopkg.in/evanphx/json-patch.v4/merge.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SCALARS: Final = frozenset((str, int, bool, float))


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with the members of `patch`; a null in `patch` removes the member."""
    if not _is_object(target):
        return _without_nulls(patch)
    if not _is_object(patch):
        return patch
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif value.__class__ in _SCALARS:
            merged[key] = value
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _without_nulls(value: Any) -> Any:
    if value.__class__ in _SCALARS:
        return value
    if _is_object(value):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return list(map(_without_nulls, value))
    return value


def _is_object(value: Any) -> bool:
    # `isinstance` takes ten times as long with an abstract class, and nearly all objects are dicts.
    return type(value) is dict or isinstance(value, Mapping)
