"""ClassVolumes: the free volumes of one storage class, in the order in which claims try them.

Volumes are sorted by size, then by name. Volumes that only one node can reach, usually local disks,
are matched in one array operation. The other volumes are grouped by the nodes that can reach them.
A node is identified by its row in the node table.

    capacities[i], volumes[i]   sorted; position i identifies the volume
    is_free[i]                  the volume is Available, and neither bound nor assumed nor being
                                deleted
    _only_row[i]                the row of the only node that can reach the volume, else NO_ROW
    _reaches                    for each group of the other volumes: the rows of the nodes that can
                                reach it (None for all rows), and the positions of its volumes
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.objects import (
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    QuantityText,
)
from fairlead.api.quantity import parse_quantity
from fairlead.api.selector import selector_matches
from fairlead.engine.plugins.volume_binding.node_selector_rows import (
    Mask,
    selector_mask,
    simple_values,
)
from fairlead.engine.state.node_table import NodeTable

Ints = npt.NDArray[np.int64]
NONE: Final = -1
NO_ROW: Final = -1
_LAST: Final = np.iinfo(np.int64).max
Traits = tuple[str, str, frozenset[str]]


class _Reach(Struct, frozen=True):
    """A group of volumes that the same nodes can reach.

    `positions` are the positions of the volumes, ascending. `rows` is a mask of the nodes' rows;
    None if all nodes can reach the volumes.
    """

    rows: Mask | None
    positions: Ints


class ClassVolumes:
    """The volumes of one storage class.

    `FreeVolumes` builds a new ClassVolumes if a volume was added or removed, or if the capacity,
    node affinity or `Traits` of a volume changed. After other changes, `FreeVolumes` updates
    `volumes` and `is_free`.
    """

    def __init__(self, volumes: list[PersistentVolume], table: NodeTable) -> None:
        """Index `volumes` by size; all start as not free (see `set_free`)."""
        keyed = sorted(((size_of(one), one.key, one) for one in volumes), key=lambda k: k[:2])
        self.capacities = [size for size, _, _ in keyed]
        self.volumes = [one for _, _, one in keyed]
        self.position = {name: i for i, (_, name, _) in enumerate(keyed)}
        self.is_free: Mask = np.zeros(len(keyed), np.bool_)
        self._table = table
        self._epoch = -1
        self._traits = _interned([traits_of(one) for one in self.volumes])

    def set_free(self, position: int, *, free: bool) -> None:
        """Record whether `volumes[position]` is free; claims can take only free volumes."""
        self.is_free[position] = free

    # --- selection -------------------------------------------------------------------------

    def smallest(self, claim: PersistentVolumeClaim, taken: list[Ints]) -> Ints:
        """Return, for the node at each row, the smallest free volume that fits `claim`.

        A volume is given by its index in `volumes`; NONE means that no volume fits. `taken`
        contains the results for other claims of the pod. A volume that is taken on a row is not
        chosen again on this row.
        """
        if not self.volumes:
            return np.full(self._table.capacity, NONE, np.int64)
        self._locate()
        best = np.full(self._table.capacity, _LAST, np.int64)
        suitable = self._suitable(claim)
        single = np.flatnonzero(suitable & (self._only_row != NO_ROW))
        for chosen in taken:
            single = single[chosen[self._only_row[single]] != single]
        # written in descending order, so that the smallest remains
        best[self._only_row[single][::-1]] = single[::-1]
        for reach in self._reaches:
            positions = reach.positions[suitable[reach.positions]]
            for position in positions[: len(taken) + 1].tolist():
                rows = best > position
                if reach.rows is not None:
                    rows &= reach.rows
                for chosen in taken:
                    rows &= chosen != position
                best[rows] = position
        best[best == _LAST] = NONE
        return best

    def _suitable(self, claim: PersistentVolumeClaim) -> Mask:
        """Return, for each position in `volumes`, whether the volume is free and fits `claim`.

        The node affinity of the volumes is not checked.
        """
        suitable = self.is_free.copy()
        suitable[: bisect_left(self.capacities, size_of(claim))] = False
        index, ids = self._traits
        wanted = [i for traits, i in index.items() if _suit(claim, traits)]
        suitable &= np.isin(ids, wanted)
        if claim.spec.selector is not None:
            for position in np.flatnonzero(suitable).tolist():
                labels = self.volumes[position].metadata.labels
                suitable[position] = selector_matches(claim.spec.selector, labels)
        return suitable

    # --- locations -------------------------------------------------------------------------

    def _locate(self) -> None:
        """If nodes have changed, recompute which nodes can reach each volume."""
        if self._epoch == self._table.pod_index.nodes.value:
            return
        self._epoch = self._table.pod_index.nodes.value
        self._only_row: Ints = np.full(len(self.volumes), NO_ROW, np.int64)
        groups: dict[NodeSelector | None, list[int]] = {}
        for position, volume in enumerate(self.volumes):
            groups.setdefault(selector_of(volume), []).append(position)
        self._reaches: list[_Reach] = []
        rows_of = _RowsByLabel(self._table)
        for selector, positions in groups.items():
            self._locate_group(selector, positions, rows_of)

    def _locate_group(
        self, selector: NodeSelector | None, positions: list[int], rows_of: _RowsByLabel
    ) -> None:
        if selector is None:
            self._reaches.append(_Reach(None, np.array(positions, np.int64)))
            return
        only = rows_of.only(selector)
        if only is not None:
            self._only_row[positions] = only
            return
        mask = selector_mask(selector, self._table)
        rows = np.flatnonzero(mask)
        if len(rows) == 1:
            self._only_row[positions] = rows[0]
        elif len(rows):
            self._reaches.append(_Reach(mask, np.array(positions, np.int64)))


class _RowsByLabel:
    """The rows of the nodes that have a certain label, by label key and value.

    The rows for a key are found when the key is first used.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_key: dict[str, dict[int, list[int]]] = {}

    def only(self, selector: NodeSelector) -> int | None:
        """Return the row (index) of the only node that `selector` matches.

        Returns None if `selector` matches no node or several nodes, or if `selector` does not have
        the form `key In [value]`.
        """
        simple = simple_values(selector)
        if simple is None or len(simple[1]) != 1:
            return None
        key, (value,) = simple
        rows = self._rows(key).get(self._table.label_column(key).id_of(value), [])
        return rows[0] if len(rows) == 1 else None

    def _rows(self, key: str) -> dict[int, list[int]]:
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = {}
            for row, value in enumerate(self._table.label_column(key).ids.tolist()):
                if value >= 0:
                    found.setdefault(value, []).append(row)
        return found


