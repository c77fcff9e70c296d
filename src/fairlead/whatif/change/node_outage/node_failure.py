"""Failures: the node failures of a what-if, with the kind of failure and its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change.node_outage.node_selection import (
    fraction_of_nodes,
    labels_of_zone,
    zone_nodes,
)
from fairlead.whatif.change.node_outage.outage import (
    STOPPED,
    Outage,
    flapping,
    read_behaviour,
    without_duplicates,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.option_type import refuse_wrong_types
from fairlead.whatif.input.strict_form import field_duration
from fairlead.whatif.snapshot.inventory import Inventory

NO_FAILURE: Final = "needs --fail-zone, --fail-node, --fail-fraction or --flap"


class Failures(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The nodes that fail in a what-if, how they fail, and when.

    `how` names the behaviour of the failed kubelets. `at` is the time from the change to the
    failure, as a text such as `10m`. `ClusterChange.lasts` is the duration of the failure.
    """

    fail_zone: tuple[str, ...] = ()
    fail_node: tuple[str, ...] = ()
    fail_fraction: tuple[str, ...] = ()
    flap: tuple[str, ...] = ()
    how: str = ""
    at: str = ""

    def __post_init__(self) -> None:
        """Raise InputError if a field has a value of another type than its annotation."""
        refuse_wrong_types(self)

    @property
    def words(self) -> list[str]:
        """The failures as command-line options. `--for` is left out: it also applies to drains."""
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
    def is_any(self) -> bool:
        """Whether any node fails."""
        return bool(self.fail_zone or self.fail_node or self.fail_fraction or self.flap)

    def outages(self, inventory: Inventory, seed: int, duration: str) -> list[Outage]:
        """Return the outages; if several outages select a node, only the first one contains it.

        `seed` selects the nodes of --fail-fraction. `duration` is the value of --for; if it is "",
        the outages do not end. Raises InputError, also if a node fails in two different ways.
        """
        self._refuse_unused_options()
        at, lasts = option_duration("--at", self.at) or 0, option_duration("--for", duration)
        if lasts == 0 and self.is_any:
            raise InputError("--for", "an outage of length 0 has no effect")
        return [
            replace(outage, at=at, lasts=lasts)
            for outage in without_duplicates(self._outages(inventory, seed))
        ]

    def _refuse_unused_options(self) -> None:
        if self.at and not self.is_any:
            raise InputError("--at", NO_FAILURE)
        if self.how and not (self.fail_zone or self.fail_node or self.fail_fraction):
            raise InputError("--how", "needs --fail-zone, --fail-node or --fail-fraction")

    def _outages(self, inventory: Inventory, seed: int) -> Iterator[Outage]:
        how = read_behaviour("--how", self.how) if self.how else STOPPED
        for text in self.fail_zone:
            nodes = zone_nodes("--fail-zone", text, inventory)
            zone = labels_of_zone(nodes, inventory)
            yield replace(_outage("--fail-zone", text, nodes, how), zone=zone)
        for text in self.fail_node:
            yield _outage("--fail-node", text, inventory.nodes("--fail-node", text), how)
        for text in self.fail_fraction:
            nodes = fraction_of_nodes("--fail-fraction", text, inventory, seed)
            yield _outage("--fail-fraction", text, nodes, how)
        for text in self.flap:
            yield _outage("--flap", text, *flapping("--flap", text, inventory))


def option_duration(option: str, text: str) -> DurationNs | None:
    """Return the duration `text` of `option`; None if `text` is "". Raises InputError."""
    return field_duration(option, "", text) if text else None


def _outage(option: str, text: str, nodes: list[str], how: str) -> Outage:
    return Outage(source=option, what=text, nodes=tuple(nodes), behaviour=how)
