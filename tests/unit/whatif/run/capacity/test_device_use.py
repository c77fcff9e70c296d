"""The tables of an answer count the devices of nodes by driver."""

from __future__ import annotations

from fairlead.api.codec import as_json
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

NAME = "gpu.example.com devices"


def manifest(one):
    """Return the object of resource.k8s.io as a dump contains it."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}


def used_by(make, name, node, device):
    """Return a pod on `node`, and its claim, which holds `device`."""
    pod = make.pod(name, node_name=node, resourceClaims=[{"name": "d", "resourceClaimName": name}])
    pod["metadata"]["uid"] = name
    claim = make_resource_claim(name, status=make_claim_status(node, device, reserved_for=[name]))
    return pod, manifest(claim)


def amounts(*objects, snapshot, **change):
    """Return the amounts of devices in the table of node pools and in that of all nodes."""
    result = whatif_result(what_if(snapshot(*objects), ClusterChange(**change)))
    tables = result["node_pools"][0]["resources"], result["allocation"]
    keys = ("allocatable_without", "allocatable", "requested_without", "requested")
    return [
        tuple(row[key] for key in keys)
        for rows in tables
        for row in rows
        if row["resource"] == NAME
    ]


def test_devices_in_use_are_counted_before_and_after_a_change(make, snapshot):
    """A tainted device is not allocatable, and a device of all nodes belongs to none of them."""
    taint = {"key": "broken", "effect": "NoSchedule"}
    objects = [
        make.node("a"),
        make.node("b"),
        manifest(make_slice("a", ["0", "1", {**make_device("2"), "taints": [taint]}])),
        manifest(make_slice("b", ["0"])),
        manifest(make_slice("", ["far"], spec={"allNodes": True})),
        *used_by(make, "p", "a", "0"),
        *used_by(make, "q", "b", "0"),
    ]
    found = amounts(*objects, snapshot=snapshot, delete=("node/b",))
    assert found == [(3, 2, 2, 1)] * 2


def test_a_partition_counts_as_used_if_other_partitions_use_its_hardware(make, snapshot):
    """Otherwise a node whose whole GPU is in use would look nearly empty."""

    def part(name, memory):
        uses = [{"counterSet": "c", "counters": {"memory": {"value": memory}}}]
        return {**make_device(name), "consumesCounters": uses}

    devices = make_slice("a", [part("whole", "2"), part("half-0", "1"), part("half-1", "1")])
    counters = [{"name": "c", "counters": {"memory": {"value": "2"}}}]
    shared = make_slice("a", [], name="counters", spec={"sharedCounters": counters})
    slices = [manifest(devices), manifest(shared)]
    for one in slices:
        one["spec"]["pool"]["resourceSliceCount"] = 2
    for held, used in (("whole", 3), ("half-0", 2)):
        objects = [make.node("a"), *slices, *used_by(make, "p", "a", held)]
        assert amounts(*objects, snapshot=snapshot) == [(3, 3, used, used)] * 2


def test_extended_resources_count_as_devices_on_nodes_that_list_none(make, snapshot):
    """Of three pods that request the resource, one is on a node with a device plugin."""
    gpu, objects = "example.com/gpu", []
    for name, node in (("p", "a"), ("q", "a"), ("r", "b")):
        pod = make.pod(name, node_name=node)
        pod["metadata"]["uid"] = name
        pod["spec"]["containers"][0]["resources"]["requests"][gpu] = "1"
        pod["spec"]["containers"][0]["resources"]["limits"] = {gpu: "1"}
        objects.append(pod)
    listing = make.node("b")
    listing["status"]["allocatable"][gpu] = "2"
    gpus = manifest(make_device_class("gpu"))
    gpus["spec"]["extendedResourceName"] = gpu
    objects += [make.node("a"), listing, gpus, manifest(make_slice("a", ["0", "1"]))]
    result = whatif_result(what_if(snapshot(*objects), ClusterChange()))
    for rows in (result["node_pools"][0]["resources"], result["allocation"]):
        [row] = [row for row in rows if row["resource"] == gpu]
        assert (row["allocatable"], row["requested_without"], row["requested"]) == (2, 1, 1)


def test_pods_show_the_devices_that_they_hold(make, snapshot):
    """The estimate of new nodes reads them."""
    objects = [make.node("a"), manifest(make_slice("a")), *used_by(make, "p", "a", "gpu-0")]
    [node] = what_if(snapshot(*objects), ClusterChange()).changed.nodes
    assert [pod.devices for pod in node.pods] == [{NAME: 1}]


def test_pods_keep_their_requests_if_a_slice_is_deleted(make, snapshot):
    """The pod still uses the device, which is not counted any more."""
    objects = [make.node("a"), manifest(make_slice("a")), *used_by(make, "p", "a", "gpu-0")]
    change = ClusterChange(delete=("resourceslice/gpu.example.com-a",))
    result = whatif_result(what_if(snapshot(*objects), change))
    assert result["verdict"]["sentence"] == "Nothing changes for any pod."


def test_nodes_without_devices_have_no_row(make, snapshot):
    assert amounts(make.node("a"), snapshot=snapshot) == []
