"""Computes how many NodeClaims to create for a static NodePool, and which to delete.

A static NodePool has `spec.replicas`, the number of nodes to keep.

upstream: pkg/controllers/static/provisioning/controller.go, static/deprovisioning/controller.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.karpenter.apis import LAUNCHED, NodeClaim, NodePool
from fairlead.engine.autoscaling.karpenter.eviction_cost import (
    eviction_cost,
    lifetime_remaining,
)
from fairlead.engine.autoscaling.karpenter.pod import has_do_not_disrupt, is_owned_by
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.pool_count import (
    PoolCount,
    node_limit,
    pool_count,
)
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import Instant

REQUEUE_S: Final = 60
REQUEUE_AT_LIMIT_S: Final = 30


def missing_claims(pool: NodePool, count: PoolCount) -> int:
    """Return the number of NodeClaims to create now, within the pool's limit on nodes."""
    wanted = (pool.spec.replicas or 0) - count.active
    if count.active + count.pending_disruption >= (pool.spec.replicas or 0):
        return 0
    limit = node_limit(pool)
    if limit is None:
        return wanted
    room = limit - count.active - count.deleting - count.pending_disruption
    return max(0, min(wanted, room))


def requeue_s(pool: NodePool, count: PoolCount) -> int:
    """Return the seconds until the pool's next check."""
    wants_more = count.active + count.pending_disruption < (pool.spec.replicas or 0)
    return REQUEUE_AT_LIMIT_S if wants_more and not missing_claims(pool, count) else REQUEUE_S


def surplus_claims(
    cluster: KarpenterCluster, pool: NodePool, pending: frozenset[str], now: Instant
) -> list[NodeClaim]:
    """Return the NodeClaims to delete so that the pool keeps only `spec.replicas` of them.

    NodeClaims that are not launched are chosen first, then NodeClaims with empty nodes. Then come
    NodeClaims without a pod that has the annotation `do-not-disrupt`, and finally all other
    NodeClaims. Within each of these four groups, the NodeClaims with the lowest disruption cost are
    chosen first. The disruption cost of a NodeClaim is the eviction cost of its pods times the
    remaining share of the NodeClaim's lifetime.
    """
    count = pool_count(cluster, pool, pending, now)
    surplus = count.active - (pool.spec.replicas or 0)
    if surplus <= 0:
        return []
    nodes = {node.claim.name: node for node in cluster.nodes(now) if node.claim is not None}
    active = [
        one
        for name, one in sorted(cluster.node_claims.items())
        if one.node_pool == pool.name
        and name not in pending
        and not one.metadata.deletion_timestamp
        and not (name in nodes and nodes[name].marked_for_deletion)
    ]

    def rank(claim: NodeClaim) -> tuple[bool, bool, bool, float]:
        node = nodes.get(claim.name)
        pods = cluster.pods_on(node.node_name).pods if node is not None else ()
        if all(_need_not_be_rescheduled(pod, now) for pod in pods):
            return claim.is_true(LAUNCHED), False, False, 0.0
        protected = any(has_do_not_disrupt(pod, now) for pod in pods)
        cost = float_sum(map(eviction_cost, pods)) * lifetime_remaining(claim, now)
        return claim.is_true(LAUNCHED), True, protected, cost

    return sorted(active, key=rank)[:surplus]


def _need_not_be_rescheduled(pod: Pod, now: Instant) -> bool:
    return is_owned_by(pod, "DaemonSet") and not has_do_not_disrupt(pod, now)
