"""Scale-up with GPUs, and among groups whose DaemonSet pods differ."""

from __future__ import annotations

import pytest

from fairlead.conformance.autoscaler.case import decide_autoscaler

GPU = "nvidia.com/gpu"
GPU_LABEL = "fleet/accelerator"
ZONE = "topology.kubernetes.io/zone"
CREATED = "2025-12-31T23:00:00Z"


def node(name, *, labels=None, allocatable=None, capacity=None, provider_id=""):
    plain = {"cpu": "4", "memory": "16Gi", "pods": "8"}
    return {
        "metadata": {"name": name, "labels": labels or {}, "creationTimestamp": CREATED},
        "spec": {"providerID": provider_id},
        "status": {
            "allocatable": {**plain, **(allocatable or {})},
            "capacity": {**plain, **(capacity or allocatable or {})},
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": CREATED},
            ],
        },
    }


def group(name, template, **more):
    return {"id": name, "min": 0, "max": 9, "template": template, **more}


def pod(name, requests, *, created=CREATED, init=None):
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if init:
        one = {"name": "init", "image": "i", "resources": {"requests": init, "limits": init}}
        spec["initContainers"] = [one]
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "d", "creationTimestamp": created},
        "spec": {**spec, "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def scaled(**case):
    options = {"scale-down-enabled": False, **case.pop("options", {})}
    found = decide_autoscaler({"name": "c", "nodes": [], "options": options, **case})
    (status,) = found["loops"][0]["scaleUp"]
    return status


def increases(status):
    return {one["group"]: one["to"] for one in status.get("increases", ())}


def gpu_template(**labels):
    return node("t", labels={GPU_LABEL: "k80", **labels}, allocatable={GPU: "4"})


@pytest.mark.parametrize(("limit", "found"), [("k80:0:8", {"g": 2}), ("k80:0:7", {})])
def test_a_node_without_driver_counts_with_the_gpus_of_its_template(limit, found):
    # upstream: processors/customresources/gpu_processor.go: GetNodeGpuTarget
    bare = node("g-0", labels={GPU_LABEL: "k80"}, provider_id="fleet://g/g-0")
    status = scaled(
        nodeGroups=[group("g", gpu_template(), target=1)],
        nodes=[bare],
        pods=[pod("p", {GPU: "1"})],
        options={"gpu-total": [limit]},
    )
    assert increases(status) == found


def test_allocatable_gpus_count_not_those_of_the_capacity():
    broken = node(
        "g-0", labels={GPU_LABEL: "k80"}, allocatable={GPU: "2"}, capacity={GPU: "4"},
        provider_id="fleet://g/g-0",
    )  # fmt: skip
    status = scaled(
        nodeGroups=[group("g", gpu_template(), target=1)],
        nodes=[broken],
        pods=[pod("p", {GPU: "1", "cpu": "3"}), pod("q", {GPU: "1", "cpu": "3"})],
        options={"gpu-total": ["k80:0:4"]},
    )
    assert increases(status) == {"g": 2}


def test_a_foreign_node_without_driver_prevents_scale_up():
    status = scaled(
        nodeGroups=[group("g", node("t"))],
        nodes=[node("n", labels={GPU_LABEL: "k80"})],
        pods=[pod("p", {"cpu": "5"}), pod("q", {"cpu": "4"}), pod("r", {"cpu": "4"})],
    )
    assert status["result"] == "ScaleUpError"
    assert "node without with gpu label" in status["error"]


def test_the_price_expander_avoids_gpus_without_label():
    # upstream: utils/gpu/gpu.go: NodeHasGpu
    with_gpu = node("t", labels={"fleet/group": "gpu"}, allocatable={GPU: "4"})
    plain = node("t", labels={"fleet/group": "plain"})
    status = scaled(
        nodeGroups=[group("gpu", with_gpu, price=0.1), group("plain", plain, price=1.0)],
        pods=[pod("p", {"cpu": "3"})],
        options={"expander": "price"},
    )
    assert increases(status) == {"plain": 1}


def test_gpus_that_only_an_init_container_requests_make_scale_up_wait():
    # upstream: utils/gpu/gpu.go: PodRequestsGpu
    recent = "2025-12-31T23:59:45Z"
    status = scaled(
        nodeGroups=[group("g", gpu_template())],
        pods=[pod("p", {"cpu": "1"}, created=recent, init={GPU: "1"})],
    )
    assert status["result"] == "ScaleUpInCooldown"


def test_groups_with_different_pod_counts_are_similar():
    # upstream: compare_nodegroups.go: pods do not use up the resource `pods`
    daemon = {
        "metadata": {"name": "d", "namespace": "d", "uid": "u"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {ZONE: "a"}}
            }
        },
    }
    status = scaled(
        nodeGroups=[group(zone, node("t", labels={ZONE: zone})) for zone in ("a", "b")],
        pods=[pod(name, {"cpu": "3"}) for name in ("p", "q")],
        daemonsets=[daemon],
        options={"balance-similar-node-groups": True},
    )
    assert increases(status) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("provider", "label", "found"),
    [
        ("aws", "eks.amazonaws.com/nodegroup", {"a": 1, "b": 1}),
        ("aws", "topology.k8s.aws/zone-id", {"a": 1, "b": 1}),
        ("azure", "kubernetes.azure.com/agentpool", {"a": 1, "b": 1}),
        ("clusterapi", "topology.ebs.csi.aws.com/zone", {"a": 1, "b": 1}),
        ("gce", "topology.gke.io/zone", {"a": 1, "b": 1}),
        ("gce", "eks.amazonaws.com/nodegroup", {"a": 2}),
        ("", "topology.gke.io/zone", {"a": 2}),
    ],
)
def test_groups_with_different_cloud_provider_labels_are_similar(provider, label, found):
    status = scaled(
        nodeGroups=[group(name, node("t", labels={label: name})) for name in "ab"],
        pods=[pod(name, {"cpu": "3"}) for name in ("p", "q")],
        options={"balance-similar-node-groups": True, "cloud-provider": provider},
    )
    assert increases(status) == found


@pytest.mark.parametrize(("provider", "found"), [("azure", {"a": 1, "b": 1}), ("", {"a": 2})])
def test_groups_of_one_azure_node_pool_are_similar_whatever_their_labels(provider, found):
    # upstream: azure_nodegroups.go: nodesFromSameAzureNodePool
    status = scaled(
        nodeGroups=[
            group(name, node("t", labels={"agentpool": "x", "own": name})) for name in "ab"
        ],
        pods=[pod(name, {"cpu": "3"}) for name in ("p", "q")],
        options={"balance-similar-node-groups": True, "cloud-provider": provider},
    )
    assert increases(status) == found
