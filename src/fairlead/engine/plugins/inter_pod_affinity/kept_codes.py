"""KeptCodes: cached verdicts for all rows, updated where a count changes between zero and positive.

A verdict depends only on whether each domain's count is positive. Most placements do not change
that, and if the topology key is the hostname they change it for one node only, so pods with the
same terms can reuse nearly all verdicts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.plugins.inter_pod_affinity.filter import AffinityState
from fairlead.engine.state.label_column import ABSENT
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.topology_counts.keyed_counts import KeyedCounts

Codes = npt.NDArray[np.int32]

_KEPT_MAX: Final = 32
# From this many changed rows on, recomputing all rows is cheaper (measured).
_RECOMPUTE_ALL_FROM: Final = 16


class KeptCodes:
    """The codes for pods whose counts are `sources`."""

    def __init__(self, table: NodeTable, sources: tuple[KeyedCounts, ...]) -> None:
        """Start without verdicts."""
        self._table = table
        self._sources = sources
        self._counted = [item for source in sources for item in source.by_key.items()]
        self._codes: Codes = np.zeros(0, np.int32)
        self._seen: list[tuple[int, int]] = []
        self._basis: tuple[int, int, bool] | None = None

    @property
    def is_usable(self) -> bool:
        """False once one of the counts is no longer maintained."""
        return not any(source.dropped for source in self._sources)

    def codes(self, state: AffinityState) -> Codes:
        """The code of every row below the table's size; the array is never changed afterwards.

        `state` holds the current content of the sources.
        """
        table = self._table
        basis = (table.pod_index.nodes.value, table.size, state.may_be_first())
        rows = self._changed_rows() if basis == self._basis else None
        if rows is None or len(rows) >= _RECOMPUTE_ALL_FROM:
            self._codes = state.codes(np.arange(table.size))
            self._basis = basis
        elif rows:
            self._codes = self._codes.copy()
            for row in rows:
                self._codes[row] = state.code(row)
        self._seen = [counts.seen() for _, counts in self._counted]
        return self._codes

    def _changed_rows(self) -> dict[int, None] | None:
        """Rows whose domains changed since the last call; None if the changes are unknown."""
        rows: dict[int, None] = {}
        for (key, counts), seen in zip(self._counted, self._seen, strict=True):
            domains = counts.turned_since(seen)
            if domains is None or len(domains) >= _RECOMPUTE_ALL_FROM:
                return None
            for domain in domains:
                rows |= dict.fromkeys(self._rows_in(key, domain))
        return rows

    def _rows_in(self, key: str, domain: int) -> list[int]:
        assert domain != ABSENT
        ids = self._table.label_column(key).ids
        return np.flatnonzero(ids[: self._table.size] == domain).tolist()


class CodesKeeper:
    """The most recently used `KeptCodes`."""

    def __init__(self, table: NodeTable) -> None:
        """For the nodes of `table`."""
        self._table = table
        self._kept: dict[tuple[object, ...], KeptCodes] = {}

    def of(self, state: AffinityState, sources: tuple[KeyedCounts, ...]) -> Codes:
        """The codes of all rows for the pod whose `state` was built from `sources`."""
        key = (*sources, state.asker.is_first_of_its_kind)
        kept = self._kept.pop(key, None)
        if kept is None or not kept.is_usable:
            kept = KeptCodes(self._table, sources)
        self._kept[key] = kept
        while len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return kept.codes(state)
