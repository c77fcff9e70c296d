"""The allocatable resources of new nodes follow from the existing nodes."""

from __future__ import annotations

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.whatif.configuration.autoscaling.allocatable import (
    AllocatableShares,
    with_allocatable,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    instance_types,
    types_of_nodes,
)
from fairlead.whatif.configuration.autoscaling.karpenter_config import karpenter_config

LARGE = StatedType("large", {"cpu": "8", "memory": "32Gi"})
GIB = 1 << 30


def node(name, kind, cpu, *, created="2026-01-01T00:00:00Z", **more):
    """Return a node of the instance type `kind`; it has 4 cores, of which `cpu` are allocatable."""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "58", "ephemeral-storage": "100Gi", **more}
    allocatable = {**capacity, "cpu": cpu, "memory": "12Gi", "ephemeral-storage": "90Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {INSTANCE_TYPE: kind}, "creationTimestamp": created},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }


def views(*nodes):
    return [decode_as(Node, one) for one in nodes]


def test_a_new_type_has_the_share_of_the_newest_node():
    nodes = views(node("new", "a", "3", created="2026-02-01T00:00:00Z"), node("old", "b", "2"))
    shares = AllocatableShares(nodes)
    found = shares.of("large", LARGE.capacity)
    assert found == {
        "cpu": "6000m", "memory": str(24 * GIB), "pods": "58", "ephemeral-storage": "90Gi",
    }  # fmt: skip
    [note] = shares.notes([LARGE])
    assert "shares as node new: 75.0% of the cpu and 75.0% of the memory." in note


def test_a_type_with_a_node_has_the_share_of_this_node():
    nodes = views(node("n", "a", "3", created="2026-02-01T00:00:00Z"), node("m", "large", "2"))
    shares = AllocatableShares(nodes)
    assert shares.of("large", LARGE.capacity)["cpu"] == "4000m"
    assert list(shares.notes([LARGE])) == []


def test_a_node_without_capacity_shows_no_share():
    """Otherwise new nodes of its type would have no CPU."""
    starting = node("n", "large", "0")
    starting["status"]["capacity"]["cpu"] = "0"
    shares = AllocatableShares(views(starting))
    assert shares.of("large", LARGE.capacity)["cpu"] == "8"


def test_without_nodes_all_capacity_is_allocatable():
    shares = AllocatableShares([])
    [found] = with_allocatable([LARGE], shares)
    [made] = instance_types([found], ["z"])
    assert made.allocatable == made.capacity == {"cpu": 8000, "memory": 32 * GIB, "pods": 110}
    assert list(shares.notes([LARGE])) == []


def test_a_machine_of_karpenter_keeps_what_the_existing_nodes_keep(found, write):
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    types = write("types.csv", "name,cpu,memory,pods\nsmall,4,16Gi,58\nlarge,8,32Gi,110\n")
    config, notes = karpenter_config("dump", found(node("n", "small", "3"), pool), str(types))
    by_name = {one.name: one for one in config.types}
    assert by_name["large"].capacity["cpu"] == 8000
    assert by_name["large"].allocatable["cpu"] == 6000
    assert by_name["large"].allocatable["memory"] == 24 * GIB
    assert by_name["large"].allocatable["pods"] == 110
    assert by_name["small"].allocatable["cpu"] == 3000
    assert any("as node n: 75.0% of the cpu" in note for note in notes)


def test_types_of_nodes_have_the_capacity_and_the_allocatable_amounts_of_the_nodes():
    """The limits of NodePools count the capacity."""
    nodes = views(node("n", "a", "3", **{"hugepages-2Mi": "1Gi"}))
    types = with_allocatable(types_of_nodes(nodes), AllocatableShares(nodes))
    [made] = instance_types(types, ["z"])
    assert made.capacity["cpu"] == 4000
    assert made.allocatable == {
        "cpu": 3000, "memory": 12 * GIB, "pods": 58, "ephemeral-storage": 90 * GIB,
        "hugepages-2Mi": GIB,
    }  # fmt: skip


def test_a_capacity_that_a_node_does_not_state_is_its_allocatable_amount():
    partial = node("n", "a", "3")
    del partial["status"]["capacity"]["cpu"]
    nodes = views(partial)
    types = with_allocatable(types_of_nodes(nodes), AllocatableShares(nodes))
    [made] = instance_types(types, ["z"])
    assert made.capacity["cpu"] == made.allocatable["cpu"] == 3000
    assert made.allocatable["memory"] == 12 * GIB


def test_amounts_that_a_type_does_not_state_are_those_of_the_node():
    """Of the stated amounts, at most all are allocatable, even if the node states less capacity."""
    one = node("n", "a", "5", **{"hugepages-2Mi": "1Gi", "example.com/nic": "2"})
    one["status"]["capacity"]["memory"] = "0"
    found = AllocatableShares(views(one)).of("large", LARGE.capacity)
    assert found == {
        "cpu": "8000m", "memory": "32Gi", "pods": "58", "ephemeral-storage": "90Gi",
        "hugepages-2Mi": "1Gi",
    }  # fmt: skip
