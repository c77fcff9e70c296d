"""CSINodeColumns: the data of CSINode objects as columns over the node rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import CSINode
from fairlead.engine.state.cluster import Cluster

NO_LIMIT: Final = -1
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class CSINodeColumns:
    """Volume limits and CSI migration of each node; call `refresh` before reading."""

    def __init__(self, cluster: Cluster) -> None:
        """Start without data; `refresh` reads the CSINodes of the nodes in `cluster`."""
        self._table = cluster.table
        self._related = cluster.related
        self._capacity = -1
        self._nodes = self._storage = 0
        self._limits: dict[str, Ints] = {}
        self._migrated: dict[str, Bools] = {}

    def limits(self, driver: str) -> Ints | None:
        """Return the limit of `driver` for the node at each row; None if no node has a limit.

        The entry NO_LIMIT means that the node has no limit.
        """
        return self._limits.get(driver)

    def migrated(self, plugin: str) -> Bools | None:
        """Return, for the node at each row, whether the in-tree `plugin` is migrated to CSI.

        Returns None if the plugin is not migrated on any node.
        """
        return self._migrated.get(plugin)

    def refresh(self) -> None:
        """Update the rows whose node or CSINode changed since the last call."""
        nodes = self._table.node_log.since(self._nodes)
        changes = self._related.storage_log.since(self._storage)
        self._nodes = self._table.node_log.position
        self._storage = self._related.storage_log.position
        if nodes is None or changes is None or self._capacity != self._table.capacity:
            self._build()
            return
        rows = dict.fromkeys(nodes)
        for kind, name in changes:
            node = self._table.find(name) if kind is CSINode else None
            if node is not None:
                rows[node.row] = None
        for row in rows:
            self._clear(row)
            self._write(row)

    def _build(self) -> None:
        self._capacity = self._table.capacity
        self._limits, self._migrated = {}, {}
        for one in self._related.all_of(CSINode):
            node = self._table.find(one.metadata.name)
            if node is not None:
                self._write(node.row)

    def _clear(self, row: int) -> None:
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        for migrated in self._migrated.values():
            migrated[row] = False

    def _write(self, row: int) -> None:
        if not self._table.alive[row]:
            return
        found = self._related.get(CSINode, self._table.at(row).name)
        if found is None:
            return
        for driver in found.spec.drivers:
            if driver.allocatable.count is not None:
                limits = self._limits.get(driver.name)
                if limits is None:
                    limits = np.full(self._capacity, NO_LIMIT, np.int64)
                    self._limits[driver.name] = limits
                limits[row] = driver.allocatable.count
        for plugin in migrated_plugins(found):
            migrated = self._migrated.get(plugin)
            if migrated is None:
                migrated = self._migrated[plugin] = np.zeros(self._capacity, np.bool_)
            migrated[row] = True


def migrated_plugins(node: CSINode) -> list[str]:
    """Return the in-tree plugins that the CSINode lists as migrated to CSI drivers."""
    listed = node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return listed.split(",") if listed else []


def volume_limits(node: CSINode) -> dict[str, int]:
    """Return the volume limit of each driver; drivers without a limit are left out."""
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable.count is not None
    }
