"""Plans for pods whose extended resources are devices, which no node lists as allocatable."""

from __future__ import annotations

from tests.unit.whatif.planner.cluster_size.test_size import sized
from tests.unit.whatif.planner.conftest import deployment, rebalanced
from tests.unit.whatif.planner.test_consolidate import consolidated
from tests.unit.whatif.planner.test_pod_claim import DRA, devices_of

GPU = "example.com/gpu"


def gpu_nodes(make, *names):
    """A node with one device for each of `names`, and the class that provides it as a resource."""
    spec = {"extendedResourceName": GPU}
    gpus = {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}
    return [gpus, *map(make.node, names), *(devices_of(name, 1) for name in names)]


def with_gpu(objects):
    """The `objects` of a workload or pod, whose containers also request a device."""
    for one in objects:
        container = one["spec"].get("template", one)["spec"]["containers"][0]
        container["resources"]["requests"][GPU] = "1"
        container["resources"]["limits"] = {GPU: "1"}
    return objects


def test_a_pod_moves_to_a_node_with_a_device(planner, make):
    """Node b has a device, too, so the pod can leave a, and one node is enough."""
    ml = with_gpu(deployment(make, "ml", ["a"]))
    made = planner(*gpu_nodes(make, "a", "b"), *ml)
    assert not made.lacking_elsewhere("a")
    found = consolidated(made)
    assert (len(found.removable), found.most) == (1, 1)


def test_new_nodes_have_devices_for_waiting_pods(planner, make):
    pods = with_gpu([make.pod(f"ml-{number}") for number in range(3)])
    found = sized(planner(*gpu_nodes(make, "a", "b"), *pods))
    assert (len(found.nodes), found.unplaceable) == (3, {})


def test_a_move_makes_room_for_a_pod_that_needs_a_device(planner, make):
    """Both nodes are half full; the pod needs three of four cores and a device."""
    web = deployment(make, "web", ["a", "a", "b", "b"])
    waiting = with_gpu([make.pod("ml", cpu="3")])
    plan = rebalanced(planner(*gpu_nodes(make, "a", "b"), *web, *waiting), moves=1)
    assert [one.placed for one in plan.moves] == ["default/ml"]
