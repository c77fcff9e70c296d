"""AnchorIndex: finds the selectors that may match a set of labels.

Most selectors require one label with one value, their anchor. A selector is only evaluated for
label sets that contain its anchor, so the cost follows the number of labels, not of selectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from fairlead.api.objects import LabelSelector

Entry = TypeVar("Entry")
Anchor = tuple[str, str] | None


def anchor_of(selector: LabelSelector | None) -> Anchor:
    """A label that everything `selector` matches must have, or None."""
    if selector is None:
        return None
    for label in selector.match_labels.items():
        return label
    for one in selector.match_expressions:
        if one.operator == "In" and len(one.values) == 1:
            return one.key, one.values[0]
    return None


class AnchorIndex(Generic[Entry]):
    """Entries, each stored once under its anchor."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_anchor: dict[Anchor, dict[Entry, None]] = {}

    def add(self, anchor: Anchor, entry: Entry) -> None:
        """Store `entry`; undone by `remove`."""
        self._by_anchor.setdefault(anchor, {})[entry] = None

    def remove(self, anchor: Anchor, entry: Entry) -> None:
        """Remove `entry`."""
        filed = self._by_anchor[anchor]
        del filed[entry]
        if not filed:
            del self._by_anchor[anchor]

    def candidates(self, labels: Mapping[str, str]) -> list[Entry]:
        """The entries that may match `labels`, in the order of labels and insertion."""
        found = list(self._by_anchor.get(None, ()))
        for label in labels.items():
            found.extend(self._by_anchor.get(label, ()))
        return found
