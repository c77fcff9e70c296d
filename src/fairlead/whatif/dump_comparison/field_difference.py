"""field_differences: the fields in which two objects differ, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from fairlead.apiserver.validation.core.resource import quantity_or_none

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"


def field_differences(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a text for each key whose values differ; `1` and `1000m` are the same quantity."""
    start = f"{prefix} " if prefix else ""
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before != after and not _is_same_amount(before, after):
            yield f"{start}{key} {arrow(before, after)}"


def leaves(value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the values below `value` by path; a list is one value, and so is an empty object."""
    found: dict[str, Any] = {}
    for key, one in value.items():
        inner = f"{path}.{key}" if path else str(key)
        if isinstance(one, dict) and one:
            found |= leaves(one, inner)
        else:
            found[inner] = one
    return found


def _is_same_amount(one: Any, other: Any) -> bool:
    if not (isinstance(one, str | int) and isinstance(other, str | int)):
        return False
    amount = quantity_or_none(one)
    return amount is not None and amount == quantity_or_none(other)


def arrow(before: Any, after: Any) -> str:
    """Return `before → after`, or only the value if both are equal."""
    old, new = _value(before), _value(after)
    return old if old == new else f"{old} → {new}"


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case str():
            return value or "''"
        case _:
            return msgspec.json.encode(value).decode()
