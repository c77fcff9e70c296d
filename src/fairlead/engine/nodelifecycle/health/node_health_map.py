"""NodeHealthMap: the state of every node, from API objects and from earlier passes.

The saved health outlives the Node object, as in upstream's map. A new node inherits the time of the
last heartbeat of an earlier node with its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fairlead.api.lease import Renewals
from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth, caught_up
from fairlead.engine.nodelifecycle.period import Period


class NodeRecord(Struct):
    """The state of a node, which is identified by its name."""

    last_pass: Instant  # the last pass that `health` includes
    node: Node | None = None  # the newest version of the Node, None if it does not exist
    renewals: Renewals | None = None  # the renewals of the node's lease
    # The Node as it was when the controller registered the node, None if the node is not
    # registered.
    registered: Node | None = None
    health: NodeHealth | None = None  # the NodeHealth after all passes up to `last_pass`


class NodeHealthMap:
    """The record of every node that was ever observed, by name."""

    def __init__(self, passes: Period) -> None:
        """`passes` are the times of all monitor passes."""
        self._passes = passes
        self._records: dict[str, NodeRecord] = {}

    def __getitem__(self, name: str) -> NodeRecord:
        """Return the record of `name`. A missing record is created."""
        record = self._records.get(name)
        if record is None:
            begin = self._passes.first - self._passes.period
            record = self._records[name] = NodeRecord(begin)
        return record

    def find(self, name: str) -> Node | None:
        """Return the newest version of the node `name`; None if the node does not exist."""
        record = self._records.get(name)
        return None if record is None else record.node

    def health_of(self, name: str) -> NodeHealth | None:
        """Return the saved health of the node `name`; None if no pass has examined the node."""
        record = self._records.get(name)
        return None if record is None else record.health

    def existing(self) -> Iterator[tuple[str, NodeRecord, Node]]:
        """Yield (name, record, Node) for each existing node, ordered by name."""
        for name in sorted(self._records):
            record = self._records[name]
            if record.node is not None:
                yield name, record, record.node

    def catch_up(self, name: str, last_pass: Instant) -> NodeRecord:
        """Return the record of `name`, updated as if all passes up to `last_pass` had run."""
        record = self[name]
        if last_pass > record.last_pass:
            record.health = caught_up(record.health, record.renewals, last_pass, self._passes)
            record.last_pass = last_pass
        return record