def selector_of(volume: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of `volume`; None means that all nodes can reach it."""
    affinity = volume.spec.node_affinity
    return None if affinity is None else affinity.required


def size_of(obj: PersistentVolume | PersistentVolumeClaim) -> int:
    """Return a volume's capacity or a claim's request in units of 10^-9 bytes; 0 if not set."""
    amount: QuantityText = 0
    if isinstance(obj, PersistentVolume):
        amount = obj.spec.capacity.get("storage", 0)
    else:
        amount = obj.spec.resources.requests.get("storage", 0)
    return parse_quantity(amount).nano


def traits_of(volume: PersistentVolume) -> Traits:
    """Return (volume mode, attributes class, access modes) of `volume`."""
    spec = volume.spec
    return spec.volume_mode, spec.volume_attributes_class_name, frozenset(spec.access_modes)


def _suit(claim: PersistentVolumeClaim, traits: Traits) -> bool:
    _, _, access_modes = traits
    return has_kind(claim, traits) and access_modes.issuperset(claim.spec.access_modes)


def has_kind(claim: PersistentVolumeClaim, traits: Traits) -> bool:
    """Return whether `traits` has the volume mode and the attributes class of `claim`."""
    mode, attributes_class, _ = traits
    spec = claim.spec
    return (mode, attributes_class) == (spec.volume_mode, spec.volume_attributes_class_name)


def _interned(traits: list[Traits]) -> tuple[dict[Traits, int], Ints]:
    index: dict[Traits, int] = {}
    ids = [index.setdefault(one, len(index)) for one in traits]
    return index, np.array(ids, np.int64)
