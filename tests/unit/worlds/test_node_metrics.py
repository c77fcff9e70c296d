"""Metrics of the node controllers, computed from the reports of the engine."""

from __future__ import annotations

import re

import pytest

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    EvictionCancelled,
    EvictionTimed,
    NodeEmptied,
    NodeTainted,
    PodCollected,
    PodEvicted,
    SilentReporter,
    ZoneAssessed,
)
from fairlead.worlds.metrics import SchedulerMetrics

P = ObjectRef("Pod", "ns", "p", "u")
Q = ObjectRef("Pod", "ns", "q", "v")


def as_written(text):
    """Return the values by name and label values; the library's parser would change names."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        name, _, labels = name.partition("{")
        found[name, *sorted(re.findall(r'="([^"]*)"', labels))] = float(value)
    return found


@pytest.fixture
def samples():
    def exposed(*records, version="1.36"):
        metrics = SchedulerMetrics(SilentReporter(), list, node_version=version)
        for record in records:
            metrics.report(record)
        return as_written(metrics.exposition().decode())

    return exposed


def test_a_zone_has_size_unhealthy_nodes_and_health(samples):
    """The health is the percentage of Ready nodes."""
    found = samples(ZoneAssessed("eu:\0:a", "Normal", 8, 2, 0.1, 0))
    assert found["node_collector_zone_size", "eu::a"] == 8
    assert found["node_collector_unhealthy_nodes_in_zone", "eu::a"] == 2
    assert found["node_collector_zone_health", "eu::a"] == 75


def test_a_zone_without_nodes_has_health_100(samples):
    """A zone without nodes has no unhealthy node."""
    found = samples(ZoneAssessed("a", "Normal", 8, 8, 0.1, 0), ZoneAssessed("a", "", 0, 0, 0, 9))
    assert found["node_collector_zone_size", "a"] == 0
    assert found["node_collector_zone_health", "a"] == 100


def test_node_evictions_are_counted_once_per_node(samples):
    """The exchange of one outage taint for the other is not counted again."""
    taints = [NodeTainted("n1", "a", "k", True, 0), NodeTainted("n1", "a", "k", False, 9)]
    assert samples(*taints)["node_collector_evictions_total", "a"] == 1


def test_pod_evictions_by_taints_are_counted_with_their_latency(samples):
    """The latency is 0, unless a deletion was refused and repeated."""
    found = samples(
        EvictionTimed(P, "n1", ("k:NoExecute",), 300, seconds(300), 0),
        EvictionTimed(Q, "n1", ("k:NoExecute",), 300, seconds(300), 0),
        EvictionCancelled(Q, seconds(5)),
        PodEvicted(P, "n1", "taint k:NoExecute", seconds(301)),
        PodEvicted(Q, "n1", "taint k:NoExecute", seconds(400)),
        PodEvicted(Q, "n1", "low on memory", seconds(500)),
    )
    name = "taint_eviction_controller_pod_deletion"
    assert found[f"{name}s_total",] == 2
    assert found[f"{name}_duration_seconds_sum",] == 1
    assert found[f"{name}_duration_seconds_bucket", "0.005"] == 1


def test_garbage_collected_pods_are_counted_by_namespace_and_reason(samples):
    """The labels are the namespace and the reason."""
    found = samples(PodCollected(P, "n1", "orphaned", 0))
    assert found["pod_gc_collector_force_delete_pods_total", "ns", "orphaned"] == 1


@pytest.mark.parametrize(
    ("version", "counter"),
    [("1.36", "node_collector_evictions_total"), ("1.16", "node_collector_evictions_number")],
)
def test_metrics_have_only_the_names_of_the_selected_version(samples, version, counter):
    """1.16 has no metrics of taint eviction and pod garbage collection."""
    records = (
        NodeTainted("n1", "a", "k", True, 0),
        NodeEmptied("n2", "a", 0),
        PodCollected(P, "n1", "orphaned", 0),
        PodEvicted(Q, "n1", "taint", 0),
    )
    found = samples(*records, version=version)
    assert found[counter, "a"] == 2
    names = {key[0] for key in found}
    others = {name for name in names if name.startswith(("taint_eviction", "pod_gc"))}
    assert bool(others) is (version == "1.36")
    assert {name for name in names if "evictions" in name} == {counter}
    assert not any(name.endswith("_created") for name in names)
