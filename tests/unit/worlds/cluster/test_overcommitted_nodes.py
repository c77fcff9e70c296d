"""Nodes whose pods request more than is allocatable are reported, with the resources."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import make_device_class
from fairlead.worlds.cluster.overcommitted_nodes import OvercommittedNodes
from fairlead.worlds.cluster.shadow import Shadow
from fairlead.worlds.cluster.version_order import VersionOrder

GPU = "example.com/gpu"


def on_n1(name, **requests):
    return make_pod(name, node="n1", requests=requests)


def found(*objects):
    """Return the reports about a cluster in which all `objects` have appeared."""
    cluster, nodes = Cluster(), OvercommittedNodes()
    assert nodes.check(cluster) == []
    cluster.apply(ObjectsLoaded([*objects]))
    return nodes.check(cluster)


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

    def check(*stimuli):
        for stimulus in stimuli:
            cluster.apply(stimulus)
        return nodes.check(cluster)

    small, large = on_n1("b", cpu="1"), on_n1("c", memory="2Gi")
    assert check(ObjectsLoaded([make_node("n1", cpu="2", memory="1Gi")])) == []
    assert check(ObjectChanged(on_n1("a", cpu="3"))) == [("n1", ["cpu"])]
    assert check(ObjectChanged(small)) == []
    assert check(ObjectChanged(large)) == [("n1", ["cpu", "memory"])]
    assert check(ObjectDeleted(large)) == []
    assert check(ObjectDeleted(on_n1("a"))) == []
    assert check(ObjectChanged(on_n1("d", cpu="3"))) == [("n1", ["cpu"])]


def test_a_node_is_reported_when_less_is_allocatable_and_its_pods_do_not_change():
    cluster, nodes = Cluster(), OvercommittedNodes()
    cluster.apply(ObjectsLoaded([make_node("n1", cpu="2"), on_n1("a", cpu="2")]))
    assert nodes.check(cluster) == []
    cluster.apply(ObjectChanged(make_node("n1", cpu="1")))
    assert nodes.check(cluster) == [("n1", ["cpu"])]


def test_a_node_is_checked_when_an_engine_applies_a_change_that_it_has_held_back():
    """Without a further change of the node's pods, it is reported after the delay."""
    now = seconds(100)
    order = VersionOrder(Shadow({"present": SchedulerConfig()}, lambda _: None))
    nodes = OvercommittedNodes()
    order.handle(ObjectsLoaded([make_node("n1", cpu="2")]), now)
    assert nodes.check(order.cluster) == []
    order.handle(ObjectChanged(on_n1("a", cpu="3")), now)
    assert nodes.check(order.cluster) == []
    order.handle_deadline(order.next_deadline())
    assert nodes.check(order.cluster) == [("n1", ["cpu"])]


def test_a_new_node_that_is_named_like_a_deleted_one_is_reported_again():
    cluster, nodes = Cluster(), OvercommittedNodes()
    nodes.check(cluster)
    for _ in range(2):
        cluster.apply(ObjectChanged(make_node("n1", cpu="2")))
        cluster.apply(ObjectChanged(on_n1("a", cpu="3")))
        assert nodes.check(cluster) == [("n1", ["cpu"])]
        cluster.apply(ObjectDeleted(on_n1("a", cpu="3")))
        cluster.apply(ObjectDeleted(make_node("n1", cpu="2")))
        assert nodes.check(cluster) == []
