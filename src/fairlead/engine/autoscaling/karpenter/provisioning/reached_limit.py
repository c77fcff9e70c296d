"""Finds the NodePool limits without which pending pods would get new nodes.

Karpenter compares a pod with a NodePool only if the limits of the NodePool allow another node. So
Karpenter's error text names each NodePool whose limits are reached, even if its nodes would not
suit the pod. Here, a simulated pass that ignores the limits of a NodePool shows whether the pod
would get a node of this NodePool. A limit of this NodePool is named if it alone keeps the pod from
getting a node. `_reached` explains the case in which several limits do so only together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.quantity import rounded_text
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.scheduler import (
    LIMITS_EXCEEDED,
    NODES_EXHAUSTED,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.pool_count import limited_use
from fairlead.engine.autoscaling.karpenter.state.storage import claim_keys
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.engine.core.instant import Instant


def reached_limits(
    provisioner: Provisioner, cluster: KarpenterCluster, errors: Mapping[str, str], now: Instant
) -> dict[str, tuple[ReachedLimit, ...]]:
    """Return {pod key: limits that keep the pod from getting a node}.

    `errors` maps the keys of the pods without a node to the error texts. Pods that no limit keeps
    from getting a node are left out. Of pods with equal requirements, only one is examined, because
    a provisioning pass with many pods takes a long time.
    """
    unbound = (cluster.unbound_pods.get(key) for key in errors)
    groups: defaultdict[Hashable, list[Pod]] = defaultdict(list)
    for pod in unbound:
        if pod is not None:
            groups[_likeness(provisioner, pod)].append(pod)
    samples = {min(pod.key for pod in alike): alike for alike in groups.values()}
    limits: defaultdict[str, list[ReachedLimit]] = defaultdict(list)
    for pool in provisioner.usable_pools():
        texts = [one.format(pool.name) for one in (LIMITS_EXCEEDED, NODES_EXHAUSTED)]
        named = [key for key in samples if any(text in errors[key] for text in texts)]
        pods = [cluster.unbound_pods[key] for key in named]
        fitting = provisioner.fitting_without_limits(pool.name, pods, now)
        limited = [pod for pod in pods if pod.key in fitting]
        reached = _reached(provisioner, pool, limited, now)
        for pod in limited:
            limits[pod.key].append(_limit(pool, reached[pod.key], cluster, now))
    return {pod.key: tuple(found) for key, found in limits.items() for pod in samples[key]}


def _likeness(provisioner: Provisioner, pod: Pod) -> Hashable:
    """Return a value for `pod`; the same NodePools suit all pods with an equal value.

    Pods with equal specs share one PodFacts object, and the value is the Python id of this object.
    PodFacts do not cover affinity to pods, spread constraints and volumes. If the spec has any of
    these, the value is the uid of the pod's controller, or the pod's key if it has no controller.
    """
    spec, owner = pod.spec, controller_of(pod.metadata)
    affinity = spec.affinity
    with_pods = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    if with_pods or spec.topology_spread_constraints or any(claim_keys(pod)):
        return pod.key if owner is None else owner.uid
    return id(provisioner.pending(pod).facts)


def _reached(
    provisioner: Provisioner, pool: NodePool, pods: Sequence[Pod], now: Instant
) -> dict[str, list[str]]:
    """Return {key of a pod in `pods`: names of the limits of `pool` that are reached for it}.

    A limit counts as reached if it alone keeps the pod from getting a node. If there is no such
    limit, several limits together keep the pod from getting a node, because they exclude different
    instance types. The result is then a minimal set of limits: if any limit of the set were lifted,
    the pod would get a node.
    """
    names = sorted(pool.spec.limits)
    if len(names) == 1 or not pods:
        return {pod.key: names for pod in pods}
    fitting = {
        name: provisioner.fitting_without_limits(pool.name, pods, now, kept=(name,))
        for name in names
    }
    found = {pod.key: [name for name in names if pod.key not in fitting[name]] for pod in pods}
    for pod in pods:
        if not found[pod.key]:
            found[pod.key] = kept = names
            for name in names:
                others = [one for one in kept if one != name]
                if not provisioner.fitting_without_limits(pool.name, (pod,), now, kept=others):
                    found[pod.key] = kept = others
    return found


def _limit(
    pool: NodePool, names: Sequence[str], cluster: KarpenterCluster, now: Instant
) -> ReachedLimit:
    """Return the limits `names` of `pool`, with the capacity of its nodes."""
    used = limited_use(cluster, pool, now)
    parts = (
        f"{name} {pool.spec.limits[name]}, {rounded_text(name, used[name])} in use"
        for name in names
    )
    return ReachedLimit("NodePool", pool.name, "; ".join(parts))
