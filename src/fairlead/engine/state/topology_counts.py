"""KeyedCounts: domain counts for several topology keys used together, and a cache of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from fairlead.engine.state.label_column import Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, SupposedCounts
from fairlead.engine.state.pod_index.pod_index import PodIndex

_UNCHANGED: Final[Mapping[str, SupposedCounts]] = {}
_ROWS_MAX: Final = 20_000_000  # about 20 bytes each


class KeyedCounts:
    """One `DomainCounts` per topology key, kept up to date until `drop`."""

    __slots__ = ("by_key", "dropped")

    def __init__(self, table: NodeTable, keys: Iterable[str]) -> None:
        """Start without counts; `keys` may repeat."""
        epoch = table.pod_index.nodes
        self.by_key = {key: DomainCounts(epoch, table.label_column(key).domains) for key in keys}
        self.dropped = False

    def refresh(self) -> KeyedCounts:
        """Bring all counts up to date; returns itself."""
        for counts in self.by_key.values():
            counts.refresh()
        return self

    def pods(self) -> int:
        """Return the number of counted pods, summed over the keys."""
        return sum(counts.pods for counts in self.by_key.values())

    def drop(self, pod_index: PodIndex) -> None:
        """Stop the updates by `pod_index`."""
        for counts in self.by_key.values():
            pod_index.unwatch(counts)
        self.dropped = True


class SupposedKeyedCounts:
    """The counts of a `KeyedCounts`, changed hypothetically by rows of one table.

    The first change copies the counts; `source` is None from then on.
    """

    __slots__ = ("_by_key", "_table", "source")

    def __init__(
        self,
        table: NodeTable,
        source: KeyedCounts | None,
        changed: Mapping[str, SupposedCounts] = _UNCHANGED,
    ) -> None:
        """Start from the refreshed counts in `source`, or without `source` from `changed`."""
        self._table = table
        self.source = source
        self._by_key: Mapping[str, DomainCounts | SupposedCounts]
        self._by_key = changed if source is None else source.by_key

    @property
    def keys(self) -> Iterable[str]:
        """The topology keys with counts."""
        return self._by_key.keys()

    def clone(self) -> SupposedKeyedCounts:
        """Return an independent copy, also of the original counts."""
        if self.source is not None:
            # Kept, so that the next clone costs nothing, and so that a trial's changes of the table
            # are not counted twice.
            self._by_key = self._copies()
        return SupposedKeyedCounts(self._table, None, self._copies())

    def _copies(self) -> dict[str, SupposedCounts]:
        return {key: counts.supposed() for key, counts in self._by_key.items()}

    def change(self, key: str, row: int, by: int) -> None:
        """Hypothetically add `by` on `row`; no effect if its node lacks the label `key`."""
        domain = int(self._table.label_column(key).ids[row])
        if domain < 0:
            return
        if self.source is not None:
            self.source, self._by_key = None, self._copies()
        counts = self._by_key.get(key)
        if counts is None:
            fresh = KeyedCounts(self._table, (key,)).refresh().by_key[key]
            counts = fresh.supposed()
            self._by_key = {**self._by_key, key: counts}
        assert isinstance(counts, SupposedCounts)
        counts.change(domain, by)

    def items(self) -> list[tuple[Ids, DomainCounts | SupposedCounts]]:
        """Return, per key, the rows' domains and the counts."""
        column = self._table.label_column
        return [(column(key).ids, counts) for key, counts in self._by_key.items()]

    def total(self) -> int:
        """Return the sum of all counts of all keys, if every pod has weight 1."""
        return sum(counts.total() for counts in self._by_key.values())


class LiveCounts(Protocol):
    """Counts that the pod index keeps up to date."""

    def drop(self, pod_index: PodIndex) -> None:
        """Stop the updates."""
        ...


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=LiveCounts)


class CountsCache(Generic[Key, Entry]):
    """A cache that drops the least recently used entry first."""

    def __init__(self, table: NodeTable, rows_max: int = _ROWS_MAX) -> None:
        """Count over the nodes of `table`; all entries together have at most `rows_max` rows."""
        self._table = table
        self._rows_max = rows_max
        self._entries: dict[Key, Entry] = {}

    def get(self, key: Key) -> Entry | None:
        """Return the entry, which becomes the most recently used."""
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
