"""CountsCache: live counts are kept for whoever asked most recently.

Counts that nobody asks for still follow every pod that comes or goes, so the oldest are dropped
once all of them together outgrow a bound.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar

from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.pod_index import PodIndex

_ROWS_MAX: Final = 20_000_000  # about 20 bytes each


class LiveCounts(Protocol):
    """Something that follows the pod_index."""

    def drop(self, pod_index: PodIndex) -> None:
        """Follow it no longer."""
        ...


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=LiveCounts)


class CountsCache(Generic[Key, Entry]):
    """Entries by key, the least recently used first to go."""

    def __init__(self, table: NodeTable, rows_max: int = _ROWS_MAX) -> None:
        """For counts over the nodes of `table`; those of all entries together are `rows_max`."""
        self._table = table
        self._rows_max = rows_max
        self._entries: dict[Key, Entry] = {}

    def get(self, key: Key) -> Entry | None:
        """The entry, which thereby is used."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def put(self, key: Key, entry: Entry) -> Entry:
        """Keep `entry`; others may be dropped for it. Returns it."""
        self.remove(key)
        bound = max(self._rows_max // self._table.capacity, 1)
        while len(self._entries) >= bound:
            self.remove(next(iter(self._entries)))
        self._entries[key] = entry
        return entry

    def remove(self, key: Key) -> None:
        """Drop the entry of `key` if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.drop(self._table.pod_index)
