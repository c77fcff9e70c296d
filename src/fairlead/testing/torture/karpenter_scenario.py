"""Karpenter in a torture scenario: instance types, NodePools, and changes that make Karpenter act.

Karpenter's objects and changes are drawn from a separate random source. So the other parts of a
scenario do not depend on Karpenter's part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.well_known_label import ARCH, INSTANCE_TYPE, OS, ZONE
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    NODE_POOL,
    ON_DEMAND,
    SPOT,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.testing.random_cluster import Chance
from fairlead.testing.torture.scenario import Change, DeleteAny, Patch

KARPENTER: Final = "karpenter"
POOLS: Final = ("general", "spare")
CORES: Final = {f"general-{cores}": cores for cores in (2, 4, 8, 16)}
CHANGES: Final = 30
_PRICES: Final = {ON_DEMAND: 0.05, SPOT: 0.02}  # per core and hour
_BUDGETS: Final[tuple[list[Json], ...]] = (
    [{"nodes": "1"}],
    [{"nodes": "20%"}],
    [{"nodes": "50%"}, {"nodes": "2", "reasons": ["Underutilized"]}],
    [{"nodes": "3"}, {"nodes": "0", "reasons": ["Drifted"]}],
)


def karpenter_config(zones: tuple[str, ...]) -> KarpenterConfig:
    """Return the configuration with machines of 2 to 16 cores in each of `zones`.

    Each machine type is offered on demand and as a spot instance.
    """
    types = tuple(_instance_type(name, cores, zones) for name, cores in CORES.items())
    return KarpenterConfig(pools=(), types=types, serves_resources=True)


def _instance_type(name: str, cores: int, zones: tuple[str, ...]) -> InstanceType:
    requirements = (
        requirement(INSTANCE_TYPE, "In", (name,)),
        requirement(ARCH, "In", ("amd64",)),
        requirement(OS, "In", ("linux",)),
        requirement(CAPACITY_TYPE, "In", tuple(_PRICES)),
        requirement(ZONE, "In", zones),
    )
    offerings = tuple(
        Offering(
            combined((requirement(CAPACITY_TYPE, "In", (way,)), requirement(ZONE, "In", (zone,)))),
            cores * price,
        )
        for zone in zones
        for way, price in _PRICES.items()
    )
    capacity = {"cpu": cores * 1000, "memory": cores << 32, "pods": 110}
    return InstanceType(name, combined(requirements), capacity, {}, offerings)


def node_pools(seed: int) -> tuple[Json, ...]:
    """Return the NodePools of the scenario of `seed`."""
    chance = Chance(seed << 8)
    return tuple(_pool(chance, name) for name in POOLS)


def _pool(chance: Chance, name: str) -> Json:
    requirements = [{"key": CAPACITY_TYPE, "operator": "In", "values": [ON_DEMAND]}]
    if chance.one_in(2):
        requirements[0]["values"] = [ON_DEMAND, SPOT]
    template = {
        "requirements": requirements,
        "nodeClassRef": {"group": "fairlead.dev", "kind": "NodeClass", "name": "default"},
        "expireAfter": chance.of(("Never", "Never", "30m")),
    }
    policy = chance.of(("WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized"))
    disruption = {
        "consolidationPolicy": policy,
        "consolidateAfter": chance.of(("0s", "30s", "2m")),
        "budgets": chance.of(_BUDGETS),
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {"spec": template},
            "disruption": disruption,
            "limits": {"cpu": str(chance.of((8, 24, 60)))},
            "weight": 1 + chance.below(2),
        },
    }


def karpenter_changes(
    seed: int, chaos_ms: int, namespaces: tuple[str, ...], workloads: int
) -> Iterator[Change]:
    """Yield the changes in the scenario of `seed` that make Karpenter act.

    The last changes, at the end of the phase `chaos` (see `run`), stop the expiry of new
    NodeClaims. Without these changes, a new NodeClaim might expire while the final state is
    checked. Older NodeClaims keep their `expireAfter` of half an hour, and expire before that
    check.

    `workloads` is the number of Deployments that the scenario creates, named `deploy-1` and so on.
    """
    for one in node_pools(seed):
        if one["spec"]["template"]["spec"]["expireAfter"] != "Never":
            never = {"spec": {"template": {"spec": {"expireAfter": "Never"}}}}
            yield Patch(chaos_ms - 1, "NodePool", one["metadata"]["name"], never)
    chance = Chance((seed << 8) + 1)
    for _ in range(CHANGES * chaos_ms // 3_600_000):
        at, pool = chance.below(chaos_ms), chance.of(POOLS)
        match chance.below(8):
            case 0 | 1:
                budgets = {"spec": {"disruption": {"budgets": chance.of(_BUDGETS)}}}
                yield Patch(at, "NodePool", pool, budgets)
            case 2:
                limits = {"spec": {"limits": {"cpu": str(4 * chance.below(20))}}}
                yield Patch(at, "NodePool", pool, limits)
            case 3:
                labels = {"metadata": {"labels": {"drift": f"v{at}"}}}
                yield Patch(at, "NodePool", pool, {"spec": {"template": labels}})
            case 4 | 5:
                marks = {"annotations": {DO_NOT_DISRUPT: chance.of(("true", "true", None))}}
                template = {"spec": {"template": {"metadata": marks}}}
                name = f"deploy-{1 + chance.below(workloads)}"
                yield Patch(at, "Deployment", name, template, chance.of(namespaces))
            case 6:
                yield DeleteAny(at, "NodeClaim", chance.below(1000))
            case _:
                yield DeleteAny(at, "Node", chance.below(1000), has_label=NODE_POOL)
