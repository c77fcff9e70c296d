"""Timed outages: the events of a scenario that let nodes fail.

{at: 5m, fail-zone: zone-a, for: 20m}
{at: 5m, fail-node: pool=a, how: paused, for: 20m}
{at: 5m, fail-fraction: 0.6@zone-a, for: 20m}
{at: 5m, flap: node-1@60s/120s, for: 1h}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.node_choice import share_of_nodes, zone_nodes
from fairlead.whatif.outage import STOPPED, Outage, flapping, read_behaviour

FAILING: Final = ("fail_zone", "fail_node", "fail_fraction", "flap")


class _Failing(Protocol):
    """An event of which exactly one of the verbs is given."""

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


@dataclass(frozen=True, slots=True)
class Where:
    """The file, the event's field in it, and the verb; for what is said about them."""

    source: str
    field: str
    verb: str

    def below(self, name: str) -> str:
        """Where `name` of the event stands."""
        return f"{self.source}: {self.field}.{name}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What an event says, of which nodes, and the seed that settles shares of them."""

    event: _Failing
    inventory: Inventory
    seed: int

    def nodes(self, where: Where) -> tuple[list[str], str]:
        """Which nodes, and how they behave. Raises InputError."""
        event, inventory, verb = self.event, self.inventory, where.below(where.verb)
        how = STOPPED if event.how is None else read_behaviour(where.below("how"), event.how)
        if event.fail_zone is not None:
            return zone_nodes(verb, event.fail_zone, inventory), how
        if event.fail_fraction is not None:
            return share_of_nodes(verb, str(event.fail_fraction), inventory, self.seed), how
        if event.flap is not None:
            return flapping(verb, event.flap, inventory)
        return inventory.nodes(verb, event.fail_node or ""), how


def outage_of(where: Where, chosen: Chosen, at: DurationNs, lasts: DurationNs | None) -> Outage:
    """The outage that begins at `at` and `lasts`, None for good. Raises InputError."""
    nodes, how = chosen.nodes(where)
    if lasts == 0:
        problem = "an outage of no length changes nothing"
        raise InputError(where.source, problem, field=f"{where.field}.for")
    return Outage(
        source=where.source,
        what=f"{where.field}.{where.verb}",
        nodes=tuple(nodes),
        at=at,
        lasts=lasts,
        behaviour=how,
    )
