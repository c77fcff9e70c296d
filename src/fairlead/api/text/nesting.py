"""Limits how deeply values may be nested, so that recursive code cannot overflow the stack.

upstream: encoding/json and gopkg.in/yaml.v2 both allow 10,000 levels; real objects have fewer than
fifty
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

DEPTH_MAX: Final = 200
_CONTAINERS: Final = (dict, list)
_OTHER_BYTES: Final = bytes({*range(256)} - {*b"[]{}"})
TOO_DEEP: Final = "exceeded max depth"  # upstream: encoding/json scanner.go:pushParseState


def items_of(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    """Return the values of an object or the elements of a list."""
    return outer.values() if isinstance(outer, dict) else outer


def is_too_deep(
    value: Any, items: Callable[[Any], Iterable[Any]] = items_of, depth_max: int = DEPTH_MAX
) -> bool:
    """Return True if objects and lists in `value` are nested deeper than `depth_max`.

    `items` returns the inner values of an object or list.
    """
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(depth_max):
        if not level:
            return False
        level = [
            inner for outer in level for inner in items(outer) if isinstance(inner, _CONTAINERS)
        ]
    return bool(level)


def is_text_too_deep(text: bytes, depth_max: int = DEPTH_MAX) -> bool:
    """Return True if objects and lists in the JSON `text` are nested deeper than `depth_max`.

    The text is decoded only if counting its brackets is not enough. Decoding raises
    msgspec.DecodeError for a text that is not JSON, and RecursionError for a text that is nested
    too deeply for the decoder.
    """
    brackets = text.translate(None, _OTHER_BYTES)
    if len(brackets) <= 2 * depth_max:
        return False
    # Each iteration removes the innermost one or two levels, so brackets remain if there are many
    # levels. They may also remain if a string contains brackets that are not in pairs.
    for _ in range(depth_max // 2):
        rest = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(rest) == len(brackets):
            break
        brackets = rest
    return brackets != b"" and is_too_deep(msgspec.json.decode(text), depth_max=depth_max)
