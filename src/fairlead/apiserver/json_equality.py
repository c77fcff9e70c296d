"""Type-strict equality of JSON values, and a hashable canonical form of these values.

The number 1 equals 1.0, but does not equal the boolean `true`. The order of an object's members
does not matter.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def canonical_key(value: Any) -> str | bytes:
    """Return a hashable key of a JSON value. Values with equal keys are equal.

    Equal numbers can have different keys: the keys of 1 and 1.0 differ.
    """
    return value if isinstance(value, str) else _ENCODER.encode(value)


def json_equal(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal.

    At any depth, the number 1 equals 1.0, but does not equal the boolean `true`.
    """
    if value is other:
        return True
    if value != other:  # == would take 1 for true
        return False
    return canonical_key(value) == canonical_key(other) or _same_booleans(value, other)


def _same_booleans(value: Any, other: Any) -> bool:
    """Return whether two values that are equal by `==` have booleans in the same places."""
    if isinstance(value, dict):
        return all(_same_booleans(item, other[key]) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_same_booleans, value, other))
    return isinstance(value, bool) == isinstance(other, bool)
