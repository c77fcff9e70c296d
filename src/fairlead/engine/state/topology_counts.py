"""KeyedCounts: pod counts by domain for several topology keys. CountsCache: a cache of counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from fairlead.engine.state.label_column import Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, HypotheticalCounts
from fairlead.engine.state.pod_index.pod_index import PodIndex

_UNCHANGED: Final[Mapping[str, HypotheticalCounts]] = {}
_ROWS_MAX: Final = 20_000_000  # about 20 bytes each


class KeyedCounts:
    """One `DomainCounts` per topology key, updated until `drop` is called."""

    __slots__ = ("by_key", "dropped")

    def __init__(self, table: NodeTable, keys: Iterable[str]) -> None:
        """Start without pods; `keys` are the topology keys and may contain duplicates."""
        epoch = table.pod_index.labels
        self.by_key = {key: DomainCounts(epoch, table.label_column(key).domains) for key in keys}
        self.dropped = False

    def refresh(self) -> KeyedCounts:
        """Update the counts of all keys if nodes changed; return self."""
        for counts in self.by_key.values():
            counts.refresh()
        return self

    def pods(self) -> int:
        """Return the number of counted pods; a pod that is counted for two keys counts twice."""
        return sum(counts.pods for counts in self.by_key.values())

    def drop(self, pod_index: PodIndex) -> None:
        """Stop counting; unregister the counts from `pod_index`."""
        for counts in self.by_key.values():
            pod_index.unwatch(counts)
        self.dropped = True


class HypotheticalKeyedCounts:
    """Counts for each topology key and domain; hypothetical changes can be applied to them.

    Until the first change, the counts equal the counts in `source`. The first change sets `source`
    to None.
    """

    __slots__ = ("_by_key", "_table", "source")

    def __init__(
        self,
        table: NodeTable,
        source: KeyedCounts | None,
        changed: Mapping[str, HypotheticalCounts] = _UNCHANGED,
    ) -> None:
        """Start from the counts in `source`, or from `changed` if `source` is None.

        The caller must refresh `source` before this call.
        """
        self._table = table
        self.source = source
        self._by_key: Mapping[str, DomainCounts | HypotheticalCounts]
        self._by_key = changed if source is None else source.by_key

    @property
    def keys(self) -> Iterable[str]:
        """The topology keys with counts."""
        return self._by_key.keys()

    def clone(self) -> HypotheticalKeyedCounts:
        """Return a copy; later changes of this object or of its `source` do not affect the copy."""
        if self.source is not None:
            # The copies are kept for two reasons. The next clone needs no new copies. Changes that
            # a trial makes in the table are not counted twice.
            self._by_key = self._copies()
        return HypotheticalKeyedCounts(self._table, None, self._copies())

    def _copies(self) -> dict[str, HypotheticalCounts]:
        return {key: counts.hypothetical() for key, counts in self._by_key.items()}

    def change(self, key: str, row: int, amount: int) -> None:
        """For the topology key `key`, add `amount` to the count of the domain that contains `row`.

        The change affects only this object, not the counts of the cluster. Does nothing if the node
        at `row` lacks the label `key`.
        """
        domain = int(self._table.label_column(key).ids[row])
        if domain < 0:
            return
        if self.source is not None:
            self.source, self._by_key = None, self._copies()
        counts = self._by_key.get(key)
        if counts is None:
            fresh = KeyedCounts(self._table, (key,)).refresh().by_key[key]
            counts = fresh.hypothetical()
            self._by_key = {**self._by_key, key: counts}
        assert isinstance(counts, HypotheticalCounts)
        counts.change(domain, amount)

    def items(self) -> list[tuple[Ids, DomainCounts | HypotheticalCounts]]:
        """Return (domain ids of the nodes by row, counts) for each topology key."""
        column = self._table.label_column
        return [(column(key).ids, counts) for key, counts in self._by_key.items()]

    def total(self) -> int:
        """Return the sum of the counts of all keys; all pods must be counted with weight 1."""
        return sum(counts.total() for counts in self._by_key.values())


class LiveCounts(Protocol):
    """Protocol for counts that the pod index updates."""

    def drop(self, pod_index: PodIndex) -> None:
        """Stop counting; unregister the counts from `pod_index`."""
        ...


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=LiveCounts)


class CountsCache(Generic[Key, Entry]):
    """A cache of counts that evicts the least recently used entry first."""

    def __init__(self, table: NodeTable, rows_max: int = _ROWS_MAX) -> None:
        """Create an empty cache of counts for `table`.

        Each entry has the size of `table`. The number of entries times the number of rows of
        `table` is at most `rows_max`, but at least one entry is kept.
        """
        self._table = table
        self._rows_max = rows_max
        self._entries: dict[Key, Entry] = {}

    def get(self, key: Key) -> Entry | None:
        """Return the entry of `key`, and mark it as most recently used; None if there is none."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def put(self, key: Key, entry: Entry) -> Entry:
        """Add `entry` and return it; evict other entries if necessary."""
        self.remove(key)
        bound = max(self._rows_max // self._table.capacity, 1)
        while len(self._entries) >= bound:
            self.remove(next(iter(self._entries)))
        self._entries[key] = entry
        return entry

    def remove(self, key: Key) -> None:
        """Remove the entry of `key`, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.drop(self._table.pod_index)
