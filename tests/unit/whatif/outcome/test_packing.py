"""How densely pods are placed: nodes in use, spread, fragmentation, and cost."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.packing import packing
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

WEB = WorkloadRef("Deployment", "shop", "web")


def node(name, *cpus, zone="", daemons=0):
    """A node of 8 cores with pods of the Deployment web that request `cpus` cores."""
    pods = [
        PodEnd(namespace="shop", name=f"{name}-{at}", node=name, requests={"cpu": cpu * 1000},
               owner=WEB, belongs_to_node=at >= len(cpus) - daemons)
        for at, cpu in enumerate(cpus)
    ]  # fmt: skip
    return NodeEnd(
        name=name, zone=zone, unschedulable=False, allocatable={"cpu": 8000, "pods": 10},
        requested={"cpu": sum(cpus) * 1000, "pods": len(cpus)}, pods=tuple(pods),
    )  # fmt: skip


def measured(today, changed, price=lambda _: None):
    rows = packing(today, today, changed, price)
    assert all(one.today == one.without for one in rows)
    return {one.measure: (one.today, one.changed) for one in rows}


def test_spread_pods_use_more_nodes_and_leave_less_room():
    """Two free pieces of 5 cores hold two pods of 3; of one piece of 10, three would fit."""
    spread = [node("a", 3, zone="x"), node("b", 3, zone="y")]
    packed = [node("a", 3, 3, zone="x"), node("b", zone="y")]
    assert measured(spread, packed) == {
        "nodes in use": (2, 1),
        "cpu in use (%)": (37.5, 75.0),
        "room for largest pods": (2, 2),
        "fragmentation (%)": (33.3, 33.3),
        "spread: fullest node (%)": (50.0, 100.0),
        "spread: fullest zone (%)": (50.0, 100.0),
    }


def test_the_room_for_pods_is_limited_by_all_their_resources():
    """The pod with 2 of 8 GPUs is larger than the pod with 3 of 16 cores."""
    gpu = "nvidia.com/gpu"
    amounts = {"cpu": 1000, gpu: 2}
    trainer = PodEnd(namespace="shop", name="t", node="a", requests=amounts, owner=WEB)
    nodes = [
        replace(one, allocatable=one.allocatable | {gpu: 4}, requested=one.requested | {gpu: gpus})
        for one, gpus in ((node("a", 1), 2), (node("b", 3), 1))
    ]
    nodes[0] = replace(nodes[0], pods=(trainer,))
    found = measured(nodes, nodes)
    assert found["room for largest pods"] == (2, 2)
    assert found["nvidia.com/gpu in use (%)"] == (37.5, 37.5)


def test_virtual_nodes_are_left_out():
    virtual = replace(
        node("v", 5), labels={"type": "virtual-kubelet"}, allocatable={"cpu": 10**7, "pods": 5000}
    )
    machines = [node("a", 3), node("b", 3)]
    assert measured([*machines, virtual], [*machines, virtual]) == measured(machines, machines)


def test_daemonset_pods_do_not_count_as_use_of_a_node():
    found = measured([node("a", 3), node("b", 1, daemons=1)], [node("a", 3), node("b")])
    assert found["nodes in use"] == (1, 1)


def test_the_price_is_known_if_every_node_in_use_has_one():
    nodes = [node("a", 3), node("b", 3), node("c")]
    prices = {"a": 0.5, "b": 0.25}
    assert measured(nodes, nodes, lambda one: prices.get(one.name))["price per hour"] == (
        0.75, 0.75,
    )  # fmt: skip
    del prices["b"]
    assert "price per hour" not in measured(nodes, nodes, lambda one: prices.get(one.name))


def test_rescheduled_pods_are_compared_with_the_dump(snapshot, make, tmp_path):
    """The dump has both pods on one node; the scheduler spreads them. The types have prices."""
    label = "node.kubernetes.io/instance-type"
    nodes = [make.node(name, **{label: "small"}) for name in "ab"]
    pods = [make.pod(f"p{n}", node_name="a", owner="rs") for n in range(2)]
    types = tmp_path / "types.csv"
    types.write_text("name,cpu,memory,price\nsmall,4,16Gi,0.2\n")
    change = ClusterChange(reschedule="all")
    answer = what_if(snapshot(*nodes, *pods), change, Conditions(instance_types=str(types)))
    rows = {one["measure"]: one for one in whatif_result(answer)["packing"]}
    assert (rows["nodes in use"]["today"], rows["nodes in use"]["changed"]) == (1, 2)
    assert (rows["price per hour"]["today"], rows["price per hour"]["without"]) == (0.2, 0.4)
    assert any("by priority, then by age" in note for note in answer.changed.notes)
    assert whatif_result(what_if(snapshot(*nodes, *pods), ClusterChange()))["packing"] == []


def test_a_file_of_prices_has_the_types_of_the_nodes(snapshot, make, tmp_path):
    """A row of OpenCost can name a node; its price is that of the type of the node."""
    node = make.node("a", **{"node.kubernetes.io/instance-type": "small"})
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "Region,AssetClass,InstanceIDField,InstanceID,InstanceType,MarketPriceHourly\n"
        ",node,metadata.name,a,,0.3\n"
    )
    objects = snapshot(node, make.pod("p", node_name="a", owner="rs"))
    change = ClusterChange(reschedule="all")
    answer = what_if(objects, change, Conditions(instance_types=str(prices)))
    rows = {one["measure"]: one for one in whatif_result(answer)["packing"]}
    assert rows["price per hour"]["today"] == 0.3
