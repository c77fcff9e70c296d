"""Eviction: what a zone's rate limits, as the two modes of upstream have it.

Since 1.13 nodes get NoExecute taints and pods are evicted for not tolerating them
(`NoExecuteTainting`); before, and with the gate TaintBasedEvictions off, the pods of a node were
deleted once it had been quiet for long enough (`PodEviction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.node_health import NodeHealth
from fairlead.engine.nodelifecycle.zone_queues import ZoneQueues


@dataclass(frozen=True, slots=True)
class Sighting:
    """A node as the pass at `now` sees it; `status` of Ready is what the mode goes by.

    `last_pass` is the pass before.
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


class Eviction(Protocol):
    """Reacts to what passes see, and to turns in the zones' queues."""

    @property
    def queues(self) -> ZoneQueues:
        """The nodes whose turn will come."""
        ...

    def see_unready(self, seen: Sighting) -> list[Command]:
        """A pass saw the node not ready, or unreachable."""
        ...

    def see_ready(self, node: Node, zone: str, now: Instant) -> list[Command]:
        """A pass saw the node ready, or for the first time, or stopped all evictions."""
        ...

    def reconsider_at(self, status: str, health: NodeHealth) -> Instant | None:
        """After when a pass would do something it does not do yet though nothing changes."""
        ...

    def take_turn(self, zone: str, name: str, now: Instant) -> list[Command]:
        """The node's turn has come; finishes or retries its entry in the queue."""
        ...
