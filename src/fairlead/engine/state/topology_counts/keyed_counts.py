"""KeyedCounts: domain counts for several topology keys that are asked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.engine.state.domains import Ids
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, SupposedCounts
from fairlead.engine.state.pod_index.pod_index import PodIndex

_UNCHANGED: Final[Mapping[str, SupposedCounts]] = {}


class KeyedCounts:
    """One `DomainCounts` per topology key, live until `drop`."""

    __slots__ = ("by_key", "dropped")

    def __init__(self, table: NodeTable, keys: Iterable[str]) -> None:
        """Nothing is counted yet; `keys` may repeat."""
        epoch = table.pod_index.nodes
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

    def drop(self, pod_index: PodIndex) -> None:
        """Follow the pod_index no longer."""
        for counts in self.by_key.values():
            pod_index.unwatch(counts)
        self.dropped = True


class SupposedKeyedCounts:
    """`KeyedCounts` as they are, or with what a hypothesis changes in them, by rows of one table.

    They are copied by the first change. `source` is None from then on.
    """

    __slots__ = ("_by_key", "_table", "source")

    def __init__(
        self,
        table: NodeTable,
        source: KeyedCounts | None,
        changed: Mapping[str, SupposedCounts] = _UNCHANGED,
    ) -> None:
        """`source` must be refreshed; None where the counts are in `changed`, taken over."""
        self._table = table
        self.source = source
        self._by_key: Mapping[str, DomainCounts | SupposedCounts]
        self._by_key = changed if source is None else source.by_key

    def clone(self) -> SupposedKeyedCounts:
        """Independent from now on, also of the counts that both were made from."""
        if self.source is not None:
            # Kept, so that the next clone costs nothing, and so that what a trial does to the
            # table does not come on top of what it supposes.
            self._by_key = self._copies()
        return SupposedKeyedCounts(self._table, None, self._copies())

    def _copies(self) -> dict[str, SupposedCounts]:
        return {key: counts.supposed() for key, counts in self._by_key.items()}

    def change(self, key: str, row: int, by: int) -> None:
        """Suppose `by` more where `row` is; no effect if its node has no label `key`."""
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
        """Per key, the rows' domains and the counts."""
        column = self._table.label_column
        return [(column(key).ids, counts) for key, counts in self._by_key.items()]

    def total(self) -> int:
        """All counts of all keys together, where every pod has weight 1."""
        return sum(counts.total() for counts in self._by_key.values())
