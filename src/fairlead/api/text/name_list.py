"""listed: formats a list of names as a short text."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return a text with the first `most` names, and the number of the other names."""
    rest = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown
