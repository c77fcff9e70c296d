"""NodePoolOutcome: the nodes of one pool with and without a change.

Nodes with the same value of a label form a pool. If no label is given, all nodes are one pool. Only
pods on ready nodes count, because pods on other nodes do not run. Amounts include only schedulable
nodes, which are ready and not cordoned. Pods cannot use the free resources of other nodes. Virtual
nodes are a pool of their own without allocatable amounts, because no machine has these amounts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.well_known_label import is_virtual
from fairlead.whatif.outcome.run_outcome import NodeEnd, RunOutcome
from fairlead.whatif.snapshot.node_pool import PoolNames

ALL_NODES: Final = "all nodes"
MACHINES: Final = "all but virtual nodes"
VIRTUAL_NODES: Final = "virtual nodes"
NO_POOL: Final = "no pool"


class NodePoolOutcome(Struct, frozen=True, kw_only=True):
    """The nodes of one pool at the end of the runs with and without the change.

    Amounts are totals of the schedulable nodes, keyed by resource: CPU in millicores, other
    resources in units. "pods" is one of the resources.
    """

    name: str
    nodes: int  # the number of nodes with the change
    nodes_without: int
    not_ready: int  # the number of `nodes` that are not ready
    not_ready_without: int
    cordoned: int  # the number of `nodes` that are unschedulable
    pods: int  # the number of pods on ready nodes
    pods_without: int
    allocatable: Mapping[str, int]
    allocatable_without: Mapping[str, int]
    requested: Mapping[str, int]
    requested_without: Mapping[str, int]
    is_cordoned_anew: bool  # whether the two runs end with different cordoned nodes in the pool

    @property
    def has_other_nodes(self) -> bool:
        """Whether the pool's nodes differ between the ends of the two runs."""
        return self.is_cordoned_anew or (
            (self.nodes, self.not_ready) != (self.nodes_without, self.not_ready_without)
        )

    @property
    def differs(self) -> bool:
        """Whether the change affects the pool's nodes or its pods' requests."""
        return (
            self.has_other_nodes
            or self.pods != self.pods_without
            or self.requested != self.requested_without
        )


def node_pools(
    without: RunOutcome, changed: RunOutcome, labels: tuple[str, ...]
) -> list[NodePoolOutcome]:
    """Return one pool for each value of the node labels `labels`.

    The pools whose nodes the change affects come first, even if these nodes are back at the end.
    Then come the pools with other differences, and finally the pools without differences. The pools
    of each of these groups are sorted by name. If there are several labels, the first label that a
    node has decides its pool (`PoolNames`). If `labels` is (), all nodes are one pool, except the
    virtual nodes.
    """
    every = [node.labels for node in (*changed.nodes, *without.nodes)]
    names = PoolNames.of(labels, every) if labels else None
    single = MACHINES if any(map(is_virtual, every)) else ALL_NODES

    def pool_of(node: NodeEnd) -> str:
        if is_virtual(node.labels):
            return VIRTUAL_NODES
        return single if names is None else names.name(node.labels) or NO_POOL

    after, before = _by_pool(changed.nodes, pool_of), _by_pool(without.nodes, pool_of)
    pools = [
        NodePoolOutcome(
            name=name,
            nodes=len(after[name]),
            nodes_without=len(before[name]),
            not_ready=sum(not node.is_ready for node in after[name]),
            not_ready_without=sum(not node.is_ready for node in before[name]),
            cordoned=len(_cordoned(after[name])),
            pods=sum(len(node.pods) for node in after[name] if node.is_ready),
            pods_without=sum(len(node.pods) for node in before[name] if node.is_ready),
            allocatable=_allocatable(after[name]),
            allocatable_without=_allocatable(before[name]),
            requested=_sum(node.requested for node in _schedulable(after[name])),
            requested_without=_sum(node.requested for node in _schedulable(before[name])),
            is_cordoned_anew=_cordoned(after[name]) != _cordoned(before[name]),
        )
        for name in sorted({*after, *before})
    ]
    away = _out_of_service(changed) - _out_of_service(without)
    touched = {name for name in after if any(node.name in away for node in after[name])}
    return sorted(
        pools,
        key=lambda pool: (
            not (pool.has_other_nodes or pool.name in touched),
            not pool.differs,
        ),
    )


def _out_of_service(run: RunOutcome) -> set[str]:
    """Return the names of the nodes that failed in `run`, or belonged to a rolling drain."""
    failed = set() if run.outage is None else {one.node for one in run.outage.nodes}
    return failed | {one.node for one in run.drains}


def _by_pool(
    nodes: Iterable[NodeEnd], pool_of: Callable[[NodeEnd], str]
) -> dict[str, list[NodeEnd]]:
    pools: dict[str, list[NodeEnd]] = defaultdict(list)
    for node in nodes:
        pools[pool_of(node)].append(node)
    return pools


def _allocatable(nodes: Iterable[NodeEnd]) -> dict[str, int]:
    return _sum(node.allocatable for node in _schedulable(nodes) if not is_virtual(node.labels))


def _schedulable(nodes: Iterable[NodeEnd]) -> Iterator[NodeEnd]:
    return (node for node in nodes if node.is_schedulable)


def _cordoned(nodes: Iterable[NodeEnd]) -> set[str]:
    return {node.name for node in nodes if node.unschedulable}


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)
