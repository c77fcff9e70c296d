"""DevicePools: the pools of a node, and the taints that DeviceTaintRules add to their devices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node
from fairlead.testing.device_builders import DRIVER, make_device_taint_rule, make_slice

SLICE = make_slice("a", [{"name": "gpu-0", "taints": [{"key": "own", "effect": "None"}]}, "gpu-1"])


def cluster_with(*rules, device_taint_rules=True):
    cluster = Cluster(device_taint_rules=device_taint_rules)
    cluster.apply(ObjectsLoaded([make_node("a"), SLICE, make_slice("b"), *rules]))
    return cluster


def taints(cluster):
    """The keys of the taints of each device of the node."""
    node = cluster.table.find("a").node
    return {
        one.device.name: [taint.key for taint in one.device.taints]
        for pool in cluster.devices.pools.on(node)
        for one in pool.devices
    }


def test_a_pool_loses_its_slices_one_by_one():
    """With a slice missing the pool is incomplete; without slices there is no pool."""
    slices = [make_slice("a", [f"gpu-{i}"], name=f"s{i}", count=2) for i in range(2)]
    cluster = Cluster()
    cluster.apply(ObjectsLoaded([make_node("a"), *slices]))
    node = cluster.table.find("a").node
    found = []
    for gone in (None, *slices):
        if gone is not None:
            cluster.apply(ObjectDeleted(gone))
        pools = cluster.devices.pools.on(node)
        found.append([(one.is_usable, [d.device.name for d in one.devices]) for one in pools])
    assert found == [[(True, ["gpu-0", "gpu-1"])], [(False, ["gpu-1"])], []]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, {"gpu-0": ["own", "k"], "gpu-1": ["k"]}),
        ({"driver": DRIVER, "pool": "a"}, {"gpu-0": ["own", "k"], "gpu-1": ["k"]}),
        ({"device": "gpu-1"}, {"gpu-0": ["own"], "gpu-1": ["k"]}),
        ({"pool": "b"}, {"gpu-0": ["own"], "gpu-1": []}),
    ],
)
def test_a_rule_adds_its_taint_to_the_devices_it_selects(selector, expected):
    assert taints(cluster_with(make_device_taint_rule(key="k", **selector))) == expected


def test_a_rule_without_a_selector_selects_no_device():
    """An empty selector selects all devices (resource/v1beta2/types.go: DeviceTaintRuleSpec)."""
    rule = make_device_taint_rule(key="k")
    cluster = cluster_with()
    cluster.apply(ObjectChanged(replace(rule, spec=replace(rule.spec, device_selector=None))))
    assert cluster.changes == []
    assert taints(cluster) == {"gpu-0": ["own"], "gpu-1": []}


def test_rules_are_ordered_by_name():
    rules = [make_device_taint_rule(name, key=name) for name in ("y", "x")]
    assert taints(cluster_with(*rules))["gpu-1"] == ["x", "y"]


def test_without_the_gate_rules_have_no_effect():
    cluster = cluster_with(make_device_taint_rule(), device_taint_rules=False)
    assert taints(cluster) == {"gpu-0": ["own"], "gpu-1": []}
    cluster.apply(ObjectDeleted(make_device_taint_rule()))
    assert cluster.changes == []


def test_a_rule_that_is_changed_and_deleted():
    """Each time, the selected slices count as changed, so that pending pods are retried."""
    cluster = cluster_with()
    assert taints(cluster)["gpu-1"] == []
    for rule, expected in [
        (make_device_taint_rule(key="k", pool="a"), ["k"]),
        (make_device_taint_rule(key="l", pool="a"), ["l"]),
    ]:
        cluster.apply(ObjectChanged(rule))
        assert [change.new for change in cluster.changes] == [SLICE]
        assert taints(cluster)["gpu-1"] == expected
    cluster.apply(ObjectChanged(rule))
    assert cluster.changes == []
    cluster.apply(ObjectDeleted(rule))
    assert [change.new for change in cluster.changes] == [SLICE]
    assert taints(cluster)["gpu-1"] == []
