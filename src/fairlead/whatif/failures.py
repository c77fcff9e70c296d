"""Failures: which nodes a what-if lets fail, how, when and for how long, as the user wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.node_choice import share_of_nodes, zone_nodes
from fairlead.whatif.outage import STOPPED, Outage, flapping, read_behaviour, without_twice
from fairlead.whatif.strict import field_duration

NO_FAILURE: Final = "belongs to --fail-zone, --fail-node, --fail-fraction or --flap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """`how` is a kubelet's behaviour, `at` and `lasts` are durations; "" where nothing was said."""

    fail_zone: tuple[str, ...] = ()
    fail_node: tuple[str, ...] = ()
    fail_fraction: tuple[str, ...] = ()
    flap: tuple[str, ...] = ()
    how: str = ""
    at: str = ""
    lasts: str = ""

    @property
    def words(self) -> list[str]:
        """As on the command line; `--for` is not here, for drains have it, too."""
        parts = {
            "--fail-zone": self.fail_zone,
            "--fail-node": self.fail_node,
            "--fail-fraction": self.fail_fraction,
            "--flap": self.flap,
            "--how": (self.how,) if self.how else (),
            "--at": (self.at,) if self.at else (),
        }
        return [f"{option} {value}" for option, values in parts.items() for value in values]

    @property
    def are_asked_for(self) -> bool:
        """Whether any node is to fail."""
        return bool(self.fail_zone or self.fail_node or self.fail_fraction or self.flap)

    def outages(self, inventory: Inventory, seed: int) -> list[Outage]:
        """What happens to which node, each in one outage only. Raises InputError."""
        self._refuse_loose_ends()
        at, lasts = option_duration("--at", self.at) or 0, option_duration("--for", self.lasts)
        if lasts == 0:
            raise InputError("--for", "an outage of no length changes nothing")
        return [
            replace(outage, at=at, lasts=lasts)
            for outage in without_twice(self._outages(inventory, seed))
        ]

    def _refuse_loose_ends(self) -> None:
        if self.at and not self.are_asked_for:
            raise InputError("--at", NO_FAILURE)
        if self.how and not (self.fail_zone or self.fail_node or self.fail_fraction):
            raise InputError("--how", "belongs to --fail-zone, --fail-node or --fail-fraction")

    def _outages(self, inventory: Inventory, seed: int) -> Iterator[Outage]:
        how = read_behaviour("--how", self.how) if self.how else STOPPED
        chosen = [
            *(("--fail-zone", text, zone_nodes) for text in self.fail_zone),
            *(("--fail-node", text, _named) for text in self.fail_node),
        ]
        for option, text, choose in chosen:
            yield _outage(option, text, choose(option, text, inventory), how)
        for text in self.fail_fraction:
            nodes = share_of_nodes("--fail-fraction", text, inventory, seed)
            yield _outage("--fail-fraction", text, nodes, how)
        for text in self.flap:
            yield _outage("--flap", text, *flapping("--flap", text, inventory))


def option_duration(option: str, text: str) -> DurationNs | None:
    """The duration after `option`, None where there is none. Raises InputError."""
    return field_duration(option, "", text) if text else None


def _named(option: str, text: str, inventory: Inventory) -> list[str]:
    return inventory.nodes(option, text)


def _outage(option: str, text: str, nodes: list[str], how: str) -> Outage:
    return Outage(source=option, what=text, nodes=tuple(nodes), behaviour=how)
