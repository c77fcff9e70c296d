"""Likeness: what two equal JSON values have in common, to look one of them up among many.

Lists of users are long, and comparing each item with each takes hours where looking up takes
seconds. Objects are alike whatever the order of their members; 1 is neither 1.0 nor true.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def likeness(value: Any) -> str | bytes:
    """Equal for values that are equal."""
    return value if isinstance(value, str) else _ENCODER.encode(value)


def is_alike(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but not true, at whatever depth."""
    if value is other:
        return True
    if value != other:  # which takes 1 for true
        return False
    return likeness(value) == likeness(other) or _is_as_true(value, other)


def _is_as_true(value: Any, other: Any) -> bool:
    """Whether equal values have the same that is true or false."""
    if isinstance(value, dict):
        return all(_is_as_true(item, other[key]) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_as_true, value, other))
    return isinstance(value, bool) == isinstance(other, bool)
