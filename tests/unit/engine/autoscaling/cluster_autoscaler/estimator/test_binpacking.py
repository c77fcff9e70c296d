"""Bin packing by free resources gives the same result as the simulation of each pod."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.autoscaling.cluster_autoscaler.estimator.binpacking import estimate
from fairlead.engine.autoscaling.cluster_autoscaler.estimator.pod_order import fast_path_group
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import (
    ClusterSnapshot,
)
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.core.tie_break import TieBreak
from fairlead.testing import make_node, make_pod

SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}},
        }
    ]
}


class SimulatingSnapshot(ClusterSnapshot):
    """A snapshot that simulates every pod."""

    def fits_by_resources(self, pod):
        return False


def packed(kind, groups, *, limit, last_index):
    """Return (estimate, index at which the next search starts)."""
    snapshot = kind(Listers(AutoscalingOptions()))
    base = [make_node(f"n{number}", cpu="1", memory="1Gi") for number in range(3)]
    for node in base:
        snapshot.put(node)
    template = Template(make_node("t", cpu="4", memory="8Gi", pods=6), ())
    with snapshot.loop([node.metadata.name for node in base]):
        snapshot.last_index = last_index
        infos = [[snapshot.pod_info(pod) for pod in pods] for pods in groups]
        found = estimate(snapshot, infos, template, limit)
        assert [info.name for info in snapshot.nodes()] == ["n0", "n1", "n2"]
        return found.nodes, [pod.key for pod in found.pods], snapshot.last_index


def chooser(seed):
    """Return a function that chooses among values, determined by the seed."""
    tie_break = TieBreak(seed)
    return lambda values: values[tie_break.pick(len(values))]


def some_groups(choose):
    groups = []
    for number in range(choose((1, 2, 3, 4, 5))):
        cpu, memory = choose((0, 100, 700, 1500, 4000, 5000)), choose((0, 256, 3000))
        extra = choose((SPREAD, *[{}] * 9))
        groups.append(
            [
                make_pod(
                    f"p{number}-{place}",
                    requests={"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
                    labels={"app": "spread" if extra else f"a{number}"},
                    spec=extra,
                )
                for place in range(choose(range(1, 15)))
            ]
        )
    return groups


@pytest.mark.parametrize("seed", range(60))
def test_packing_by_resources_equals_the_simulation(seed):
    choose = chooser(seed)
    groups, limit = some_groups(choose), choose((None, 0, 2, 5))
    at = choose(range(10))
    by_resources = packed(ClusterSnapshot, groups, limit=limit, last_index=at)
    assert by_resources == packed(SimulatingSnapshot, groups, limit=limit, last_index=at)


def test_pods_with_host_selectors_or_spread_constraints_are_simulated():
    """Free resources alone do not decide whether such a pod fits."""
    snapshot = ClusterSnapshot(Listers(AutoscalingOptions()))
    for fields, expected in (
        ({}, True),
        ({"nodeSelector": {"kubernetes.io/hostname": "x"}}, False),
        ({"nodeSelector": {"pool": "x"}}, True),
        (SPREAD, False),
    ):
        pod = snapshot.pod_info(make_pod("p", labels={"app": "spread"}, spec=fields))
        assert snapshot.fits_by_resources(pod) is expected


def test_the_group_for_the_fast_path_is_chosen_with_floating_point_sums():
    """Ten pods of 700m need 7.000000000000001 cores, which is two nodes with 7 cores."""
    snapshot = ClusterSnapshot(Listers(AutoscalingOptions()))
    sizes = (("a", 10, "700m"), ("b", 4, "3500m"))
    groups = [
        [snapshot.pod_info(make_pod(f"{name}{at}", requests={"cpu": cpu})) for at in range(count)]
        for name, count, cpu in sizes
    ]
    node = make_node("t", cpu="7", memory="8Gi")
    node = replace(node, status=replace(node.status, capacity=node.status.allocatable))
    assert fast_path_group(groups, node) == 0
