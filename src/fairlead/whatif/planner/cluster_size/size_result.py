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
    """The result of a search; `nodes` contains the offers of the new nodes, by node name.

    `unplaceable` contains the pods that fit no node on offer, each with the reason. `pinned`
    contains (pod, failure) for pods that fit no node on offer after the failure, each with the
    reason. `held` contains (pod, failure) for pods that a topology spread constraint keeps pending
    while the failed nodes' Node objects exist. `obstacles` counts the reasons why nodes cannot be
    removed. `tried` is the number of failures that were tried on the final nodes. `survives` is set
    if every pod survives each of these failures, except for the pairs in `pinned`. If several nodes
    fail at a time, each failure is a set of nodes. `sets` is the number of all such sets.
    `sets_covered` is the number of sets whose result is known: the sets that are tried, and the
    sets that are equivalent to a tried set.

    `cycles` is the number of scheduling cycles. `tried_all_changes` is set if the search ended
    because it had no change left to try. If it is set, a larger effort gives the same result.
    `waiting_at_once` is the number of pods that would find no final node if all pods were created
    at one instant. Three fields are about the nodes before the search. `waiting_today` is the
    number of pods without a node. `tried_today` is the number of failures that were tried, and
    `losses_today` are the failures that these nodes do not survive. `image_notes` say which pods
    are placed only on nodes on which their images run (`ImageRule`).
    """

    nodes: dict[str, NodeOffer] = field(default_factory=dict)
    unplaceable: dict[str, str] = field(default_factory=dict)
    pinned: dict[tuple[str, str], str] = field(default_factory=dict)
    held: dict[tuple[str, str], SpreadBlock] = field(default_factory=dict)
    obstacles: dict[str, int] = field(default_factory=dict)
    bound: SizeBound = field(default_factory=lambda: SizeBound(0.0))
    tried: int = 0
    survives: bool = True
    tried_all_changes: bool = False
    sets_covered: int = 0
    sets: int = 0
    cycles: int = 0
    waiting_at_once: int = 0
    waiting_today: int = 0
    losses_today: list[TodaysLoss] = field(default_factory=list)
    tried_today: int = 0
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
