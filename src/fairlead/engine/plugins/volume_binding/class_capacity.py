"""ClassCapacities: the largest volume of a storage class that can be provisioned on each node.

Each CSIStorageCapacity object limits the size of a volume on the nodes of one topology, usually a
single node or zone. If the topology is a single label, the largest limit for each label value is
stored. The capacities of several objects are not added up. The sizes of a pod's claims are not
added up either.
upstream: binder.go: hasEnoughCapacity
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.api.objects import CSIDriver, CSIStorageCapacity, LabelSelector
from fairlead.api.quantity import parse_quantity
from fairlead.engine.plugins.volume_binding.node_selector_rows import Mask, label_mask
from fairlead.engine.state.cluster import Cluster

_NOTHING: Final = -1


class _Limits(Struct, frozen=True):
    """The capacity limits of one storage class.

    `by_value` covers the CSIStorageCapacity objects whose topology is a single label.
    `by_value[key]` has one entry for each value of the label `key`. The index is the value's id in
    the `LabelColumn` of `key`. The entry is the largest limit in bytes of the objects with this
    label and value, or -1 if there are none. One more entry, the last one, is for nodes without the
    label. `others` holds a node mask and a limit in bytes for each object with any other topology.
    """

    by_value: dict[str, npt.NDArray[np.int64]]
    others: list[tuple[Mask, int]]


class ClassCapacities:
    """Capacity limits, read from CSIDriver and CSIStorageCapacity objects."""

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._related = cluster.related
        self._limits: dict[str, _Limits] = {}
        self._by_class: dict[str, list[CSIStorageCapacity]] | None = None
        self._epoch = self._position = -1

    def enough(self, provisioner: str, class_name: str, size: int) -> Mask | None:
        """Return, for the node at each row, whether it can get a new volume of `size` bytes.

        The volume belongs to the StorageClass `class_name`, whose CSI driver is `provisioner`.

        Returns None if the driver does not publish its capacity, because no node is excluded then.
        """
        driver = self._related.get(CSIDriver, provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        self._refresh()
        limits = self._limits.get(class_name)
        if limits is None:
            limits = self._limits[class_name] = self._read(class_name)
        found = np.zeros(self._table.capacity, np.bool_)
        for key, by_value in limits.by_value.items():
            found |= by_value[self._table.label_column(key).ids] >= size
        for mask, limit in limits.others:
            if limit >= size:
                found |= mask
        return found

    def _refresh(self) -> None:
        log, epoch = self._related.storage_log, self._table.pod_index.nodes.value
        changes = log.since(self._position) if self._position >= 0 else None
        self._position = log.position
        if changes is None or any(kind is CSIStorageCapacity for kind, _ in changes):
            self._by_class = None
            self._limits.clear()
        if epoch != self._epoch:
            self._limits.clear()
        self._epoch = epoch

    def _read(self, class_name: str) -> _Limits:
        if self._by_class is None:
            self._by_class = {}
            for one in self._related.all_of(CSIStorageCapacity):
                self._by_class.setdefault(one.storage_class_name, []).append(one)
        simple: dict[str, dict[str, int]] = {}
        others: list[tuple[Mask, int]] = []
        for one in self._by_class.get(class_name, ()):
            limit, topology = volume_limit(one), one.node_topology
            if limit is None or topology is None:
                continue
            if len(topology.match_labels) == 1 and not topology.match_expressions:
                _raise_to(simple, topology, limit)
            else:
                others.append((label_mask(topology, self._table), limit))
        return _Limits({key: self._column(key, of) for key, of in simple.items()}, others)

    def _column(self, key: str, limits: dict[str, int]) -> npt.NDArray[np.int64]:
        labels = self._table.label_column(key)
        ids = [labels.id_of(value) for value in limits]
        column = np.full(len(labels.values) + 1, _NOTHING, np.int64)
        column[ids] = list(limits.values())
        return column


def _raise_to(limits: dict[str, dict[str, int]], topology: LabelSelector, limit: int) -> None:
    ((key, value),) = topology.match_labels.items()
    of_key = limits.setdefault(key, {})
    of_key[value] = max(limit, of_key.get(value, _NOTHING))


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the largest size of a volume in bytes; None if not set (binder.go: volumeLimit)."""
    amount = (
        capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    )
    return None if amount is None else parse_quantity(amount).whole
