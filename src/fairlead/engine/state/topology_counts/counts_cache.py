"""CountsCache: keeps the most recently used live counts.

Unused counts would still be updated by every pod change, so the least recently used ones are
dropped when all of them together exceed a bound.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar

from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.pod_index import PodIndex

_ROWS_MAX: Final = 20_000_000  # about 20 bytes each


class LiveCounts(Protocol):
    """Counts that the pod index keeps up to date."""

    def drop(self, pod_index: PodIndex) -> None:
        """Stop the updates."""
        ...


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=LiveCounts)


class CountsCache(Generic[Key, Entry]):
    """Entries by key; the least recently used entry is dropped first."""

    def __init__(self, table: NodeTable, rows_max: int = _ROWS_MAX) -> None:
        """For counts over the nodes of `table`; all entries together may have `rows_max` rows."""
        self._table = table
        self._rows_max = rows_max
        self._entries: dict[Key, Entry] = {}

    def get(self, key: Key) -> Entry | None:
        """The entry, which becomes the most recently used."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def put(self, key: Key, entry: Entry) -> Entry:
        """Add `entry`, dropping others if necessary. Returns it."""
        self.remove(key)
        bound = max(self._rows_max // self._table.capacity, 1)
        while len(self._entries) >= bound:
            self.remove(next(iter(self._entries)))
        self._entries[key] = entry
        return entry

    def remove(self, key: Key) -> None:
        """Drop the entry of `key`, if any."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.drop(self._table.pod_index)
