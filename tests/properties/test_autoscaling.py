"""Safety properties of the autoscalers, over generated loads.

At every instant, groups and NodePools are within their limits, no eviction breaches a budget, and
no removed node has a pod that blocks its removal.
"""

from __future__ import annotations

from functools import partial

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import DEPLOYMENT, NODE, POD
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import parse_options
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType, instance_types
from fairlead.worlds.simulation.world import SimulatedWorld

START = parse_timestamp("2026-01-01T00:00:00Z")
BEFORE = "2025-12-01T00:00:00Z"
MINIMUM, MAXIMUM, POOL_LIMIT = 2, 5, 6
HEALTHY = 3
SIZE = {"cpu": "4", "memory": "16Gi", "pods": "20"}
KARPENTER_LABELS = {
    "karpenter.sh/nodepool": "default",
    "karpenter.sh/capacity-type": "on-demand",
    "karpenter.sh/registered": "true",
    "karpenter.sh/initialized": "true",
    "node.kubernetes.io/instance-type": "medium",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}


def node(name):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
    labels = {"pool": "a", "topology.kubernetes.io/zone": "z", "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, **KARPENTER_LABELS},
            "creationTimestamp": BEFORE,
        },
        "status": {"capacity": SIZE, "allocatable": SIZE, "conditions": [ready]},
    }


def deployment(name, replicas, annotations=None):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations or {}},
                "spec": {"containers": [container]},
            },
        },
    }


BLOCKS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "guarded", "namespace": "default"},
    "spec": {"minAvailable": HEALTHY, "selector": {"matchLabels": {"app": "guarded"}}},
}


def pool():
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    template = {
        "requirements": [requirement],
        "nodeClassRef": {"group": "x", "kind": "NodeClass", "name": "z"},
        "expireAfter": "Never",
    }
    spec = {
        "template": {"spec": template},
        "limits": {"cpu": str(4 * POOL_LIMIT)},
        "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]},
    }
    return decode_as(NodePool, {"metadata": {"name": "default", "uid": "p"}, "spec": spec})


def config(kind, seed):
    if kind == "karpenter":
        types = instance_types([StatedType("medium", SIZE)], ["z"])
        karpenter = KarpenterConfig(pools=(pool(),), types=types)
        return EngineConfig(start=START, seed=seed, karpenter=karpenter)
    group = NodeGroupSpec(
        id="a", minimum=MINIMUM, maximum=MAXIMUM, labels={"pool": "a"}, template=node("t")
    )
    options = parse_options({"scale-down-delay-after-add": "1m", "scale-down-unneeded-time": "2m"})
    autoscaler = ClusterAutoscalerConfig((group,), options)
    return EngineConfig(start=START, seed=seed, autoscaler=autoscaler)


def scale(size, store, now):
    store.patch(DEPLOYMENT, "default", "web", {"spec": {"replicas": size}}, now)


def started(kind, seed):
    """Return a cluster in which the load of `web` changes every few minutes."""
    world = SimulatedWorld(
        build_engine(config(kind, seed), SilentReporter()), start=START, seed=seed, events_max=0
    )
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    world.load(
        [
            namespace,
            *(node(f"n{number}") for number in range(3)),
            BUDGET,
            deployment("web", 4),
            deployment("guarded", HEALTHY + 1),
            deployment("blocking", 1, BLOCKS),
        ]
    )
    choose = TieBreak(seed)
    for minute in range(5, 90, 8):
        world.at(START + seconds(60 * minute), partial(scale, choose.pick(30)))
    return world


def is_ready(pod):
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["cluster-autoscaler", "karpenter"])
def test_limits_and_budgets_hold_at_every_instant(kind, seed):
    world = started(kind, seed)
    world.run(START + seconds(120))
    [blocking] = [
        pod["metadata"]["name"]
        for pod in world.store.list(POD)
        if pod["metadata"]["labels"]["app"] == "blocking"
    ]
    low, high = (MINIMUM, MAXIMUM) if kind == "cluster-autoscaler" else (0, POOL_LIMIT)
    counts = set()
    for after in range(130, 6000, 10):
        world.run(START + seconds(after))
        nodes, pods = list(world.store.list(NODE)), list(world.store.list(POD))
        counts.add(len(nodes))
        assert low <= len(nodes) <= high
        guarded = [one for one in pods if one["metadata"]["labels"]["app"] == "guarded"]
        assert sum(map(is_ready, guarded)) >= HEALTHY
        assert blocking in {one["metadata"]["name"] for one in pods}
    assert len(counts) > 1


@pytest.mark.parametrize("kind", ["cluster-autoscaler", "karpenter"])
def test_the_same_seed_gives_the_same_nodes(kind):
    def nodes(seed):
        world = started(kind, seed)
        world.run(START + seconds(2000))
        return sorted(
            (one["metadata"]["name"], one["metadata"]["creationTimestamp"])
            for one in world.store.list(NODE)
        )

    assert nodes(1) == nodes(1)
