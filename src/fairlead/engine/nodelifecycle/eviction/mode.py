"""EvictionMode: what happens to a node that gets a token of its zone; upstream has two modes.

Since 1.13 not-ready nodes get NoExecute taints, and pods are evicted for not tolerating them
(`NoExecuteTaintMode`). Before 1.13, and with the gate TaintBasedEvictions off, the pods of a node
are deleted once its heartbeat has been overdue for long enough (`PodEvictionMode`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.zones.zone_queues import ZoneQueues


@dataclass(frozen=True, slots=True)
class Observation:
    """A node as seen by the pass at `now`; `status` is the Ready status that the mode acts on.

    `last_pass` is the time of the previous pass.
    """

    node: Node
    zone: str
    status: str
    health: NodeHealth
    now: Instant
    last_pass: Instant

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name


class EvictionMode(Protocol):
    """Reacts to the Ready status found by passes, and processes queued nodes."""

    @property
    def queues(self) -> ZoneQueues:
        """The queues of nodes that wait for a token."""
        ...

    def on_not_ready(self, seen: Observation) -> list[Command]:
        """Handle a pass that found the node not ready or unreachable."""
        ...

    def on_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """Handle a pass that found the node ready or new, or that stopped all evictions."""
        ...

    def next_check(self, status: str, health: NodeHealth) -> Instant | None:
        """Return when a pass must act although nothing has changed, None for never."""
        ...

    def process(self, zone: str, name: str, now: Instant) -> list[Command]:
        """Handle a node that got a token; finish or retry its queue entry."""
        ...
