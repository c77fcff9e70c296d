"""Builders of objects with few arguments, and of random clusters from seeds."""

from __future__ import annotations

import re

import pytest

from fairlead.api.objects import Toleration
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.batch_builders import make_group, make_queue
from fairlead.testing.builders import make_budget, make_node, make_pod
from fairlead.testing.device_builders import make_slice
from fairlead.testing.random_cluster import (
    NODE_NAMES,
    POD_NAMES,
    Chance,
    any_budget,
    any_node,
    any_pod,
)
from fairlead.testing.storage_builders import make_claim

NOT_READ = "Fairlead does not read this field"


def test_the_default_node():
    """It has room for a few pods, and no taint or condition prevents scheduling."""
    node = make_node("n")
    assert node.status.allocatable == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert (node.metadata.labels, node.spec.taints, node.spec.unschedulable) == ({}, (), False)


def test_a_node_with_arguments():
    """Taints have the syntax of kubectl; resources have their Kubernetes names."""
    node = make_node("n", taints=["a=b:NoSchedule", "c:NoExecute"], cpu="1", **{"x.io/y": 2})
    assert [(t.key, t.value, t.effect) for t in node.spec.taints] == [
        ("a", "b", "NoSchedule"),
        ("c", "", "NoExecute"),
    ]
    assert node.status.allocatable == {"cpu": "1", "memory": "16Gi", "pods": "110", "x.io/y": 2}


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (
            lambda: make_pod("p", spec={"node_selector": {"disk": "ssd"}}),
            "Pod default/p: spec.node_selector: unknown field; did you mean nodeSelector?",
        ),
        (
            lambda: make_pod("p", spec={"affinity": {"nodeAfinity": {}}}),
            "Pod default/p: spec.affinity.nodeAfinity: unknown field; did you mean nodeAffinity?",
        ),
        (
            lambda: make_pod("p", status={"start": "2026-01-01T00:00:00Z"}),
            "Pod default/p: status.start: unknown field; did you mean startTime?",
        ),
        (
            lambda: make_claim("c", spec={"xyz": "v"}),
            "PersistentVolumeClaim default/c: spec.xyz: unknown field",
        ),
        (
            lambda: make_slice("n", spec={"allnodes": True}),
            "ResourceSlice gpu.example.com-n: spec.allnodes: unknown field; did you mean allNodes?",
        ),
        (
            lambda: make_group("g", 2, minMembers=3),
            f"PodGroup default/g: spec.minMembers: {NOT_READ}; did you mean minMember?",
        ),
        (
            lambda: make_group("g", 2, status={"fase": "Running"}),
            f"PodGroup default/g: status.fase: {NOT_READ}; did you mean phase?",
        ),
        (
            lambda: make_queue("q", dequeueStrategy="fifo"),
            f"Queue q: spec.dequeueStrategy: {NOT_READ}",
        ),
        (
            lambda: make_queue("q", guarantee={"resources": {"cpu": 1}}),
            f"Queue q: spec.guarantee.resources: {NOT_READ}; did you mean resource?",
        ),
    ],
)
def test_an_unknown_field_is_refused(make, refusal):
    """Otherwise, a test would check an object without the misspelled field."""
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        make()


@pytest.mark.parametrize(("node", "phase"), [("", "Pending"), ("n", "Running")])
def test_the_default_pod(node, phase):
    """It runs if it has a node; its uid is derived from its name."""
    pod = make_pod("p", node=node)
    assert (pod.key, pod.metadata.uid, pod.status.phase) == ("default/p", "uid-p", phase)
    assert (pod.spec.priority, pod.spec.node_name) == (None, node)


def test_a_pod_with_arguments():
    """Further fields by their JSON names override the fields from the short arguments."""
    pod = make_pod("p", spec={"tolerations": [{"key": "a"}]}, status={"phase": "Failed"})
    assert pod.spec.tolerations == (Toleration(key="a"),)
    assert pod.status.phase == "Failed"
    assert make_pod("p", terminating=True).metadata.deletion_timestamp


@pytest.mark.parametrize("make", [make_node, make_pod])
def test_objects_have_the_given_annotations(make):
    assert make("x", annotations={"a": "b"}).metadata.annotations == {"a": "b"}


def test_a_budget_has_a_selector_and_a_status():
    """The selector is made from labels; the status counts the disruptions."""
    budget = make_budget("b", {"a": "b"}, allowed=2, disrupted=["p"])
    assert (budget.status.disruptions_allowed, list(budget.status.disrupted_pods)) == (2, ["p"])


def draw(seed):
    chance = Chance(seed)
    nodes = [any_node(chance, name) for name in NODE_NAMES]
    pods = [any_pod(chance, name, chance.of(NODE_NAMES)) for name in POD_NAMES]
    return [*nodes, *pods, any_budget(chance)]


def test_equal_seeds_give_equal_clusters():
    """Different seeds give different clusters."""
    assert draw(7) == draw(7)
    assert len({repr(draw(seed)) for seed in range(20)}) == 20


def test_a_random_cluster_is_valid():
    """For every seed, no two pods of a node share a host port."""
    for seed in range(30):
        cluster = Cluster()
        cluster.apply(ObjectsLoaded(draw(seed)))
        cluster.table.validate()
        for node in cluster.table.nodes():
            ports = [port for pod in node.pods.values() for port in pod.shape.host_ports]
            assert len(ports) == len(set(ports)) == len(node.used_ports)


def test_every_alternative_is_drawn():
    """Everything that can be drawn is drawn for some seed."""
    chance = Chance(1)
    assert {chance.of("abc") for _ in range(50)} == set("abc")
    assert {len(chance.some("abc", 2)) for _ in range(50)} == {0, 1, 2}
    assert all(len(set(found)) == len(found) for found in [chance.some("abc", 3)] * 20)
