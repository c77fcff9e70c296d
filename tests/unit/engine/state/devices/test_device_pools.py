"""DevicePools: the taints that DeviceTaintRules add to the devices of slices."""

from __future__ import annotations

import pytest

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


def test_rules_are_ordered_by_name():
    rules = [make_device_taint_rule(name, key=name) for name in ("y", "x")]
    assert taints(cluster_with(*rules))["gpu-1"] == ["x", "y"]


def test_without_the_gate_rules_have_no_effect():
    cluster = cluster_with(make_device_taint_rule(), device_taint_rules=False)
    assert taints(cluster) == {"gpu-0": ["own"], "gpu-1": []}
    cluster.apply(ObjectDeleted(make_device_taint_rule()))
    assert cluster.changes == []


def test_a_rule_that_changes_and_goes():
    """Each time, the slices it selects count as changed, so that waiting pods are tried again."""
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
