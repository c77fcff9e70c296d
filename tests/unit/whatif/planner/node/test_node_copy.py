"""Copies of nodes have the volume limits and the devices of the original node."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import daemon_pod, deployment
from tests.unit.whatif.planner.test_pod_claim import (
    CLAIM_SPEC,
    CLASS,
    DEVICE_CLASS,
    FROM_TEMPLATE,
    SCRATCH,
    TEMPLATE,
    allocated,
    bound_claim,
    devices_of,
    with_uids,
)

from fairlead.api.objects import CSINode, ResourceSlice
from fairlead.engine.autoscaling.node_dependents import copied_dependent
from fairlead.engine.scheduling.decision import Placement
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.planner.cluster_size.node_offer import node_offers
from fairlead.whatif.planner.cluster_size.search import SizeSearch
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.planner.node.node_copy import copy_node
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress

LIMITED = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSINode",
    "metadata": {"name": "a"},
    "spec": {
        "drivers": [{"name": "csi.example", "nodeID": "a", "allocatable": {"count": 2}}]
    },
}  # fmt: skip


def with_devices(make, count):
    """A node with `count` devices, and a workload whose pods use one each."""
    objects = with_uids(deployment(make, "web", ["a"] * count, resourceClaims=FROM_TEMPLATE))
    claims = []
    for number, pod in enumerate(objects[2:]):
        pod["status"]["resourceClaimStatuses"] = [{"name": "g", "resourceClaimName": f"g-{number}"}]
        claims.append(allocated(f"g-{number}", "a", f"d{number}", [pod], owned=True))
    return [make.node("a"), devices_of("a", count), DEVICE_CLASS, TEMPLATE, *objects, *claims]


def sized(planner, types=()):
    model = planner.model
    replaced = model.table.nodes()
    offers = node_offers(model, replaced, types, 0.0)
    return SizeSearch(model, offers, Survival(), NoProgress()).run(replaced, 5)


def test_a_copy_does_not_replace_a_node_of_its_name(planner, make):
    """`a-copy-1` was deleted, but its pod still exists."""
    left = make.pod("left", node_name="a-copy-1")
    model = planner(make.node("a"), make.node("a-copy", cpu="1"), left).model
    with model.hypothesis():
        for _ in range(2):
            copy_node(model, model.node("a"), "a-copy").add_to(model)
        assert [info.name for info in model.table.nodes()] == [
            "a",
            "a-copy",
            "a-copy-2",
            "a-copy-3",
        ]
        assert model.node("a-copy").allocatable[0] == 1000


def test_a_copy_has_its_own_csi_node_and_devices(planner, make):
    model = planner(*with_devices(make, 2), LIMITED).model
    new = copy_node(model, model.node("a"), "b")
    with model.hypothesis():
        new.add_to(model)
        assert model.cluster.related.get(CSINode, "b").spec == (
            model.cluster.related.get(CSINode, "a").spec
        )
        added = model.cluster.related.get(ResourceSlice, "a-gpus-b")
        assert (added.spec.node_name, added.spec.pool.name) == ("b", "b")
    assert model.cluster.related.get(ResourceSlice, "a-gpus-b") is None
    kinds = [manifest.kind.kind for manifest in new.manifests(model)]
    assert sorted(kinds) == ["CSINode", "Node", "ResourceSlice"]


def test_the_devices_of_a_copy_have_no_taints(planner, make):
    """A driver taints a device that is unhealthy, and the devices of a new machine are healthy."""
    slices = devices_of("a", 2)
    slices["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    model = planner(make.node("a"), slices, DEVICE_CLASS).model
    new = copy_node(model, model.node("a"), "b")
    with model.hypothesis():
        new.add_to(model)
        for name, taints in (("a-gpus", 1), ("a-gpus-b", 0)):
            spec = model.cluster.related.get(ResourceSlice, name).spec
            assert len(spec.devices) == 2
            assert sum(len(one.taints) for one in spec.devices) == taints
    copied = copied_dependent(slices, "a", "b")
    assert [one["name"] for one in copied["spec"]["devices"]] == [
        one["name"] for one in slices["spec"]["devices"]
    ]
    assert not any("taints" in one for one in copied["spec"]["devices"])


def daemon_set(make, **spec):
    agent = make.workload("DaemonSet", "agent", **spec)
    agent["metadata"]["uid"] = "ds-uid"
    agent["status"] = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1}
    return agent


DEDICATED = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "has_pod", "pods"),
    [
        pytest.param([], False, 1, id="its pod is missing at the moment"),
        pytest.param([], True, 1, id="its pod is pinned to the original node"),
        pytest.param([DEDICATED], True, 0, id="a taint came after its pod"),
    ],
)
def test_a_daemonset_decides_whether_it_runs_on_a_copy(planner, make, taints, has_pod, pods):
    node = make.node("a")
    node["spec"] = {"taints": taints}
    there = [daemon_pod(make, "a")] if has_pod else []
    model = planner(node, daemon_set(make), *there).model
    new = copy_node(model, model.node("a"), "b")
    assert [pod.metadata.name for pod in new.own_pods] == ["agent-b"] * pods


def test_the_pod_on_a_copy_has_the_node_affinity_that_a_webhook_added(planner, make):
    """The controller replaces the required node affinity, so webhooks add it after its pin."""
    there = daemon_pod(make, "a")
    node_affinity = there["spec"]["affinity"]["nodeAffinity"]
    [term] = node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    term["matchExpressions"] = [{"key": "gpu", "operator": "Exists"}]
    model = planner(make.node("a", gpu="x"), make.node("b"), daemon_set(make), there).model
    assert len(copy_node(model, model.node("a"), "c").own_pods) == 1
    assert not copy_node(model, model.node("b"), "c").own_pods


def test_a_copy_has_the_static_pods_and_the_pods_of_unknown_daemonsets(planner, make):
    model = planner(make.node("a"), static_pod(make), daemon_pod(make, "a")).model
    new = copy_node(model, model.node("a"), "b")
    assert sorted(pod.metadata.name for pod in new.own_pods) == ["agent-a-b", "proxy-b"]


def static_pod(make, cpu="1"):
    """The mirror pod of a static pod of node a."""
    proxy = make.pod("proxy-a", node_name="a", cpu=cpu, priority=2000001000)
    proxy["spec"]["priorityClassName"] = "system-node-critical"
    proxy["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    proxy["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "a",
                                             "uid": "a", "controller": True}]  # fmt: skip
    return proxy


def test_static_pods_are_created_with_a_copy(planner, make):
    model = planner(make.node("a"), static_pod(make)).model
    manifests = list(copy_node(model, model.node("a"), "b").manifests(model))
    assert [one.title for one in manifests] == ["Node b", "Pod default/proxy-b"]
    [_, proxy] = manifests
    assert proxy.value["spec"]["nodeName"] == "b"
    assert "priority" not in proxy.value["spec"]  # the class states it


def test_pods_of_unknown_daemonsets_are_created_with_a_copy(planner, make):
    """A DaemonSet in the snapshot creates its pod itself."""
    for objects, titles in (((), ["Node b", "Pod default/agent-a-b"]), ((True,), ["Node b"])):
        owners = [daemon_set(make) for _ in objects]
        model = planner(make.node("a"), daemon_pod(make, "a"), *owners).model
        manifests = list(copy_node(model, model.node("a"), "b").manifests(model))
        assert [one.title for one in manifests] == titles
    model = planner(make.node("a"), daemon_pod(make, "a")).model
    [_, agent] = copy_node(model, model.node("a"), "b").manifests(model)
    required = agent.value["spec"]["affinity"]["nodeAffinity"]
    [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["b"]}]


@pytest.mark.parametrize(("cpu", "placed"), [("1", 8), ("3", 2)])
def test_added_nodes_run_the_static_pods_of_the_original_node(make, snapshot, cpu, placed):
    """New nodes of 4 cores have room for 3 pods of 1 core beside a static pod of 1 core."""
    web = deployment(make, "web", ["a"])
    critical = make.priority_class("system-node-critical", 2000001000)
    change = ClusterChange(add_nodes=2, like="a", scale=("deploy/web=12",))
    objects = [make.node("a"), critical, static_pod(make, cpu), *web]
    found = what_if(snapshot(*objects), change).difference
    names = [pod.name for pod in found.placed if pod.belongs_to_node]
    assert names == ["proxy-new-node-1", "proxy-new-node-2"]
    assert len(found.placed) == placed + 2


def test_size_counts_the_devices_of_new_nodes(planner, make):
    assert len(sized(planner(*with_devices(make, 2))).nodes) == 1


def test_a_type_of_another_size_has_no_known_devices(planner, make):
    types = (StatedType("large", {"cpu": "8", "memory": "32Gi"}, prices={("on-demand", ""): 1.0}),)
    assert len(sized(planner(*with_devices(make, 2)), types).unplaceable) == 2


def test_size_keeps_the_volume_limit(planner, make):
    """Two volumes can be attached to a node, so three pods with a volume each need two nodes."""
    web = deployment(make, "web", ["a"] * 3, volumes=[SCRATCH], cpu="100m")
    pods = with_uids(web)[2:]
    claims = []
    for pod in pods:
        meta = pod["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        claims.append({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"{meta['name']}-scratch",
                "namespace": "default",
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": SCRATCH["ephemeral"]["volumeClaimTemplate"]["spec"],
        })  # fmt: skip
    found = sized(planner(make.node("a"), LIMITED, CLASS, *web, *claims))
    assert len(found.nodes) == 2


@pytest.mark.parametrize(("more", "placed"), [(1, 2), (2, 4)])
def test_added_nodes_have_the_devices_of_the_original_node(make, snapshot, more, placed):
    objects = with_devices(make, 2)
    change = ClusterChange(add_nodes=more, like="a", scale=("deploy/web=8",))
    found = what_if(snapshot(*objects), change).difference
    assert (len(found.placed), len(found.pending)) == (placed, 6 - placed)


@pytest.mark.parametrize(("instance_type", "placed"), [("big", 0), ("gpu", 2)])
def test_added_nodes_of_another_type_have_no_devices(make, snapshot, write, instance_type, placed):
    types = write("types.csv", "name,cpu,memory\nbig,16,64Gi\ngpu,8,32Gi\n")
    objects = with_devices(make, 2)
    objects[0]["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "gpu"
    change = ClusterChange(
        add_nodes=1, like="a", instance_type=instance_type, scale=("deploy/web=4",)
    )
    conditions = Conditions(instance_types=types)
    assert len(what_if(snapshot(*objects), change, conditions).difference.placed) == placed


LOCAL = "topology.csi.example/node"


@pytest.mark.parametrize(("is_bound", "fits"), [(True, False), (False, True)])
def test_local_volumes_stay_on_the_original_node(planner, make, snapshot, is_bound, fits):
    """The driver labels each node with its name, and publishes the node's free capacity."""
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "csi.example", "nodeID": "a", "topologyKeys": [LOCAL]}]},
    }
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example"},
        "spec": {"storageCapacity": True},
    }
    capacity = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "free", "namespace": "default"},
        "storageClassName": "disk",
        "nodeTopology": {"matchLabels": {LOCAL: "a"}},
        "capacity": "5Gi",
    }
    [db] = with_uids([make.pod("db", cpu="3")])
    claim, volume = bound_claim(db, "a")
    term = {"matchExpressions": [{"key": LOCAL, "operator": "In", "values": ["a"]}]}
    volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = [term]
    if not is_bound:
        claim |= {"spec": CLAIM_SPEC, "status": {"phase": "Pending"}}
        del claim["metadata"]["annotations"], claim["metadata"]["ownerReferences"]
    reference = {"claimName": claim["metadata"]["name"]}
    db["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": reference}]
    storage = [CLASS, csi_node, driver, capacity, claim, *([volume] if is_bound else [])]
    objects = [make.node("a", **{LOCAL: "a"}), make.pod("full", cpu="2", node_name="a"), *storage]

    found = what_if(snapshot(*objects, db), ClusterChange(add_nodes=1, like="a")).difference
    assert len(found.placed) == fits

    model = planner(*objects, db).model
    with model.hypothesis():
        copy_node(model, model.node("a"), "b").add_to(model)
        pod = next(one for one in model.pods() if one.pod.metadata.name == "db")
        assert isinstance(model.schedule(pod), Placement) is fits


def test_a_copy_has_all_devices_of_a_node_with_unhealthy_devices(planner, snapshot, make):
    """One of two devices is unhealthy. Other reserved amounts stay reserved."""
    node = make.node("a")
    node["status"] |= {
        "capacity": {"cpu": "8", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
        "allocatable": {"cpu": "7", "memory": "7Gi", "pods": "110", "example.com/gpu": "1"},
    }
    model = planner(node).model
    copied = copy_node(model, model.node("a"), "b").node.status.allocatable
    change = ClusterChange(add_nodes=1, like="a")
    answer = what_if(snapshot(node), change)
    [added] = [one for one in answer.changed.nodes if one.name != "a"]
    assert (copied["example.com/gpu"], copied["cpu"]) == ("2", "7")
    assert (added.allocatable["example.com/gpu"], added.allocatable["cpu"]) == (2, 7000)
