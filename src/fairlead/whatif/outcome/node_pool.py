"""NodePoolOutcome: the nodes of one pool with and without a change.

Nodes with the same value of a label form a pool; the labels of managed node pools are recognised.
Without such a label, all nodes are one pool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.whatif.outcome.run_outcome import NodeEnd, RunOutcome
from fairlead.whatif.snapshot.node_pool import pool_label

ALL_NODES: Final = "all nodes"
NO_POOL: Final = "no pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolOutcome:
    """A pool at the end of both runs.

    `nodes` is their number with the change, `cordoned` the number of unschedulable ones. Amounts
    are by resource, cpu in millicores, others in units; `pods` is a resource, too.
    """

    name: str
    nodes: int
    nodes_without: int
    cordoned: int
    allocatable: Mapping[str, int]
    allocatable_without: Mapping[str, int]
    requested: Mapping[str, int]
    requested_without: Mapping[str, int]
    is_cordoned_anew: bool

    @property
    def differs(self) -> bool:
        """Return whether the change affects the pool's nodes or its pods' requests."""
        return (
            self.nodes != self.nodes_without
            or self.is_cordoned_anew
            or self.requested != self.requested_without
        )


def node_pools(without: RunOutcome, changed: RunOutcome, label: str = "") -> list[NodePoolOutcome]:
    """Return the pools, sorted by name.

    Nodes with equal `label` ("": a recognised one) form a pool.
    """
    label = label or pool_label(node.labels for node in (*changed.nodes, *without.nodes))
    after, before = _by_pool(changed.nodes, label), _by_pool(without.nodes, label)
    return [
        NodePoolOutcome(
            name=name,
            nodes=len(after[name]),
            nodes_without=len(before[name]),
            cordoned=len(_cordoned(after[name])),
            allocatable=_sum(node.allocatable for node in after[name]),
            allocatable_without=_sum(node.allocatable for node in before[name]),
            requested=_sum(node.requested for node in after[name]),
            requested_without=_sum(node.requested for node in before[name]),
            is_cordoned_anew=_cordoned(after[name]) != _cordoned(before[name]),
        )
        for name in sorted({*after, *before})
    ]


def _by_pool(nodes: Iterable[NodeEnd], label: str) -> dict[str, list[NodeEnd]]:
    pools: dict[str, list[NodeEnd]] = defaultdict(list)
    for node in nodes:
        pools[(node.labels.get(label) or NO_POOL) if label else ALL_NODES].append(node)
    return pools


def _cordoned(nodes: Iterable[NodeEnd]) -> set[str]:
    return {node.name for node in nodes if node.unschedulable}


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)
