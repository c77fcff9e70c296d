"""Nodes whose pods request more than is allocatable are reported, with the resources."""

from __future__ import annotations

import pytest

from fairlead.client.cache.reflector import ObjectUpdate
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import make_device_class
from fairlead.worlds.cluster.overcommitted_nodes import OvercommittedNodes
from fairlead.worlds.cluster.world import ClusterWorld

GPU = "example.com/gpu"


def on_n1(name, **requests):
    return make_pod(name, node="n1", requests=requests)


def found(*objects):
    """Return the reports about node n1 in a cluster with `objects`."""
    cluster = Cluster()
    cluster.apply(ObjectsLoaded([*objects]))
    return list(OvercommittedNodes().check(cluster, ["n1", "unknown"]))


@pytest.mark.parametrize(
    ("offered", "pods", "resources"),
    [
        pytest.param({"cpu": "2"}, [on_n1("a", cpu="2")], None, id="the pods fit"),
        pytest.param(
            {"cpu": "2", "memory": "1Gi"},
            [on_n1("a", cpu="1", memory="2Gi"), on_n1("b", cpu="2")],
            ["cpu", "memory"],
            id="cpu and memory",
        ),
        pytest.param({"pods": "1"}, [on_n1("a"), on_n1("b")], ["pods"], id="too many pods"),
        pytest.param({GPU: "1"}, [on_n1("a", **{GPU: "2"})], [GPU], id="a listed resource"),
        pytest.param({GPU: "0"}, [on_n1("a", **{GPU: "1"})], [GPU], id="listed with 0"),
        pytest.param({}, [on_n1("a", **{GPU: "1"})], None, id="an extended resource not listed"),
        pytest.param({}, [on_n1("a", **{"hugepages-2Mi": "2Mi"})], ["hugepages-2Mi"], id="native"),
    ],
)
def test_a_node_is_overcommitted_if_its_kubelet_would_reject_pods(offered, pods, resources):
    expected = [] if resources is None else [("n1", resources)]
    assert found(make_node("n1", devices=offered), *pods) == expected


def test_a_resource_that_a_device_class_provides_does_not_count():
    resource = "deviceclass.resource.kubernetes.io/gpu"
    node, pod = make_node("n1"), on_n1("a", **{resource: "1"})
    assert found(node, pod) == [("n1", [resource])]
    assert found(make_device_class("gpu"), node, pod) == []


def test_a_node_is_reported_once_until_it_is_no_longer_overcommitted():
    """Further changes of its pods are not reported, except that another resource is lacking."""
    cluster, nodes = Cluster(), OvercommittedNodes()
    cluster.apply(ObjectsLoaded([make_node("n1", cpu="2", memory="1Gi"), on_n1("a", cpu="3")]))

    def check(*stimuli):
        for stimulus in stimuli:
            cluster.apply(stimulus)
        return list(nodes.check(cluster, ["n1"]))

    small, large = on_n1("b", cpu="1"), on_n1("c", memory="2Gi")
    assert check() == [("n1", ["cpu"])]
    assert check(ObjectChanged(small)) == []
    assert check(ObjectChanged(large)) == [("n1", ["cpu", "memory"])]
    assert check(ObjectDeleted(large)) == []
    assert check(ObjectDeleted(on_n1("a"))) == []
    assert check(ObjectChanged(on_n1("d", cpu="3"))) == [("n1", ["cpu"])]


def test_nodes_are_checked_when_a_pod_is_bound_changed_or_deleted():
    world = ClusterWorld((), None)
    world.observe([ObjectUpdate(make_pod("p"), is_deleted=False)])
    assert world.take_nodes_with_changed_pods() == []
    for is_deleted in (False, True):
        world.observe([ObjectUpdate(on_n1("a"), is_deleted=is_deleted)])
        assert world.take_nodes_with_changed_pods() == ["n1"]
