"""Why the claims of a pending pod get no devices."""

from __future__ import annotations

import pytest

from fairlead.api.codec import as_json
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device,
    make_device_class,
    make_device_request,
    make_first_available,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.target import explain_object

IS_GPU = 'device.driver == "gpu.example.com"'
LARGE = 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("50Gi"))'
TAINT = {"key": "broken", "effect": "NoSchedule"}
WHAT = "Request r of claim default/mine"
TOGETHER = (
    "For each request of the pod's claims, there is a node with enough free devices. No node has "
    "enough for all requests together, within the constraints of the claims."
)


def cluster(make, *requests, constraints=(), cpu="1"):
    """Node a with 3 devices, of which 1 is in use and 1 is broken; node b with 2 free devices.

    The pod `waits` has a claim with `requests`, and requests `cpu`; b has only 1 CPU.
    """
    used = make_resource_claim("used", status=make_claim_status("a", "0", reserved_for=["other"]))
    objects = [
        make_device_class("gpu", IS_GPU),
        make_device_class("nic", "false"),
        make_slice("a", ["0", "1", {**make_device("2"), "taints": [TAINT]}]),
        make_slice("b", [make_device("0", numa=0), make_device("1", numa=1)]),
        used,
        make_resource_claim("mine", *requests, constraints=constraints),
    ]
    found = [
        {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}
        for one in objects
    ]
    nodes = [make.node("a"), make.node("b", cpu="1")]
    return [*nodes, *found, make.pod("waits", cpu=cpu, **make_pod_resource_claims("mine"))]


@pytest.mark.parametrize(
    ("requests", "cpu", "expected"),
    [
        (
            [make_device_request(of_class="nic")],
            "1",
            [f"{WHAT}: no node has a device of DeviceClass nic."],
        ),
        (
            [make_device_request("r", LARGE)],
            "1",
            [f"{WHAT}: its selectors match none of the 5 devices of DeviceClass gpu."],
        ),
        (
            [make_device_request(count=4)],
            "1",
            [f"{WHAT} needs 4 devices on one node, but no node has more than 3 (on a) that match."],
        ),
        (
            [make_device_request(count=3)],
            "1",
            [
                (
                    f"{WHAT} needs 3 devices on one node, but no node has more than 2 (on b) free. "
                    "5 devices match: 3 free, 1 in use, 1 with a taint that the request does not "
                    "tolerate."
                )
            ],
        ),
        (
            [make_device_request(count=2)],
            "2",
            [
                (
                    f"{WHAT} needs 2 devices on one node. Nodes with enough refuse the pod for "
                    "other reasons; the other nodes have at most 1 (on a) free. 5 devices match: 3 "
                    "free, 1 in use, 1 with a taint that the request does not tolerate."
                )
            ],
        ),
        ([make_device_request("r"), make_device_request("s", count=2)], "1", [TOGETHER]),
        (
            [
                make_first_available(
                    "r", make_device_request("x", LARGE), make_device_request("y", count=4)
                )
            ],
            "1",
            [
                (
                    "Request r/x of claim default/mine: its selectors match none of the 5 devices "
                    "of DeviceClass gpu."
                ),
                (
                    "Request r/y of claim default/mine needs 4 devices on one node, but no node "
                    "has more than 3 (on a) that match."
                ),
            ],
        ),
        (
            [make_first_available("r", make_device_request("x", LARGE), make_device_request("y"))],
            "8",
            [],
        ),
        ([make_device_request(count=2)], "1", []),
    ],
    ids=[
        "no device is of the class",
        "the selectors match no device",
        "no node has so many devices",
        "devices are in use or have taints",
        "a node with enough devices refuses the pod",
        "the requests compete",
        "no alternative can be allocated",
        "the pod lacks no devices",
        "the pod fits",
    ],
)
def test_the_notes_name_the_devices_that_a_pod_lacks(snapshot, make, requests, cpu, expected):
    objects = cluster(make, *requests, cpu=cpu)
    found = explain_pod(snapshot(*objects), "pod/waits", SchedulerConfig())
    assert list(found.notes) == expected


NOT_NUMA = '!("numa" in device.attributes["gpu.example.com"])'


@pytest.mark.parametrize(
    ("expressions", "cpu", "expected"),
    [
        (
            [NOT_NUMA],
            "1",
            [
                (
                    f"{WHAT} needs all matching devices of a node, but on no node are all of them "
                    "free. 3 devices match: 1 free, 1 in use, 1 with a taint that the request does "
                    "not tolerate."
                )
            ],
        ),
        (
            [],
            "2",
            [
                (
                    f"{WHAT} needs all matching devices of a node. Nodes on which all are free "
                    "refuse the pod for other reasons. 5 devices match: 3 free, 1 in use, 1 with a "
                    "taint that the request does not tolerate."
                )
            ],
        ),
        ([], "1", []),
    ],
    ids=["no node has them", "a node that has them refuses the pod", "the pod fits"],
)
def test_a_request_for_all_devices_needs_all_of_a_node(snapshot, make, expressions, cpu, expected):
    request = make_device_request("r", *expressions, allocationMode="All", count=0)
    objects = cluster(make, request, cpu=cpu)
    found = explain_pod(snapshot(*objects), "pod/waits", SchedulerConfig())
    assert list(found.notes) == expected


