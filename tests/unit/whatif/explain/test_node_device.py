"""The explanation of a node describes its devices."""

from __future__ import annotations

from fairlead.api.codec import as_json
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object


def manifest(one):
    """Return the object of resource.k8s.io as a dump contains it."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}


def findings(snapshot, *objects):
    """The findings about the node a."""
    answer = explain_object(snapshot(*objects), "node/a", SchedulerConfig(), NO_CHOICE)
    return [one for one in answer.findings if "device" in one]


def test_devices_of_claims_are_counted_by_driver(snapshot, make):
    """Devices that other nodes can use, too, do not belong to the node."""
    taint = {"key": "broken", "effect": "NoSchedule"}
    local = make_slice("a", ["0", "1", {**make_device("2"), "taints": [taint]}])
    shared = make_slice("", ["far"], spec={"allNodes": True})
    claim = make_resource_claim("used", status=make_claim_status("a", "0", reserved_for=["p"]))
    objects = [make.node("a"), *map(manifest, (local, shared, claim))]
    assert findings(snapshot, *objects) == [
        "Claims use 1 of its 3 devices of gpu.example.com (1 with a taint that keeps claims off)."
    ]


def test_partitions_are_not_counted_as_separate_hardware(snapshot, make):
    """The number of partitions says little about the free room."""
    uses = [{"counterSet": "c", "counters": {"memory": {"value": "1"}}}]
    half = {**make_device("0"), "consumesCounters": uses}
    assert findings(snapshot, make.node("a"), manifest(make_slice("a", [half]))) == [
        (
            "Claims use 0 of its 1 device of gpu.example.com (some share hardware and exclude each "
            "other)."
        )
    ]


def test_unhealthy_devices_of_a_device_plugin_are_named(snapshot, make):
    """The requests of running pods may exceed the healthy devices."""
    node = make.node("a")
    node["status"]["capacity"] = {**node["status"]["allocatable"], "nvidia.com/gpu": "2"}
    node["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    pod = make.pod("p", node_name="a", owner="web")
    wanted = pod["spec"]["containers"][0]["resources"]
    wanted["requests"]["nvidia.com/gpu"] = "1"
    wanted["limits"] = {"nvidia.com/gpu": "1"}
    answer = explain_object(snapshot(node, pod), "node/a", SchedulerConfig(), NO_CHOICE)
    assert "1 of 0 nvidia.com/gpu" in answer.findings[0]
    assert answer.findings[1] == (
        "Only 0 of its 2 nvidia.com/gpu are allocatable: the device plugin has not reported the "
        "others as healthy."
    )
