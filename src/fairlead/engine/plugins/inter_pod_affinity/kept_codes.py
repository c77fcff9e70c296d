"""KeptCodes: the verdicts on all rows, redone only where a count became positive or ceased to be.

A verdict asks of each domain no more than whether anybody counts there. Most placements do not
change that at all, and where topology is the host they change it for one node, so pods that are
alike find nearly everything as the one before left it.
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
# From this many changed rows on, judging all anew is cheaper (measured).
_ANEW_FROM: Final = 16


class KeptCodes:
    """The codes of `sources`, which only pods with the same sources may ask for."""

    def __init__(self, table: NodeTable, sources: tuple[KeyedCounts, ...]) -> None:
        """Nothing is judged yet."""
        self._table = table
        self._sources = sources
        self._counted = [item for source in sources for item in source.by_key.items()]
        self._codes: Codes = np.zeros(0, np.int32)
        self._seen: list[tuple[int, int]] = []
        self._basis: tuple[int, int, bool] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether what it counts with is still counted."""
        return not any(source.dropped for source in self._sources)

    def codes(self, state: AffinityState) -> Codes:
        """The code of every row below the table's size; never changed afterwards.

        `state` holds what the sources say now.
        """
        table = self._table
        basis = (table.pod_index.nodes.value, table.size, state.may_be_first())
        rows = self._changed_rows() if basis == self._basis else None
        if rows is None or len(rows) >= _ANEW_FROM:
            self._codes = state.codes(np.arange(table.size))
            self._basis = basis
        elif rows:
            self._codes = self._codes.copy()
            for row in rows:
                self._codes[row] = state.code(row)
        self._seen = [counts.seen() for _, counts in self._counted]
        return self._codes

    def _changed_rows(self) -> dict[int, None] | None:
        """The rows whose domains changed since the last time; None if nobody knows."""
        rows: dict[int, None] = {}
        for (key, counts), seen in zip(self._counted, self._seen, strict=True):
            domains = counts.turned_since(seen)
            if domains is None or len(domains) >= _ANEW_FROM:
                return None
            for domain in domains:
                rows |= dict.fromkeys(self._rows_in(key, domain))
        return rows

    def _rows_in(self, key: str, domain: int) -> list[int]:
        assert domain != ABSENT
        ids = self._table.label_column(key).ids
        return np.flatnonzero(ids[: self._table.size] == domain).tolist()


class CodesKeeper:
    """The `KeptCodes` of the pods that were seen most recently."""

    def __init__(self, table: NodeTable) -> None:
        """For pods to be placed on the nodes of `table`."""
        self._table = table
        self._kept: dict[tuple[object, ...], KeptCodes] = {}

    def of(self, state: AffinityState, sources: tuple[KeyedCounts, ...]) -> Codes:
        """The codes of all rows for the pod whose `state` is made of `sources`."""
        key = (*sources, state.asker.is_first_of_its_kind)
        kept = self._kept.pop(key, None)
        if kept is None or not kept.is_usable:
            kept = KeptCodes(self._table, sources)
        self._kept[key] = kept
        while len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return kept.codes(state)
