"""Nodes that a scenario generates."""

from __future__ import annotations

import pytest

from fairlead.whatif.input.error import InputError
from fairlead.whatif.scenario.generated_nodes import (
    GeneratedNodeGroup,
    GeneratedNodes,
    generated_nodes,
)

GPU = GeneratedNodeGroup(
    name="gpu", nodes=2, allocatable={"gpu": 8}, labels={"pool": "gpu"},
    taints=[{"key": "gpu", "effect": "NoSchedule"}],
)  # fmt: skip


def generate(**fields):
    return generated_nodes(GeneratedNodes(**fields), "s.yaml", 0)


def test_nodes_are_numbered_and_spread_over_zones():
    nodes = generate(nodes=11, zones=3)
    assert [node["metadata"]["name"] for node in nodes][:2] == ["node-00", "node-01"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones[:4] == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_zones_may_be_named_or_left_out():
    [node] = generate(nodes=1, zones=["eu-1a"])
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "eu-1a"
    [node] = generate(nodes=1)
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "node-0"}


def test_groups_extend_the_fields_of_all_nodes():
    nodes = generate(nodes=1, allocatable={"cpu": "8"}, labels={"os": "x"}, groups=[GPU])
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "gpu-0", "gpu-1"]
    gpu = nodes[1]
    assert gpu["status"]["allocatable"] == {"cpu": "8", "memory": "32Gi", "pods": "110", "gpu": 8}
    assert gpu["metadata"]["labels"]["pool"] == "gpu"
    assert gpu["metadata"]["labels"]["os"] == "x"
    assert gpu["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"nodes": -1}, "s.yaml: cluster.generated.nodes: -1 is negative"),
        ({"zones": -1}, "s.yaml: cluster.generated.zones: -1 is negative"),
        (
            {"groups": [GeneratedNodeGroup(nodes=-2)]},
            "s.yaml: cluster.generated.groups[0].nodes: -2 is",
        ),
        ({"nodes": 10**9}, "s.yaml: cluster.generated.nodes: 1000000000 nodes are more than"),
    ],
)
def test_impossible_counts_are_refused(fields, line):
    with pytest.raises(InputError) as refused:
        generate(**fields)
    assert str(refused.value).startswith(line)
