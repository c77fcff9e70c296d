"""Builders: ordinary objects in few words, and random ones from seeds."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Toleration
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_budget, make_node, make_pod
from fairlead.testing.random_cluster import (
    NODE_NAMES,
    POD_NAMES,
    Chance,
    any_budget,
    any_node,
    any_pod,
)


def test_an_ordinary_node():
    """Room for a few pods, and nothing that keeps them away."""
    node = make_node("n")
    assert node.status.allocatable == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert (node.metadata.labels, node.spec.taints, node.spec.unschedulable) == ({}, (), False)


def test_a_node_in_particular():
    """Taints as kubectl writes them; resources by their names."""
    node = make_node("n", taints=["a=b:NoSchedule", "c:NoExecute"], cpu="1", **{"x.io/y": 2})
    assert [(t.key, t.value, t.effect) for t in node.spec.taints] == [
        ("a", "b", "NoSchedule"),
        ("c", "", "NoExecute"),
    ]
    assert node.status.allocatable == {"cpu": "1", "memory": "16Gi", "pods": "110", "x.io/y": 2}


@pytest.mark.parametrize(("node", "phase"), [("", "Pending"), ("n", "Running")])
def test_an_ordinary_pod(node, phase):
    """It runs where it has a node; its uid follows from its name."""
    pod = make_pod("p", node=node)
    assert (pod.key, pod.metadata.uid, pod.status.phase) == ("default/p", "uid-p", phase)
    assert (pod.spec.priority, pod.spec.node_name) == (None, node)


def test_a_pod_in_particular():
    """Further fields by their JSON names go over what the short form made."""
    pod = make_pod("p", spec={"tolerations": [{"key": "a"}]}, status={"phase": "Failed"})
    assert pod.spec.tolerations == (Toleration(key="a"),)
    assert pod.status.phase == "Failed"
    assert make_pod("p", terminating=True).metadata.deletion_timestamp


def test_a_budget():
    """By labels; what was disrupted is in its status."""
    budget = make_budget("b", {"a": "b"}, allowed=2, disrupted=["p"])
    assert (budget.status.disruptions_allowed, list(budget.status.disrupted_pods)) == (2, ["p"])


def draw(seed):
    chance = Chance(seed)
    nodes = [any_node(chance, name) for name in NODE_NAMES]
    pods = [any_pod(chance, name, chance.of(NODE_NAMES)) for name in POD_NAMES]
    return [*nodes, *pods, any_budget(chance)]


def test_equal_seeds_draw_equal_clusters():
    """And others draw others."""
    assert draw(7) == draw(7)
    assert len({repr(draw(seed)) for seed in range(20)}) == 20


def test_a_random_cluster_can_be_believed():
    """Whatever was drawn; no two pods of a node share a port."""
    for seed in range(30):
        cluster = Cluster()
        cluster.apply(ObjectsLoaded(draw(seed)))
        cluster.table.validate()
        for node in cluster.table.nodes():
            ports = [port for pod in node.pods.values() for port in pod.shape.host_ports]
            assert len(ports) == len(set(ports)) == len(node.used_ports)


def test_chance_is_fair_enough():
    """Everything that can be drawn is."""
    chance = Chance(1)
    assert {chance.of("abc") for _ in range(50)} == set("abc")
    assert {len(chance.some("abc", 2)) for _ in range(50)} == {0, 1, 2}
    assert all(len(set(found)) == len(found) for found in [chance.some("abc", 3)] * 20)
