"""NodeRotation and NodeOrder: limit the search for feasible nodes (percentageOfNodesToScore).

Upstream stops a search when it has found enough feasible nodes, and starts the next search at the
node where it stopped. By default, Fairlead evaluates every node. If percentageOfNodesToScore is
set, Fairlead behaves like upstream with `parallelism: 1`. If upstream has more threads, the number
of nodes that it evaluates depends on timing.
upstream: pkg/scheduler/schedule_one.go: findNodesThatPassFilters, numFeasibleNodesToFind
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Final

import numpy as np

from fairlead.api.well_known_label import region_and_zone
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Rows
from fairlead.engine.state.node_table import NodeTable

ADAPTIVE: Final = 0
_NODES_MIN: Final = 100
_PERCENTAGE_MIN: Final = 5
Zone = tuple[str, str]


def feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """Return the number of feasible nodes after which a search among `nodes` nodes stops.

    The number is `percentage` percent of `nodes`, but at least 100 (or all nodes, if there are
    fewer than 100). If `percentage` is ADAPTIVE, upstream's percentage is used, which decreases as
    `nodes` grows.
    """
    if nodes < _NODES_MIN:
        return nodes
    if percentage == ADAPTIVE:
        percentage = max(50 - nodes // 125, _PERCENTAGE_MIN)
    return max(nodes * percentage // 100, _NODES_MIN)


class NodeRotation:
    """The node at which the next search of any profile of the scheduler starts."""

    def __init__(self, table: NodeTable) -> None:
        """Start the first search at the first node of `table`."""
        self._table = table
        self._order = NodeOrder(table)
        self._start = 0

    def narrow(self, found: Feasibility, percentage: int) -> None:
        """Limit the number of feasible nodes in `found`; move the start of the next search.

        `percentage` is percentageOfNodesToScore, or ADAPTIVE.
        """
        positions = self._positions(found)
        if not len(positions):
            return
        wanted = feasible_nodes_to_find(percentage, len(positions))
        turned = np.roll(positions, -(self._start % len(positions)))
        fitting = np.flatnonzero(found.codes[turned] == 0)
        looked_at = len(positions)
        if len(fitting) > wanted:
            # Upstream stops only when it finds one feasible node more than `wanted`.
            looked_at = int(fitting[wanted])
            found.keep(turned[fitting[:wanted]])
        self._start = (self._start + looked_at) % max(self._table.count, 1)

    def _positions(self, found: Feasibility) -> Rows:
        """Return the positions in `found.plan` of the nodes to evaluate, in upstream's order."""
        rows = self._order.rows()
        if found.plan.node_names is not None:
            at = {row: position for position, row in enumerate(found.plan.rows.tolist())}
            named = [at[row] for row in rows.tolist() if row in at]
            rows = np.array(named, np.int64)
        positions: Rows = rows[found.codes[rows] >= 0]
        return positions


class NodeOrder:
    """Upstream's order of the nodes in a table: round-robin over the zones.

    Zones are sorted by the time at which their first node was added. The nodes of a zone are sorted
    by the time at which they were added. The order takes one node from each zone in rotation.
    upstream: pkg/scheduler/backend/cache/node_tree.go
    """

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
