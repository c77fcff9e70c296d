"""Counts the NodeClaims and resources of a NodePool, and compares them with its limits.

upstream: pkg/controllers/state/nodepoolstate.go, cluster.go:NodePoolResourcesFor
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.engine.autoscaling.karpenter.state.usage import NODES
from fairlead.engine.core.instant import Instant


class PoolCount(Struct, frozen=True):
    """The number of NodeClaims of a pool in each of three states.

    `deleting` counts the NodeClaims that are being deleted. `pending_disruption` counts the
    NodeClaims that a disruption command is about to replace. `active` counts all other NodeClaims.
    """

    active: int
    deleting: int
    pending_disruption: int


def pool_count(
    cluster: KarpenterCluster, pool: NodePool, pending: frozenset[str], now: Instant
) -> PoolCount:
    """Count the NodeClaims of `pool`.

    `pending` are the names of the NodeClaims that a disruption command is about to replace.
    """
    going = {
        node.claim.name for node in cluster.nodes(now) if node.claim and node.marked_for_deletion
    }
    names = [name for name, one in cluster.node_claims.items() if one.node_pool == pool.name]
    deleting = sum(name in going and name not in pending for name in names)
    waiting = sum(name in pending for name in names)
    return PoolCount(len(names) - deleting - waiting, deleting, waiting)


def node_limit(pool: NodePool) -> int | None:
    """Return the pool's limit on the number of nodes, or None."""
    return amounts(pool.spec.limits).get(NODES)


def exceeds_limits(cluster: KarpenterCluster, pool: NodePool, now: Instant) -> bool:
    """Return whether the nodes of `pool` have more capacity than its limits allow.

    Nodes that are being removed do not count.
    """
    # upstream: pkg/apis/v1/nodepool.go:Limits.ExceededBy
    limits = amounts(pool.spec.limits)
    used = limited_use(cluster, pool, now)
    return any(used[name] > limit for name, limit in limits.items())


def limited_use(cluster: KarpenterCluster, pool: NodePool, now: Instant) -> dict[str, int]:
    """Return, for each resource that `pool` limits, the capacity of the pool's nodes.

    Nodes that are being removed do not count.
    """
    if not pool.spec.limits:
        return {}
    used = dict.fromkeys(pool.spec.limits, 0)
    for node in cluster.nodes(now):
        if node.node_pool == pool.name and not node.marked_for_deletion:
            for name, amount in ({**node.capacity, NODES: 1}).items():
                if name in used:
                    used[name] += amount
    return used
