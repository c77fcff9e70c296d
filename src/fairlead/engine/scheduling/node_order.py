"""NodeOrder: upstream's order of nodes, round-robin over the zones.

Zones are sorted by the time at which their first node was added. The nodes of a zone are sorted by
the time at which they were added. The order takes one node from each zone in rotation.
upstream: pkg/scheduler/backend/cache/node_tree.go
"""

from __future__ import annotations

from itertools import chain, zip_longest

import numpy as np

from fairlead.api.well_known_label import region_and_zone
from fairlead.engine.framework.interface import Rows
from fairlead.engine.state.node_table import NodeTable

Zone = tuple[str, str]


class NodeOrder:
    """The order of the nodes in a table."""

    def __init__(self, table: NodeTable) -> None:
        """Start without an order; `rows` builds it from `table`."""
        self._table = table
        self._position = -1
        self._zones: dict[Zone, dict[str, int]] = {}
        self._placed: dict[int, tuple[str, Zone]] = {}
        self._rows: Rows = np.zeros(0, np.int64)

    def rows(self) -> Rows:
        """Return the rows of all nodes in upstream's order."""
        log = self._table.node_log
        changed = log.since(self._position) if self._position >= 0 else None
        self._position = log.position
        if changed is None:
            self._zones.clear()
            self._placed.clear()
            changed = [node.row for node in self._table.nodes()]
        moved = [row for row in dict.fromkeys(changed) if self._move(row)]
        if moved:
            rounds = zip_longest(*(zone.values() for zone in self._zones.values()), fillvalue=-1)
            self._rows = np.array([row for row in chain(*rounds) if row >= 0], np.int64)
        return self._rows

    def _move(self, row: int) -> bool:
        """Update the zone and position of the node at `row`; return whether they changed."""
        now = self._identity(row)
        before = self._placed.get(row)
        if now == before:
            return False
        if before is not None:
            name, zone = before
            del self._placed[row], self._zones[zone][name]
            if not self._zones[zone]:
                del self._zones[zone]
        if now is not None:
            name, zone = self._placed[row] = now
            self._zones.setdefault(zone, {})[name] = row
        return True

    def _identity(self, row: int) -> tuple[str, Zone] | None:
        if not self._table.alive[row]:
            return None
        node = self._table.at(row)
        return node.name, region_and_zone(node.labels)
