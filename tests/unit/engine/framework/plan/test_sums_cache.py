"""SumsCache: results that are cached by the sums of a node equal those of the plugins."""

from __future__ import annotations

import pytest

from fairlead.api.objects import DeviceClass, DeviceClassSpec, ObjectMeta
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.plan.sums_cache import SIZE_MIN, SumsCache
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(12)]
KINDS = [{"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"}, {"memory": "3Gi"}, {}, {"cpu": "250m"}]
KINDS += [{"cpu": "2", "example.com/gpu": "1"}]


def served_by(cluster):
    return build_profile(Profile(), PluginHandle(cluster, Nominator()), TieBreak(0))


class Life:
    """A cluster of nodes of two capacities, with random additions and deletions of pods."""

    def __init__(self, seed):
        self.chance, self.cluster, self.placed = Chance(seed), Cluster(), []
        self.number = 0
        for name in NODES:
            self.put_node(name)

    def put_node(self, name):
        gpu = {"example.com/gpu": 1} if self.chance.one_in(3) else {}
        self.cluster.apply(ObjectChanged(make_node(name, cpu=self.chance.of([3, 4]), devices=gpu)))

    def change(self):
        chance = self.chance
        self.number += 1
        match chance.below(12):
            case 0:
                self.put_node(chance.of(NODES))
            case 1 | 2 | 3 | 4 if self.placed:
                gone = self.placed.pop(chance.below(len(self.placed)))
                self.cluster.apply(ObjectDeleted(gone))
            case 5:
                name = chance.of(["", "example.com/gpu"])
                spec = DeviceClassSpec(extended_resource_name=name)
                one = DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec)
                self.cluster.apply(ObjectChanged(one))
            case _:
                kind = chance.of(KINDS)
                pod = make_pod(f"p{self.number}", node=chance.of(NODES), requests=kind)
                self.placed.append(pod)
                self.cluster.apply(ObjectChanged(pod))

    def info(self, kind):
        pod = make_pod("waiting", requests=kind)
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))


@pytest.mark.parametrize("kinds", [KINDS[:1], KINDS[-1:], KINDS], ids=["one", "device", "matrix"])
@pytest.mark.parametrize("seed", range(4))
def test_cached_plans_equal_new_plans(kinds, seed):
    """After random changes, the plans of few and of many shapes are equal to new ones."""
    life = Life(seed)
    kept = served_by(life.cluster).plans
    for _ in range(80):
        life.change()
        plans = [kept.plan_for(life.info(kind)) for kind in kinds]
        fresh = served_by(life.cluster).plans
        for kind, plan in zip(kinds, plans, strict=True):
            expected = fresh.plan_for(life.info(kind))
            assert plan.total.tolist() == expected.total.tolist()
            assert statuses(plan) == statuses(expected)


def statuses(plan):
    """Return the verdict of each row."""
    return [None if code < 0 else plan.statuses[code] for code in plan.codes.tolist()]


def cluster_of(*nodes):
    cluster = Cluster()
    for node in nodes:
        cluster.apply(ObjectChanged(node))
    return cluster


def test_nodes_with_equal_capacity_and_sums_share_a_result():
    """A result is found for an equal node, until its sums or its capacity differ."""
    cluster = cluster_of(make_node("a", cpu=4), make_node("b", cpu=4), make_node("c", cpu=8))
    a, b, c = cluster.table.nodes()
    cache: SumsCache[str] = SumsCache(cluster.table, SIZE_MIN)
    assert cache.find(a) is None
    cache.keep("empty")
    assert (cache.find(b), cache.find(c)) == ("empty", None)
    cluster.apply(ObjectChanged(make_pod("p", node="b", requests={"cpu": 1})))
    assert (cache.find(b), cache.find(a)) == (None, "empty")


def test_a_changed_device_class_drops_all_results():
    """When the DeviceClass of a resource changes, results are recomputed."""
    cluster = cluster_of(make_node("a", cpu=4))
    (node,) = cluster.table.nodes()
    cache: SumsCache[str] = SumsCache(cluster.table, SIZE_MIN)
    cache.find(node)
    cache.keep("before")
    spec = DeviceClassSpec(extended_resource_name="example.com/gpu")
    cluster.apply(ObjectChanged(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec)))
    assert cache.find(node) is None


def test_the_number_of_results_is_bounded():
    """The cache is cleared if it has more different sums than its limit."""
    cluster = cluster_of(make_node("a", cpu=4))
    (node,) = cluster.table.nodes()
    cache: SumsCache[int] = SumsCache(cluster.table, 0)
    for memory in range(3 * SIZE_MIN):
        node.nonzero_memory = memory
        assert cache.find(node) is None
        cache.keep(memory)
        assert len(cache._results) <= SIZE_MIN
