"""The lower bound of size counts pods that run on only some nodes, and whole numbers of nodes."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.cluster_size.test_size import sized
from tests.unit.whatif.planner.conftest import deployment

from fairlead.engine.core.tie_break import TieBreak

ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "db"}},
            }
        ]
    }
}
EXCLUDING = "the pods of deploy/default/db exclude each other on a node"
ON_SSD = {"nodeSelector": {"disk": "ssd"}}


@pytest.fixture
def nodes(make):
    """Three nodes with an SSD and more memory, and three cheaper ones, of four cores each."""
    made = [*(make.node(one, disk="ssd") for one in "abc"), *map(make.node, "def")]
    for node in made[:3]:
        node["status"]["allocatable"]["memory"] = "64Gi"
    return made


def test_pods_that_need_expensive_nodes_raise_the_bound(planner, make, nodes):
    """Six cores need two nodes with an SSD; these leave two cores, and a third node is needed."""
    db = deployment(make, "db", ["a", "b"], cpu="3", **ON_SSD)
    web = deployment(make, "web", ["c", "d", "e", "f"])
    found = sized(planner(*nodes, *db, *web))
    assert len(found.nodes) == 3
    assert found.is_cheapest
    assert set(found.bound.causes) >= {"cpu", "cpu on disk=ssd"}


def test_pods_that_exclude_each_other_on_expensive_nodes_raise_the_bound(planner, make, nodes):
    db = deployment(make, "db", ["a", "b", "c"], cpu="500m", affinity=ALONE, **ON_SSD)
    found = sized(planner(*nodes, *db))
    assert len(found.nodes) == 3
    assert found.is_cheapest
    assert found.bound.causes == {EXCLUDING: 1.0}


def test_pods_that_tolerate_no_taint_need_other_nodes(planner, make, nodes):
    """The tainted nodes are cheaper, but only one pod tolerates the taint."""
    for node in nodes[3:]:
        node["spec"] = {"taints": [{"key": "batch", "effect": "NoSchedule"}]}
    web = deployment(make, "web", ["a", "b", "c"], cpu="2")
    tolerations = [{"key": "batch", "operator": "Exists"}]
    batch = deployment(make, "batch", ["d"], cpu="4", tolerations=tolerations)
    found = sized(planner(*nodes, *web, *batch))
    assert sorted(one.today for one in found.nodes.values()) == [
        *[("a", "b", "c")] * 2,
        tuple("def"),
    ]
    assert found.is_cheapest


def test_a_number_of_nodes_is_whole(planner, make):
    """Five cores need two nodes of four cores, not five quarters of a node."""
    nodes = [make.node(one) for one in "abc"]
    found = sized(planner(*nodes, *deployment(make, "web", ["a", "a", "b", "b", "c"])))
    assert found.bound.cost == pytest.approx(found.cost)
    assert found.bound.causes == {"cpu": 1.0}


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_never_exceeds_the_cost_of_nodes_that_run_the_pods(planner, make, nodes, seed):
    """Pods of random sizes, some restricted to nodes or excluding each other; some nodes stay."""
    pick = TieBreak(seed).pick
    for node in nodes[:2]:
        if pick(2):
            node["spec"] = {"taints": [{"key": "batch", "effect": "NoSchedule"}]}
    objects = [*nodes]
    for number in range(4):
        spec = [{}, ON_SSD, {"tolerations": [{"key": "batch", "operator": "Exists"}]}][pick(3)]
        if not pick(3):
            spec = {**spec, "affinity": ALONE}
        cpu = f"{(1 + pick(12)) * 250}m"
        name = "db" if not number else f"app-{number}"
        objects += deployment(make, name, [""] * (1 + pick(4)), cpu=cpu, **spec)
    keep = ("a", "f") if pick(2) else ()
    found = sized(planner(*objects), keep=keep, seed=seed)
    assert 0 < found.bound.cost <= found.cost + 1e-9 or not found.nodes
