"""A lower bound of the nodes for pods: resource sums, pods per node, and anti-affinity."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import daemon_pod, deployment

from fairlead.whatif.planner.node.node_bound import (
    NODE_GROUPS,
    PODS_PER_NODE,
    NodeBound,
    fewest_nodes,
)

NODES = ("a", "b", "c")
ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname",
             "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}  # fmt: skip


def test_the_sum_of_a_resource_is_a_lower_bound(planner, make):
    """Five cores need two of three nodes with four; pods of DaemonSets do not count."""
    objects = [*map(make.node, NODES), *(daemon_pod(make, name, "2") for name in NODES)]
    model = planner(*objects, *deployment(make, "web", ["a", "a", "b", "b", "c"])).model
    assert fewest_nodes(model, NODES) == NodeBound(2, "cpu")


@pytest.mark.parametrize("resource", ["cpu", "pods"])
def test_pods_that_exceed_the_size_of_their_node_can_stay(planner, make, resource):
    """Of eleven cores or pods, nine are on a node for four, which stays."""
    size = {"cpu": "4", "pods": "4"} | {"cpu" if resource == "pods" else "pods": "100"}
    nodes = [make.node(name) for name in NODES]
    for node in nodes:
        node["status"]["allocatable"] |= size
    pods = deployment(make, "web", ["a"] * 9 + ["b", "c"])
    found = fewest_nodes(planner(*nodes, *pods).model, NODES)
    assert found == NodeBound(2, PODS_PER_NODE if resource == "pods" else "cpu")


def test_capacity_of_nodes_that_are_not_candidates_is_used_first(planner, make):
    model = planner(*map(make.node, NODES), *deployment(make, "web", ["a"] * 4 + ["b"])).model
    assert fewest_nodes(model, ["a", "b"]) == NodeBound(1, "cpu")


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 2),
        ([{"key": "virtual-kubelet.io/provider", "operator": "Exists"}], 1),
        ([{"key": "other", "operator": "Exists"}], 2),
    ],
)
def test_a_node_that_no_pod_tolerates_supplies_nothing(planner, make, tolerations, count):
    """A virtual node states thousands of cores, but ordinary pods cannot use them."""
    virtual = make.node("v", cpu="10k")
    taint = {"key": "virtual-kubelet.io/provider", "value": "azure", "effect": "NoSchedule"}
    virtual["spec"] = {"taints": [taint]}
    web = deployment(make, "web", ["a", "a", "b", "b", "c"], tolerations=tolerations)
    model = planner(*map(make.node, NODES), virtual, *web).model
    assert fewest_nodes(model, (*NODES, "v")) == NodeBound(count, "cpu")


def test_pods_with_mutual_anti_affinity_need_a_node_each(planner, make):
    web = deployment(make, "web", NODES, cpu="100m", affinity=ALONE)
    model = planner(*map(make.node, (*NODES, "d")), *web).model
    assert fewest_nodes(model, (*NODES, "d")) == NodeBound(3, "deploy/default/web")


def test_no_pods_need_no_node(planner, make):
    assert fewest_nodes(planner(*map(make.node, NODES)).model, NODES).count == 0


def test_pods_that_a_drain_does_not_place_anew_do_not_count(planner, make):
    """A pod without a controller is lost with its node, and a pending pod has no node to lose."""
    bare = [make.pod(f"bare-{name}", cpu="3", node_name=name) for name in NODES]
    waiting = deployment(make, "web", ["", ""], cpu="100m", affinity=ALONE)
    model = planner(*map(make.node, NODES), *bare, *waiting).model
    assert fewest_nodes(model, NODES).count == 0


def test_equal_rules_of_workloads_with_other_labels_are_distinguished(planner, make):
    """Both workloads have anti-affinity to `web`; only the pods of `web` repel each other."""
    web = deployment(make, "web", ["a", "b"], cpu="100m", affinity=ALONE)
    api = deployment(make, "api", ["c", "d", "e"], cpu="100m", affinity=ALONE)
    nodes = (*NODES, "d", "e")
    for objects in ([*web, *api], [*api, *web]):
        model = planner(*map(make.node, nodes), *objects).model
        assert fewest_nodes(model, nodes) == NodeBound(2, "deploy/default/web")


def of_pool(make, name, nodes, **spec):
    return deployment(make, name, nodes, cpu="3", nodeSelector={"pool": name}, **spec)


def test_bounds_of_separate_pools_are_added(planner, make):
    """Each pool has two nodes with four cores. Three cores need one node, six cores need two."""
    nodes = [make.node(f"{pool}{number}", pool=pool) for pool in ("x", "y") for number in (1, 2)]
    names = [node["metadata"]["name"] for node in nodes]
    model = planner(*nodes, *of_pool(make, "x", ["x1"]), *of_pool(make, "y", ["y1", "y2"])).model
    assert fewest_nodes(model, names) == NodeBound(3, "cpu")
    assert fewest_nodes(model, ["x1", "y1"]) == NodeBound(1, "cpu")


def test_a_pool_needs_its_own_nodes_even_if_others_have_room(planner, make):
    """The taint of pool y excludes pods of web, which would fit there otherwise."""
    large = make.node("y1", cpu="100", pool="y")
    large["spec"] = {"taints": [{"key": "only", "value": "y", "effect": "NoSchedule"}]}
    tolerant = of_pool(make, "y", ["y1"], tolerations=[{"operator": "Exists"}])
    web = deployment(make, "web", ["a", "b"], cpu="3")
    model = planner(make.node("a"), make.node("b"), large, *tolerant, *web).model
    assert fewest_nodes(model, ["a", "b", "y1"]) == NodeBound(3, NODE_GROUPS)


def test_a_pod_can_stay_on_a_node_that_it_no_longer_selects(planner, make):
    nodes = [make.node("a"), make.node("b", pool="x")]
    model = planner(*nodes, *of_pool(make, "x", ["a"])).model
    assert fewest_nodes(model, ["a", "b"]) == NodeBound(1, "cpu")
    assert fewest_nodes(model, ["b"]).count == 0
