"""Formats a list of names as text: `listed` shortens the list, and `joined` does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return a text with the first `most` names, and the number of the other names."""
    rest = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def joined(names: Iterable[str]) -> str:
    """Return a text with all names: `a`, `a and b`, or `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
