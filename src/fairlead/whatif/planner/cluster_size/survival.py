"""Survival: the failures that a set of nodes must survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from fairlead.api.well_known_label import ZONE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer
from fairlead.whatif.planner.cluster_size.node_set import NodeSets, sets_to_try


class Survival(Struct, frozen=True):
    """The failures to survive: the loss of any zone (`zones`), and of any `nodes` nodes.

    The loss of a zone counts only if `zones` is set. The `nodes` nodes are lost at the same time.
    If `nodes` is more than 1 and there are many sets of nodes, only the worst sets are tried.
    """

    zones: bool = False
    nodes: int = 0

    @property
    def is_any(self) -> bool:
        """Whether there is at least one kind of failure to survive."""
        return self.zones or self.nodes > 0

    def failures(
        self,
        infos: Callable[[], Sequence[NodeInfo]],
        offers: Callable[[], Mapping[str, NodeOffer]],
        *,
        only_hardest: bool = False,
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (name, failed nodes) for each failure.

        `infos` returns the nodes that may fail. `infos` is called again for each zone, because the
        caller may add nodes in between. `offers` returns the offers of the new nodes by name. If
        several nodes fail at a time, `only_hardest` yields only those sets of nodes whose loss is
        hardest to survive. `only_hardest` does not affect failures of a zone or of one node.
        """
        if self.zones:
            for zone in sorted({info.labels.get(ZONE, "") for info in infos()} - {""}):
                yield f"zone {zone}", [info.name for info in _in_zone(infos(), zone)]
        if self.nodes == 1:
            for info in infos():
                yield f"node {info.name}", [info.name]
        elif self.nodes > 1:
            found = self.node_sets(infos(), offers())
            for names in found.sets[: found.hardest] if only_hardest else found.sets:
                yield f"{self.nodes} nodes", names

    def node_sets(self, infos: Sequence[NodeInfo], offers: Mapping[str, NodeOffer]) -> NodeSets:
        """Return the sets of nodes whose simultaneous failure is tried."""
        return sets_to_try(infos, offers, self.nodes)


def _in_zone(infos: Sequence[NodeInfo], zone: str) -> list[NodeInfo]:
    return [info for info in infos if info.labels.get(ZONE, "") == zone]
