"""Survival: the failures that a set of nodes must survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.well_known_label import ZONE
from fairlead.engine.state.node_info import NodeInfo

_FULLNESS: Final[dict[str, Callable[[NodeInfo], int]]] = {
    "cpu": lambda info: info.requested[0],
    "memory": lambda info: info.requested[1],
    "pods": lambda info: len(info.pods),
}


class Survival(Struct, frozen=True):
    """The failures to survive: of a zone (if `zones` is set), and of `nodes` nodes at a time.

    If `nodes` is more than 1, only the worst sets of nodes are tried.
    """

    zones: bool = False
    nodes: int = 0

    @property
    def is_any(self) -> bool:
        """Whether any failure must be survived."""
        return self.zones or self.nodes > 0

    def failures(self, infos: Sequence[NodeInfo]) -> Iterator[tuple[str, list[str]]]:
        """Yield (name, failed nodes) for each failure of the nodes `infos`."""
        if self.zones:
            for zone in _zones(infos):
                yield f"zone {zone}", [info.name for info in _in_zone(infos, zone)]
        if self.nodes == 1:
            for info in infos:
                yield f"node {info.name}", [info.name]
        elif self.nodes > 1:
            yield from self._worst_sets(infos)

    def _worst_sets(self, infos: Sequence[NodeInfo]) -> Iterator[tuple[str, list[str]]]:
        """Yield (name, nodes) for sets of nodes whose failure is hard to survive.

        These are the nodes with the most requested cpu, with the most requested memory and with the
        most pods, of all nodes and of each zone. There are too many other sets to try them all.
        """
        for zone in ["", *_zones(infos)]:
            there = _in_zone(infos, zone) if zone else infos
            for what, amount in _FULLNESS.items():
                worst = sorted(there, key=lambda info: (-amount(info), info.name))[: self.nodes]
                where = f" of {zone}" if zone else ""
                yield f"the {self.nodes} nodes{where} with most {what}", [one.name for one in worst]


def _zones(infos: Sequence[NodeInfo]) -> list[str]:
    """Return the zones of `infos`, sorted."""
    return sorted({info.labels.get(ZONE, "") for info in infos} - {""})


def _in_zone(infos: Sequence[NodeInfo], zone: str) -> list[NodeInfo]:
    return [info for info in infos if info.labels.get(ZONE, "") == zone]
