"""AnchorIndex: which of many selectors are worth trying on a set of labels.

Most selectors demand some label with one value. Filed under it, they are only tried on labels that
have it, so the cost follows the number of labels and not that of selectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from fairlead.api.objects import LabelSelector

Entry = TypeVar("Entry")
Anchor = tuple[str, str] | None


def anchor_of(selector: LabelSelector | None) -> Anchor:
    """A label that everything `selector` matches has, None if there is no such label."""
    if selector is None:
        return None
    for label in selector.match_labels.items():
        return label
    for one in selector.match_expressions:
        if one.operator == "In" and len(one.values) == 1:
            return one.key, one.values[0]
    return None


class AnchorIndex(Generic[Entry]):
    """Entries, each filed once under its anchor."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_anchor: dict[Anchor, dict[Entry, None]] = {}

    def add(self, anchor: Anchor, entry: Entry) -> None:
        """File `entry`; undone by `remove`."""
        self._by_anchor.setdefault(anchor, {})[entry] = None

    def remove(self, anchor: Anchor, entry: Entry) -> None:
        """Take `entry` out."""
        filed = self._by_anchor[anchor]
        del filed[entry]
        if not filed:
            del self._by_anchor[anchor]

    def candidates(self, labels: Mapping[str, str]) -> list[Entry]:
        """The entries that may match `labels`, in an order that depends on nothing else."""
        found = list(self._by_anchor.get(None, ()))
        for label in labels.items():
            found.extend(self._by_anchor.get(label, ()))
        return found