def test_a_constraint_can_be_the_cause(snapshot, make):
    """Each device of b is on another NUMA node."""
    match = {"requests": ["r"], "matchAttribute": "gpu.example.com/numa"}
    objects = cluster(make, make_device_request(count=2), constraints=[match])
    found = explain_pod(snapshot(*objects), "pod/waits", SchedulerConfig())
    assert list(found.notes) == [TOGETHER]


def test_an_incomplete_pool_is_named(snapshot, make):
    """A driver is publishing its slices, or the dump lacks some of them."""
    slices = [make_slice(name, ["0", "1", "2", "3", "4"], count=2) for name in ("c", "d")]
    objects = [*cluster(make, make_device_request(count=4)), make.node("c"), make.node("d")]
    objects += [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **as_json(one)}
                for one in slices]  # fmt: skip
    found = explain_pod(snapshot(*objects), "pod/waits", SchedulerConfig())
    assert list(found.notes) == [
        f"{WHAT} needs 4 devices on one node, but no node has more than 3 (on a) that match.",
        (
            "No device of pool gpu.example.com/c can be allocated: some of its ResourceSlices are "
            "missing. The same is true of 1 more pool."
        ),
    ]


def test_the_explanation_of_a_workload_names_the_devices(snapshot, make):
    """The first pending pod that fits no node is explained."""
    *others, pod = cluster(make, make_device_request("r", LARGE))
    pod["metadata"]["ownerReferences"] = make.pod("x", owner="web")["metadata"]["ownerReferences"]
    web = make.workload("ReplicaSet", "web", replicas=1)
    objects = [*others, web, pod]
    found = explain_object(snapshot(*objects), "rs/web", SchedulerConfig(), NO_CHOICE)
    sentence = f"{WHAT}: its selectors match none of the 5 devices of DeviceClass gpu."
    assert sentence in found.findings


@pytest.fixture
def of_extended(make):
    """Nodes a and b with 2 devices each, and a pod that requests them as an extended resource."""

    def objects(init, own, used=()):
        gpu = make_device_class("gpu", IS_GPU)
        slices = [make_slice(name, ["0", "1"]) for name in ("a", "b")]
        claims = [
            make_resource_claim(
                f"c{number}", status=make_claim_status("a", name, reserved_for=["other"])
            )
            for number, name in enumerate(used)
        ]
        found = [
            {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}
            for one in (gpu, *slices, *claims)
        ]
        found[0]["spec"]["extendedResourceName"] = "example.com/gpu"
        pod = make.pod("waits")
        amounts = pod["spec"]["containers"][0]["resources"]
        amounts["requests"]["example.com/gpu"] = str(own)
        amounts["limits"] = {"example.com/gpu": str(own)}
        if init:
            limits = {"example.com/gpu": str(init)}
            resources = {"requests": limits, "limits": limits}
            pod["spec"]["initContainers"] = [{"name": "i", "image": "i", "resources": resources}]
        return [make.node("a"), make.node("b"), *found, pod]

    return objects


TOO_FEW = (
    "Request example.com/gpu of container {} needs 3 devices on one node, but no node has more "
    "than 2 (on a) that match."
)


@pytest.mark.parametrize(
    ("init", "own", "used", "expected"),
    [
        pytest.param(0, 3, (), [TOO_FEW.format("c")], id="no node has so many devices"),
        pytest.param(0, 2, ("0",), [], id="another node has enough"),
        pytest.param(4, 1, (), [TOO_FEW.format("i")], id="an init container needs 3 more"),
        pytest.param(3, 1, (), [TOGETHER], id="the containers need too many together"),
    ],
)
def test_extended_resources_of_a_device_class_are_explained(
    snapshot, of_extended, init, own, used, expected
):
    found = explain_pod(snapshot(*of_extended(init, own, used)), "pod/waits", SchedulerConfig())
    assert list(found.notes) == expected
    # The nodes provide the resource, although their status does not list it.
    assert found.too_small == {}


def test_more_nodes_help_a_pod_that_requests_devices_in_use(snapshot, of_extended):
    """A copy of a node has free devices, so the answer must not say that no node has them."""
    *others, pod = of_extended(0, 2, ("0",))
    objects = [one for one in others if one["metadata"]["name"] not in ("b", "gpu.example.com-b")]
    found = explain_pod(snapshot(*objects, pod), "pod/waits", SchedulerConfig())
    assert (found.new_node.like, found.new_node.refusal) == ("a", "")
