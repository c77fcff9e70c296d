"""Timed outages: the events of a scenario that make nodes fail.

{at: 5m, fail-zone: zone-a, for: 20m}                 all nodes of the zone
{at: 5m, fail-node: pool=a, how: paused, for: 20m}    the nodes that match a name or selector
{at: 5m, fail-fraction: 0.6@zone-a, for: 20m}         60% of the nodes of the zone
{at: 5m, flap: node-1@60s/120s, for: 1h}              repeatedly down for 60 s, up for 120 s
"""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change.node_outage.node_selection import (
    fraction_of_nodes,
    labels_of_zone,
    zone_nodes,
)
from fairlead.whatif.change.node_outage.outage import STOPPED, Outage, flapping, read_behaviour
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory

FAILURE_FIELDS: Final = ("fail_zone", "fail_node", "fail_fraction", "flap")


class _Failing(Protocol):
    """An event with exactly one of the verbs `fail-zone`, `fail-node`, `fail-fraction`, `flap`."""

    @property
    def fail_zone(self) -> str | None: ...
    @property
    def fail_node(self) -> str | None: ...
    @property
    def fail_fraction(self) -> str | float | None: ...
    @property
    def flap(self) -> str | None: ...
    @property
    def how(self) -> str | None: ...


class EventField(Struct, frozen=True):
    """The file of an event, the event's path in the file, and its verb, for error messages."""

    source: str
    field: str
    verb: str

    def below(self, name: str) -> str:
        """Return the full path of the event's field `name`."""
        return f"{self.source}: {self.field}.{name}"


class NodeFailure(Struct, frozen=True):
    """An event that makes nodes fail; `seed` selects the nodes if a fraction of all nodes fails."""

    event: _Failing
    inventory: Inventory
    seed: int

    def nodes(self, where: EventField) -> tuple[list[str], str]:
        """Return (failing nodes, their behaviour). Raises InputError."""
        event, inventory, verb = self.event, self.inventory, where.below(where.verb)
        how = STOPPED if event.how is None else read_behaviour(where.below("how"), event.how)
        if event.fail_zone is not None:
            return zone_nodes(verb, event.fail_zone, inventory), how
        if event.fail_fraction is not None:
            return fraction_of_nodes(verb, str(event.fail_fraction), inventory, self.seed), how
        if event.flap is not None:
            return flapping(verb, event.flap, inventory)
        return inventory.nodes(verb, event.fail_node or ""), how


def outage_of(
    where: EventField, failure: NodeFailure, at: DurationNs, lasts: DurationNs | None
) -> Outage:
    """Return the outage that begins at `at`, permanent if `lasts` is None. Raises InputError."""
    nodes, how = failure.nodes(where)
    is_zone = failure.event.fail_zone is not None
    if lasts == 0:
        problem = "an outage of length 0 has no effect"
        raise InputError(where.source, problem, field=f"{where.field}.for")
    return Outage(
        source=where.source,
        what=f"{where.field}.{where.verb}",
        nodes=tuple(nodes),
        at=at,
        lasts=lasts,
        behaviour=how,
        zone=labels_of_zone(nodes, failure.inventory) if is_zone else {},
    )
