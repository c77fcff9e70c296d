"""EvictionMode: the interface of upstream's two ways to evict the pods of not-ready nodes.

Since 1.13, not-ready nodes get NoExecute taints, which evict pods (`NoExecuteTaintMode`). Before
1.13, the pods of a node are deleted once the node has been not ready for long enough
(`PodEvictionMode`). `PodEvictionMode` also applies to newer versions if the gate
TaintBasedEvictions or the taint manager is disabled.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.zones.zone_queues import ZoneQueues


class Observation(Struct, frozen=True):
    """A node, and the findings of the monitor pass at `now` about this node.

    `status` is the Ready status on which the eviction mode acts. `last_pass` is the time of the
    previous pass.
    """

    node: Node
    zone: str
    status: str
    health: NodeHealth
    now: Instant
    last_pass: Instant

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.metadata.name


class EvictionMode(Protocol):
    """Queues each node that a monitor pass finds not ready, and processes queued nodes."""

    @property
    def queues(self) -> ZoneQueues:
        """The nodes that wait for eviction, in one rate-limited queue per zone."""
        ...

    def on_not_ready(self, seen: Observation) -> list[Command]:
        """Handle a node that a pass found not ready or unreachable; return the resulting writes."""
        ...

    def on_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """Remove a ready or new node from the queue of `zone`; return the resulting writes.

        When all evictions stop, the monitor calls this method for every node, even for nodes that
        are not ready.
        """
        ...

    def next_check(self, status: str, health: NodeHealth) -> Instant | None:
        """Return the time from which a pass must act on the node even if the node has not changed.

        Returns None if there is no such time.
        """
        ...

    def process(self, zone: str, name: str, now: Instant) -> list[Command]:
        """Process the node `name`, which the rate limiter accepted; return the writes.

        Also marks the node's queue entry as handled, or schedules a retry.
        """
        ...
