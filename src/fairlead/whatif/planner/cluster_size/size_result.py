"""SizeResult: the nodes that a search found, the lower bound, and the pods that fit nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from fairlead.api.objects import Node, ResourceList
from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer


class SizeBound(Struct, frozen=True):
    """The proven minimum `cost` per hour of nodes that run the pods.

    `causes` maps each cause (`Requirement.cause`) to the fraction of `cost` that it determines.
    `unit_prices` has a price of one unit of each resource. At these prices, no node is worth more
    than it costs (see `cost_bound`).
    """

    cost: float
    unit_prices: tuple[float, ...] = ()
    causes: dict[str, float] = field(default_factory=dict)


class SpreadBlock(Struct, frozen=True):
    """The topology spread `constraints` of a `workload` that keep one of its pods pending."""

    workload: str
    constraints: str


class TodaysLoss(Struct, frozen=True):
    """A failure of today's nodes, after which pods find no other node.

    `failed` names the failed zone or nodes. `pods` maps each pod that finds no other node to its
    workload.
    """

    failed: str
    pods: dict[str, str]


class SizeResult(Struct):
    """The result of a search.

    If several nodes fail at a time, each failure is a set of nodes. The fields `waiting_today`,
    `losses_today` and `tried_today` are about the nodes before the search.
    """

    # The offers of the new nodes, by node name.
    nodes: dict[str, NodeOffer] = field(default_factory=dict)
    # {pod that fits no node on offer: the reason}
    unplaceable: dict[str, str] = field(default_factory=dict)
    # {(pod, failure): why the pod fits no node on offer after the failure}
    pinned: dict[tuple[str, str], str] = field(default_factory=dict)
    # {(pod, failure): the topology spread constraint} for pods that the constraint keeps pending
    # while the failed nodes' Node objects exist.
    held: dict[tuple[str, str], SpreadBlock] = field(default_factory=dict)
    # Counts the reasons why nodes cannot be removed.
    obstacles: dict[str, int] = field(default_factory=dict)
    bound: SizeBound = field(default_factory=lambda: SizeBound(0.0))
    tried: int = 0  # the number of failures that were tried on the final nodes
    # Whether every pod survives every failure that was tried on the final nodes, except for the
    # pairs in `pinned`.
    survives: bool = True
    # Whether the search ended because it had no change left to try. If so, a larger effort gives
    # the same result.
    tried_all_changes: bool = False
    # The number of sets whose result is known: the sets that are tried, and the sets that are
    # equivalent to a tried set.
    sets_covered: int = 0
    sets: int = 0  # the number of all sets of nodes that can fail at a time
    cycles: int = 0  # the number of scheduling cycles
    # The number of pods that would find no final node if all pods were created at one instant.
    waiting_at_once: int = 0
    waiting_today: int = 0  # the number of pods without a node
    # The failures that the nodes before the search do not survive.
    losses_today: list[TodaysLoss] = field(default_factory=list)
    tried_today: int = 0  # the number of failures that were tried
    # Say which pods are placed only on nodes on which their images run (`ImageRule`).
    image_notes: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """The price of all new nodes per hour."""
        return float_sum(offer.price for offer in self.nodes.values())

    def planned(self, kept: Iterable[Node]) -> list[tuple[Node, ResourceList]]:
        """Return the new nodes and the nodes `kept`, each with its capacity."""
        new = ((offer.node(name).node, offer.capacity) for name, offer in self.nodes.items())
        return [*new, *((node, node.status.capacity) for node in kept)]

    @property
    def is_cheapest(self) -> bool:
        """Whether it is proven that no cheaper set of nodes can run all pods."""
        return not self.unplaceable and not self.pinned and self.is_proven

    @property
    def is_proven(self) -> bool:
        """Whether the lower bound proves that no cheaper nodes can run the pods on `nodes`."""
        return self.cost <= self.bound.cost + 1e-9
