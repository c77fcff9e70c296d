"""AttachedVolumes: live counts of attached volumes by driver and node.

The count of a node includes the volumes of its pods. The count also includes volumes that are
attached although no pod on the node uses them. The count is computed again when the node, its pods,
or an object that affects the count changes. Such objects are claims, volumes, storage classes and
VolumeAttachments.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import PersistentVolume, VolumeAttachment
from fairlead.engine.core.status import Status
from fairlead.engine.plugins.node_volume_limits.attachable import Attachables, unique_name
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.related_objects import StorageKey

Ints = npt.NDArray[np.int64]
_Key = TypeVar("_Key")


class NodeAttachedVolumes:
    """The attached volumes of one node.

    `used` are the volumes of the node's pods. `left` are volumes that are attached although no pod
    uses them. `used` and `left` map unique names to drivers. `failure` is set if the volumes cannot
    be determined.
    """

    __slots__ = ("failure", "left", "used")

    def __init__(self) -> None:
        self.used: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.failure: Status | None = None

    def count(self, driver: str) -> int:
        """Return the number of attached volumes of `driver`."""
        names = (*self.used.values(), *self.left.values())
        return sum(one == driver for one in names)


class AttachedVolumes:
    """The attached volumes of every node; call `refresh` before reading.

    During a dry run, only `of_node` takes into account which pods the dry run adds or removes.
    """

    def __init__(self, cluster: Cluster, attachables: Attachables) -> None:
        self._table = cluster.table
        self._related = cluster.related
        self._attachables = attachables
        self._lookup = VolumeLookup(cluster.related)
        self._attachments: dict[str, VolumeAttachment] = {}
        self._attachments_on: dict[str, dict[str, VolumeAttachment]] = {}
        self._capacity = -1
        self._pods = self._nodes = self._storage = 0
        self._forget_all()

    def _forget_all(self) -> None:
        self._rows: dict[int, NodeAttachedVolumes] = {}
        self._counts: dict[str, Ints] = {}
        self._rows_using: dict[str, dict[int, None]] = {}
        self._rows_from: dict[StorageKey, dict[int, None]] = {}
        self._sources: dict[int, list[StorageKey]] = {}
        self.failing: dict[int, None] = {}

    # --- queries ---------------------------------------------------------------------------

    def counts(self, driver: str) -> Ints | None:
        """Return the number of volumes of `driver` on each node, by row; None if all are 0."""
        return self._counts.get(driver)

    def rows_using(self, name: str) -> list[int]:
        """Return the rows of the nodes on which a pod uses the volume `name` (a unique name)."""
        return list(self._rows_using.get(name, ()))

    def at(self, row: int) -> NodeAttachedVolumes:
        """Return the volumes that were attached to the node at `row` at the last `refresh`."""
        return self._rows[row]

    def of_node(self, node: NodeInfo) -> NodeAttachedVolumes:
        """Return the attached volumes on `node`, including the changes of a current dry run."""
        return self._read(node, None)

    # --- updates ---------------------------------------------------------------------------

    def refresh(self) -> None:
        """Recount the volumes of the nodes that changed since the last call."""
        table = self._table
        pods, nodes = table.pod_log.since(self._pods), table.node_log.since(self._nodes)
        changes = self._related.storage_log.since(self._storage)
        self._pods, self._nodes = table.pod_log.position, table.node_log.position
        self._storage = self._related.storage_log.position
        if None in (pods, nodes, changes) or self._capacity != table.capacity:
            self._capacity = table.capacity
            self._forget_all()
            self._index_attachments()
            attached_to = map(table.find, self._attachments_on)
            there = {node.row for node in attached_to if node is not None}
            dirty = dict.fromkeys(sorted(there.union(table.volume_use.pods)))
        else:
            dirty = dict.fromkeys([*(pods or ()), *(nodes or ())])
            for key in dict.fromkeys(changes or ()):
                dirty |= self._touched_by(key)
        for row in dirty:
            self._recount(row)

    def _touched_by(self, key: StorageKey) -> dict[int, None]:
        kind, name = key
        if kind is not VolumeAttachment:
            return self._rows_from.get(key, {})
        old = self._attachments.pop(name, None)
        new = self._related.get(VolumeAttachment, name)
        rows: dict[int, None] = {}
        if old is not None:
            del self._attachments_on[old.spec.node_name][name]
        if new is not None:
            self._index(new)
        for one in (old, new):
            node = self._table.find(one.spec.node_name) if one is not None else None
            if node is not None:
                rows[node.row] = None
        return rows

    def _index_attachments(self) -> None:
        self._attachments.clear()
        self._attachments_on.clear()
        for one in self._related.all_of(VolumeAttachment):
            self._index(one)

    def _index(self, one: VolumeAttachment) -> None:
        self._attachments[one.key] = one
        self._attachments_on.setdefault(one.spec.node_name, {})[one.key] = one

    def _recount(self, row: int) -> None:
        self._drop(row)
        if not self._table.alive[row]:
            return
        node = self._table.at(row)
        if row not in self._table.volume_use.pods and node.name not in self._attachments_on:
            return
        sources: list[StorageKey] = []
        found = self._read(node, sources)
        if not found.used and not found.left and found.failure is None and not sources:
            return
        self._rows[row] = found
        self._sources[row] = sources
        for key in sources:
            self._rows_from.setdefault(key, {})[row] = None
        for name in found.used:
            self._rows_using.setdefault(name, {})[row] = None
        for driver in (*found.used.values(), *found.left.values()):
            self._column(driver)[row] += 1
        if found.failure is not None:
            self.failing[row] = None

    def _drop(self, row: int) -> None:
        found = self._rows.pop(row, None)
        if found is None:
            return
        self.failing.pop(row, None)
        for key in self._sources.pop(row):
            _take_out(self._rows_from, key, row)
        for name in found.used:
            _take_out(self._rows_using, name, row)
        for driver in (*found.used.values(), *found.left.values()):
            self._counts[driver][row] -= 1

    def _column(self, driver: str) -> Ints:
        column = self._counts.get(driver)
        if column is None:
            column = self._counts[driver] = np.zeros(self._capacity, np.int64)
        return column

    # --- one node --------------------------------------------------------------------------

    def _read(self, node: NodeInfo, sources: list[StorageKey] | None) -> NodeAttachedVolumes:
        found = NodeAttachedVolumes()
        note = None if sources is None else sources.append
        there = node.stored_pods
        # Entries that are tuples are loaded pods without a PodInfo. These pods have no volumes: a
        # pod with volumes gets its PodInfo when it is loaded (cluster.py: _load_replicas).
        for pod in there.raw() if isinstance(there, LazyDict) else there.values():
            if not isinstance(pod, tuple) and pod.shape.has_volumes:
                answer = self._attachables.of(pod, note, is_new=False)
                if isinstance(answer, Status):
                    found.failure = found.failure or answer
                else:
                    found.used |= answer
        for one in self._attachments_on.get(node.name, {}).values():
            volume_name, driver = one.spec.source.persistent_volume_name, one.spec.attacher
            if sources is not None:
                sources.append((PersistentVolume, volume_name))
            volume = self._lookup.volume(volume_name) if driver else None
            if volume is not None and volume.spec.csi is not None:
                name = unique_name(driver, volume.spec.csi.volume_handle)
                if name not in found.used:
                    found.left[name] = driver
        return found


def _take_out(index: dict[_Key, dict[int, None]], key: _Key, row: int) -> None:
    rows = index.get(key)
    if rows is not None:
        rows.pop(row, None)
        if not rows:
            del index[key]
