"""LabelColumn: the values of one label key on all nodes, as integer ids.

A requirement on the key is evaluated once per distinct value instead of once per node. The same ids
identify topology domains (`Domains`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

ABSENT: Final = -1
Ids = npt.NDArray[np.int64]
Column = TypeVar("Column", np.int64, np.bool_, np.float64)


def read_only(column: npt.NDArray[Column]) -> npt.NDArray[Column]:
    """Return a view of `column` that shows its changes, but cannot be written."""
    view = column.view()
    view.flags.writeable = False
    return view


class LabelColumn:
    """The values of one label, for the node at each row of the node table.

    `ids[row]` is the id of the node's value, ABSENT if the node lacks the label. The array `ids` is
    read-only, because users' plugins can access it. `values[id]` is the value. Ids are assigned in
    order of first use and never reused.
    """

    def __init__(self, key: str, capacity: int) -> None:
        """Start a column of `capacity` rows, all ABSENT."""
        self.key = key
        self._store(np.full(capacity, ABSENT, np.int64))
        self.values: list[str] = []
        self._index: dict[str, int] = {}

    def _store(self, ids: Ids) -> None:
        self._own = ids
        self.ids = read_only(ids)
        self._is_shared = False  # whether a result of `domains` contains `ids`

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Set the value of the node at `row` from `labels`; ABSENT if `labels` lacks the key."""
        value = labels.get(self.key)
        new = ABSENT if value is None else self.id_of(value)
        if self.ids[row] == new:  # most updates of nodes do not change the label
            return
        if self._is_shared:
            self._store(self._own.copy())
        self._own[row] = new

    def id_of(self, value: str) -> int:
        """Return the id of `value`; a new value gets the next id."""
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found

    def domains(self) -> Domains:
        """Return the label's values as topology domains; later changes do not affect the result."""
        self._is_shared = True
        return Domains(self.ids, len(self.values))

    def grow(self, capacity: int) -> None:
        """Extend the column to `capacity` rows."""
        ids = np.full(capacity, ABSENT, np.int64)
        ids[: len(self._own)] = self._own
        self._store(ids)


class Domains(Struct, frozen=True):
    """The topology domain of each node.

    `ids[row]` is the domain of the node at `row`, a number below `size`; -1 (ABSENT) if the node is
    in no domain.
    """

    ids: Ids
    size: int
