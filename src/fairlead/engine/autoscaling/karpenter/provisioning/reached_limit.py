"""Finds the limits of NodePools without which pending pods would get new nodes.

Karpenter compares a pod with a NodePool only if the limits of the NodePool allow another node. So
its error text also names NodePools whose nodes would not suit the pod. Here, a pass without the
limits of a NodePool shows whether the pod would get a node of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.quantity import amount_text
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.scheduler import (
    LIMITS_EXCEEDED,
    NODES_EXHAUSTED,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.pool_count import limited_use
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.engine.core.instant import Instant


def reached_limits(
    provisioner: Provisioner, cluster: KarpenterCluster, errors: Mapping[str, str], now: Instant
) -> dict[str, tuple[ReachedLimit, ...]]:
    """Return the limits because of which the pods in `errors` get no node, by the key of the pod.

    `errors` has the error text of each pod. Pods without such limits are left out. Only one pod of
    each controller is examined.
    """
    found: dict[str, tuple[ReachedLimit, ...]] = {}
    samples = {
        _owner(pod): pod
        for key in sorted(errors, reverse=True)
        if (pod := cluster.unbound_pods.get(key)) is not None
    }
    by_owner: dict[str, list[ReachedLimit]] = {}
    for pool in provisioner.usable_pools():
        texts = [one.format(pool.name) for one in (LIMITS_EXCEEDED, NODES_EXHAUSTED)]
        named = [pod for pod in samples.values() if any(text in errors[pod.key] for text in texts)]
        fitting = provisioner.fitting_without_limits(pool.name, named, now)
        for pod in named:
            if pod.key in fitting:
                by_owner.setdefault(_owner(pod), []).append(_limit(pool, cluster, now))
    for key in errors:
        pod = cluster.unbound_pods.get(key)
        if pod is not None and (limits := by_owner.get(_owner(pod))):
            found[key] = tuple(limits)
    return found


def _owner(pod: Pod) -> str:
    """Return the uid of the pod's controller; without a controller, the key of the pod."""
    owner = controller_of(pod.metadata)
    return pod.key if owner is None else owner.uid


def _limit(pool: NodePool, cluster: KarpenterCluster, now: Instant) -> ReachedLimit:
    """Return the limits of `pool`, with the capacity of its nodes."""
    used = limited_use(cluster, pool, now)
    parts = (
        f"{name} {limit}, {amount_text(name, used[name])} in use"
        for name, limit in sorted(pool.spec.limits.items())
    )
    return ReachedLimit("NodePool", pool.name, "; ".join(parts))
