"""The allocatable resources of new nodes follow from the existing nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.whatif.configuration.autoscaling.allocatable import (
    SystemReservations,
    size_notes,
    with_allocatable,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    instance_types,
    types_of_nodes,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config

LARGE = StatedType("large", {"cpu": "8", "memory": "32Gi"})
SMALL = StatedType("small", {"cpu": "2", "memory": "8Gi"})
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


def test_a_larger_type_reserves_the_same_share_as_the_node_of_another_type():
    reserved = SystemReservations(views(node("n", "a", "3")))
    assert reserved.allocatable(LARGE) == {
        "cpu": "6000m", "memory": str(24 * GIB), "pods": "58", "ephemeral-storage": "90Gi",
    }  # fmt: skip
    [note] = reserved.notes([LARGE])
    assert note.startswith("There is no node of large.")
    assert "1000m cpu and 4,096Mi memory as on n (a), or the same share if that is more." in note


def test_a_smaller_type_reserves_the_same_amount_as_the_node_of_another_type():
    """Kubelets of small machines reserve a larger share."""
    reserved = SystemReservations(views(node("n", "a", "3")))
    found = reserved.allocatable(SMALL)
    assert (found["cpu"], found["memory"]) == ("1000m", str(4 * GIB))


def test_a_type_that_is_smaller_than_the_reservation_is_named():
    tiny = StatedType("tiny", {"cpu": "2", "memory": "3Gi"})
    reserved = SystemReservations(views(node("n", "a", "3")))
    assert reserved.allocatable(tiny)["memory"] == "0"
    [note] = reserved.notes([tiny, SMALL])
    assert "This leaves nothing of tiny for pods." in note


def test_the_node_with_the_closest_memory_size_shows_the_reservation():
    huge = node("huge", "b", "3", created="2026-02-01T00:00:00Z", memory="256Gi")
    found = SystemReservations(views(node("n", "a", "3"), huge)).allocatable(SMALL)
    assert (found["cpu"], found["memory"]) == ("1000m", str(4 * GIB))


def test_a_type_with_a_node_has_what_is_allocatable_on_this_node():
    """The kubelet reports less memory than the machine has."""
    stated = StatedType("large", {"cpu": "4", "memory": "17Gi"})
    nodes = views(node("n", "a", "3", created="2026-02-01T00:00:00Z"), node("m", "large", "2"))
    reserved = SystemReservations(nodes, [stated])
    found = reserved.allocatable(stated)
    assert (found["cpu"], found["memory"]) == ("2000m", str(12 * GIB))
    assert list(reserved.notes([stated])) == []


def test_a_smaller_machine_reports_at_most_the_share_of_memory_that_karpenter_assumes():
    """The node reports 94.1 % of its machine's memory, and Karpenter assumes 92.5 %."""
    types = [StatedType("a", {"cpu": "4", "memory": "17Gi"}), SMALL]
    found = SystemReservations(views(node("n", "a", "3")), types).allocatable(SMALL)
    assert found["memory"] == str(8 * GIB * 925 // 1000 - 4 * GIB)


@pytest.mark.parametrize(
    ("capacity", "allocatable", "pods", "service", "reserved"),
    [
        ("15896988Ki", "14880156Ki", "58", "EKS", 255 + 11 * 29 + 100),
        ("15399244Ki", "12699980Ki", "110", "GKE", 1024 + 819 + 100),
        ("8148588Ki", "7380588Ki", "30", "AKS", 20 * 29 + 50 + 100),
    ],
    ids=["m5.xlarge", "n1-standard-4", "8 GB and 30 pods"],
)
def test_a_published_formula_that_fits_the_node_states_the_reserved_memory(
    capacity, allocatable, pods, service, reserved
):
    """The first two nodes are real ones. The new node has 8 GiB and 29 pods."""
    one = node("n", "a", "3", memory=capacity, pods=pods)
    one["status"]["allocatable"]["memory"] = allocatable
    small = replace(SMALL, capacity={**SMALL.capacity, "pods": "29"})
    found = SystemReservations(views(one))
    left = int(found.allocatable(small)["memory"])
    assert (8 * GIB - left) >> 20 == reserved
    [note] = found.notes([small])
    assert f"and memory by the formula of {service}, which fits this node." in note


def test_nodes_that_reserve_the_same_are_named_together():
    """The two new types are closest to different nodes; both nodes reserve by one formula."""
    nodes = [node("n", "a", "3"), node("m", "b", "3", memory="64Gi")]
    for one, memory, pods in ((nodes[0], 16, 58), (nodes[1], 64, 58)):
        left = (memory << 10) - (255 + 11 * pods + 100)
        one["status"]["allocatable"]["memory"] = f"{left}Mi"
    huge = replace(LARGE, name="huge", capacity={**LARGE.capacity, "memory": "96Gi"})
    [note] = SystemReservations(views(*nodes)).notes([SMALL, huge])
    assert note.count("1000m cpu") == 1
    assert (
        "1000m cpu as on m (b), n (a), or the same share if that is more, and memory by the "
        "formula of EKS, which fits these nodes." in note
    )


def test_stated_allocatable_amounts_replace_the_rule():
    one = replace(SMALL, allocatable={"cpu": "1900m", "memory": "7Gi"})
    reserved = SystemReservations(views(node("n", "a", "3")))
    found = reserved.allocatable(one)
    assert (found["cpu"], found["memory"], found["pods"]) == ("1900m", "7Gi", "58")
    assert list(reserved.notes([one])) == []


def test_network_interfaces_limit_pods_only_if_they_limit_the_pods_of_existing_nodes():
    """With prefix delegation, a setting of the kubelet limits the pods."""
    small = replace(SMALL, interface_pods=29)
    for limit, pods in ((58, "29"), (20, "58")):
        types = [StatedType("a", {"cpu": "4", "memory": "16Gi"}, interface_pods=limit), small]
        assert (
            SystemReservations(views(node("n", "a", "3")), types).allocatable(small)["pods"] == pods
        )


def test_a_stated_size_that_is_not_the_size_of_an_existing_node_is_named():
    nodes = views(node("n", "a", "3"), node("m", "b", "3"))
    types = [
        StatedType("a", {"cpu": "4", "memory": "32Gi"}),
        StatedType("b", {"cpu": "4", "memory": "17Gi"}),
    ]
    [note] = size_notes(nodes, types)
    assert "it states a with 32Gi memory (node n has 16Gi)." in note
    assert list(size_notes(nodes, types[1:])) == []


def test_nodes_of_different_sizes_that_share_a_price_are_named():
    """The file states no sizes, so it does not contradict the nodes."""
    nodes = views(node("n", "k3s", "3"), node("m", "k3s", "3", memory="32Gi"))
    [note] = size_notes(nodes, types_of_nodes(nodes))
    assert note.endswith("states one price for nodes of different sizes: those of k3s.")


def test_a_node_without_capacity_shows_no_reservation():
    """Otherwise new nodes of its type would have no CPU."""
    starting = node("n", "large", "0")
    starting["status"]["capacity"]["cpu"] = "0"
    reserved = SystemReservations(views(starting))
    assert reserved.allocatable(LARGE)["cpu"] == "8"


def test_without_nodes_all_capacity_is_allocatable():
    reserved = SystemReservations([])
    [found] = with_allocatable([LARGE], reserved)
    [made] = instance_types([found], ["z"])
    assert made.allocatable == made.capacity == {"cpu": 8000, "memory": 32 * GIB, "pods": 110}
    assert list(reserved.notes([LARGE])) == []


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
    assert any("1000m cpu and 4,096Mi memory as on n (small)," in note for note in notes)


def test_types_of_nodes_have_the_capacity_and_the_allocatable_amounts_of_the_nodes():
    """The limits of NodePools count the capacity."""
    nodes = views(node("n", "a", "3", **{"hugepages-2Mi": "1Gi"}))
    types = with_allocatable(types_of_nodes(nodes), SystemReservations(nodes))
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
    types = with_allocatable(types_of_nodes(nodes), SystemReservations(nodes))
    [made] = instance_types(types, ["z"])
    assert made.capacity["cpu"] == made.allocatable["cpu"] == 3000
    assert made.allocatable["memory"] == 12 * GIB


def test_amounts_that_a_type_does_not_state_are_those_of_the_node():
    """Of the stated amounts, at most all are allocatable, even if the node states less capacity."""
    one = node("n", "a", "5", **{"hugepages-2Mi": "1Gi", "example.com/nic": "2"})
    one["status"]["capacity"]["memory"] = "0"
    found = SystemReservations(views(one)).allocatable(LARGE)
    assert found == {
        "cpu": "8000m", "memory": "32Gi", "pods": "58", "ephemeral-storage": "90Gi",
        "hugepages-2Mi": "1Gi",
    }  # fmt: skip
