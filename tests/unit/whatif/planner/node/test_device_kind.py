"""DeviceKinds: which nodes have equal devices, and the planners that copy nodes."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import manifests

from fairlead.testing.device_builders import (
    make_device,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.planner.node.device_kind import DeviceKinds
from fairlead.whatif.planner.node_drain.upgrade_check import pools_of
from fairlead.whatif.planner.refusal import find_new_node

IS_BIG = 'device.attributes["gpu.example.com"].model == "big"'


def devices(*objects):
    return manifests("resource.k8s.io/v1", make_device_class("gpu"), *objects)


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        ([make_device("a", uuid="1")], [make_device("b", uuid="2")], True),
        ([make_device("a", model="big")], [make_device("a", model="small")], False),
        ([make_device("a", "8Gi")], [make_device("a", "40Gi")], False),
        ([make_device("a")], [make_device("a"), make_device("b")], False),
        ([make_device("a")], [], False),
    ],
)
def test_what_claims_can_read_distinguishes_devices(planner, make, first, second, is_equal):
    request = make_device_request("g", IS_BIG, capacity={"requests": {"memory": "1Gi"}})
    slices = [make_slice(name, one) for name, one in (("a", first), ("b", second)) if one]
    claim = make_resource_claim("c", request)
    made = planner(make.node("a"), make.node("b"), *devices(claim, *slices))
    kinds = DeviceKinds(made.model)
    assert (kinds.of("a") == kinds.of("b")) is is_equal


def test_devices_are_named_by_driver(planner, make):
    kinds = DeviceKinds(planner(make.node("a"), *devices(make_slice("a", ["x", "y"]))).model)
    assert kinds.in_words("a") == "2 gpu.example.com devices"
    assert kinds.in_words("b") == ""


def test_a_pod_that_lacks_devices_fits_a_copy_of_a_node_with_devices(planner, make):
    """The newest of the equal nodes has no devices."""
    pod = make.pod("p", **make_pod_resource_claims("gpu"))
    claim = make_resource_claim("gpu", make_device_request(count=2))
    objects = devices(claim, make_slice("a", ["x", "y"]), make_slice("b", ["x"]))
    model = planner(*(make.node(name) for name in "abc"), *objects, pod).model
    model.cordon("a")
    found = find_new_node(model, model.cluster.pods["default/p"])
    assert (found.like, found.refusal) == ("a", "")


def test_equal_nodes_with_other_devices_are_another_pool(planner, make):
    """In one pool, the surge node for a node with devices could lack them."""
    made = planner(*(make.node(name) for name in "abc"), *devices(make_slice("a"), make_slice("b")))
    found = pools_of(made.model, "").values()
    assert [[info.name for info in infos] for infos in found] == [["a", "b"], ["c"]]
