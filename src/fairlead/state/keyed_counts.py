"""KeyedCounts: domain counts for several topology keys that are asked together."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.state.census import Census
from fairlead.state.domain_counts import DomainCounts, SupposedCounts
from fairlead.state.domains import Ids
from fairlead.state.node_table import NodeTable


class KeyedCounts:
    """One `DomainCounts` per topology key, live until `drop`."""

    __slots__ = ("by_key", "dropped")

    def __init__(self, table: NodeTable, keys: Iterable[str]) -> None:
        """Nothing is counted yet; `keys` may repeat."""
        epoch = table.census.nodes
        self.by_key = {key: DomainCounts(epoch, table.label_column(key).domains) for key in keys}
        self.dropped = False

    def refresh(self) -> KeyedCounts:
        """Bring all of them up to date; returns itself."""
        for counts in self.by_key.values():
            counts.refresh()
        return self

    def pods(self) -> int:
        """How many pods count for some key, those that count for two of them twice."""
        return sum(counts.pods for counts in self.by_key.values())

    def drop(self, census: Census) -> None:
        """Follow the census no longer."""
        for counts in self.by_key.values():
            census.unwatch(counts)
        self.dropped = True


class SupposedKeyedCounts:
    """A copy of `KeyedCounts` for a hypothesis, by the rows of one table."""

    __slots__ = ("_by_key", "_table")

    def __init__(self, table: NodeTable, by_key: dict[str, SupposedCounts]) -> None:
        """Takes `by_key` over; see `suppose`."""
        self._table = table
        self._by_key = by_key

    def clone(self) -> SupposedKeyedCounts:
        """Independent from now on."""
        copies = {key: counts.clone() for key, counts in self._by_key.items()}
        return SupposedKeyedCounts(self._table, copies)

    def change(self, key: str, row: int, by: int) -> None:
        """Suppose `by` more where `row` is; no effect if its node has no label `key`."""
        domain = int(self._table.label_column(key).ids[row])
        if domain >= 0:
            counts = self._by_key.get(key)
            if counts is None:
                fresh = KeyedCounts(self._table, (key,)).refresh()
                counts = self._by_key[key] = fresh.by_key[key].supposed()
            counts.change(domain, by)

    def items(self) -> list[tuple[Ids, SupposedCounts]]:
        """Per key, the rows' domains and the counts."""
        column = self._table.label_column
        return [(column(key).ids, counts) for key, counts in self._by_key.items()]

    def total(self) -> int:
        """All counts of all keys together."""
        return sum(counts.total() for counts in self._by_key.values())


def suppose(table: NodeTable, counts: KeyedCounts) -> SupposedKeyedCounts:
    """A copy of `counts`, which must be refreshed, for hypotheses."""
    return SupposedKeyedCounts(table, {key: one.supposed() for key, one in counts.by_key.items()})
