"""Claims of pods that planners move: ephemeral volumes, template claims and shared claims."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment, rebalanced

from fairlead.api.objects import PersistentVolumeClaim, ResourceClaim
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.decision import Placement
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.planner.node_drain.drain_planner import PlannedDrain
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

HOSTNAME = "kubernetes.io/hostname"
DRA = "resource.k8s.io/v1"
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "disk"},
    "provisioner": "csi.example",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "disk",
    "resources": {"requests": {"storage": "1Gi"}},
}
SCRATCH = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}}
DEVICES = {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}
DEVICE_CLASS = {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
TEMPLATE = {
    "apiVersion": DRA,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"spec": {"devices": DEVICES}},
}
FROM_TEMPLATE = [{"name": "g", "resourceClaimTemplateName": "one"}]
SHARED = [{"name": "g", "resourceClaimName": "shared"}]


def owner(pod):
    meta = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}


def bound_claim(pod, node):
    """The claim of the ephemeral volume of `pod`, bound to a local volume on `node`, and the PV."""
    name = f"{pod['metadata']['name']}-scratch"
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"{name}-uid",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            "ownerReferences": [{**owner(pod), "controller": True}],
        },
        "spec": {**CLAIM_SPEC, "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {**reference, "uid": f"{name}-uid"},
            "csi": {"driver": "csi.example", "volumeHandle": name},
            "storageClassName": "disk",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Bound"},
    }
    return [claim, volume]


def devices_of(node, count):
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"d{number}"} for number in range(count)]
    spec = {"driver": "gpu.example", "nodeName": node, "pool": pool, "devices": found}
    return {
        "apiVersion": DRA,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": spec,
    }


def allocated(name, node, device, pods, *, owned=False):
    """Return a claim to which `device` of `node` is allocated, reserved for `pods`."""
    result = {"request": "g", "driver": "gpu.example", "pool": node, "device": device}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    consumers = [
        {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for pod in pods
    ]
    meta = {"name": name, "namespace": "default", "uid": f"{name}-uid"}
    if owned:
        meta["ownerReferences"] = [{**owner(pods[0]), "controller": True}]
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": DEVICES},
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [term]},
            },
            "reservedFor": consumers,
        },
    }


def with_uids(objects):
    for one in objects:
        if one["kind"] == "Pod":
            one["metadata"]["uid"] = f"{one['metadata']['name']}-uid"
    return objects


@pytest.fixture
def scratch(make):
    """Two nodes, and a Deployment with an ephemeral volume on the first."""
    objects = with_uids(deployment(make, "web", ["a"], volumes=[SCRATCH]))
    return [make.node("a"), make.node("b"), CLASS, *objects, *bound_claim(objects[-1], "a")]


@pytest.fixture
def generated(make):
    """Two nodes with a device each, and a pod that uses the first device by a generated claim."""
    objects = with_uids(deployment(make, "web", ["a"], resourceClaims=FROM_TEMPLATE))
    status = [{"name": "g", "resourceClaimName": "web-g"}]
    objects[-1]["status"]["resourceClaimStatuses"] = status
    claim = allocated("web-g", "a", "d0", objects[-1:], owned=True)
    nodes = [make.node("a"), make.node("b"), devices_of("a", 1), devices_of("b", 1)]
    return [*nodes, DEVICE_CLASS, TEMPLATE, *objects, claim]


@pytest.fixture
def shared(make):
    """Two nodes with a device each, and two pods that share the first by a named claim."""
    objects = with_uids(deployment(make, "web", ["a", "a"], resourceClaims=SHARED))
    claim = allocated("shared", "a", "d0", objects[-2:])
    nodes = [make.node("a"), make.node("b"), devices_of("a", 1), devices_of("b", 1)]
    return [*nodes, DEVICE_CLASS, *objects, claim]


@pytest.mark.parametrize("cluster", ["scratch", "generated", "shared"])
def test_pods_get_new_claims_on_another_node(request, planner, cluster):
    """The old claims bind the pods to their node; the new pods have new claims, or release them."""
    found = planner(*request.getfixturevalue(cluster)).empty("a")
    assert isinstance(found, PlannedDrain)
    assert {move.target for move in found.moves} == {"b"}


@pytest.mark.parametrize("cluster", ["scratch", "generated", "shared"])
def test_claims_are_restored_after_a_hypothesis(request, planner, cluster):
    """After a hypothesis, claims and devices are as before; repeated changes change them again."""
    model = (plan := planner(*request.getfixturevalue(cluster))).model
    kinds = (PersistentVolumeClaim, ResourceClaim)
    related, ledger = model.cluster.related, model.cluster.devices
    devices = [("gpu.example", node, "d0") for node in ("a", "b")]

    def state():
        claims = {one.key: one for kind in kinds for one in related.all_of(kind)}
        return claims, [ledger.is_taken(device) for device in devices]

    before = state()
    with model.hypothesis() as supposed:
        assert isinstance(plan.empty("a"), PlannedDrain)
        changes = model.changes_since(supposed)
        with model.hypothesis():
            assert not isinstance(plan.empty("b"), PlannedDrain)
            assert state() != before
        moved = state()
        with model.hypothesis():
            for pod in list(model.node("b").pods.values()):
                model.remove(pod)
                new = model.replacement(pod)
                assert isinstance(model.schedule(new), Placement)
        assert state() == moved
    assert state() == before
    with model.hypothesis():
        model.repeat(changes)
        assert state() == moved
    assert state() == before


@pytest.mark.parametrize(("cluster", "count"), [("scratch", 7), ("generated", 1), ("shared", 2)])
def test_fit_creates_claims_for_new_pods(request, snapshot, cluster, count):
    """Cores limit pods with volumes, devices those with claims, and one node those that share."""
    read = snapshot(*request.getfixturevalue(cluster))
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    found = fit(ClusterModel(read, SchedulerConfig()), source, NoProgress())
    assert found.count == count


def test_claims_that_are_bound_immediately_have_volumes(snapshot, planner, make, scratch):
    """The volume controller provisions the volume before the pod is scheduled."""
    cluster = [
        {**one, "volumeBindingMode": "Immediate"} if one["kind"] == "StorageClass" else one
        for one in scratch
    ]
    assert isinstance(planner(*cluster).empty("a"), PlannedDrain)
    claims = [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]
    sts = make.workload("StatefulSet", "db", replicas=0)
    sts["spec"]["volumeClaimTemplates"] = claims
    read = snapshot(*cluster, sts)
    for like in ("deploy/web", "sts/db"):
        source = pod_source(None, like, "", Inventory(read.manifests))
        assert fit(ClusterModel(read, SchedulerConfig()), source, NoProgress()).count == 7


@pytest.mark.parametrize(
    ("phase", "of_claim", "is_drained"),
    [("Bound", {}, True), ("Pending", {}, False), ("Bound", {"name": "other"}, False)],
)
def test_a_bound_claim_without_its_annotation_is_bound(planner, make, phase, of_claim, is_drained):
    """The claim is not bound if its phase is Pending, or if its volume is that of another claim."""
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "d", "uid": "d"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d", "namespace": "default", "uid": "d"},
        "spec": {**CLAIM_SPEC, "storageClassName": "", "volumeName": "pv"},
        "status": {"phase": phase},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": reference | of_claim,
            "csi": {"driver": "csi.example", "volumeHandle": "v"},
        },
        "status": {"phase": "Bound"},
    }
    rs = make.workload("ReplicaSet", "web", replicas=1)
    rs["metadata"]["uid"] = "web"
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    rs["spec"]["template"]["spec"]["volumes"] = volumes
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["spec"]["volumes"] = volumes
    plan = planner(make.node("a"), make.node("b"), claim, volume, rs, pod)
    assert isinstance(plan.empty("a"), PlannedDrain) is is_drained


def test_fit_shares_a_claim_that_is_not_allocated(snapshot, make):
    """The first pod allocates the claim on a node; three more pods of one core join it there."""
    claim = {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": "shared", "namespace": "default"},
        "spec": {"devices": DEVICES},
    }
    web = make.workload(replicas=0, resourceClaims=SHARED)
    nodes = [make.node("a"), make.node("b"), devices_of("a", 1), devices_of("b", 1)]
    read = snapshot(*nodes, DEVICE_CLASS, claim, web)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    found = fit(ClusterModel(read, SchedulerConfig()), source, NoProgress())
    assert (found.count, len(found.by_node)) == (4, 1)


@pytest.mark.parametrize("lacking", [{"PersistentVolumeClaim"}, {"StorageClass"}])
def test_claims_and_classes_that_the_dump_lacks_are_assumed(snapshot, planner, scratch, lacking):
    """Lacking claims are made from their template; lacking classes provision volumes."""
    cluster = [one for one in scratch if one["kind"] not in {*lacking, "PersistentVolume"}]
    assert isinstance(planner(*cluster).empty("a"), PlannedDrain)
    read = snapshot(*cluster)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    assert fit(ClusterModel(read, SchedulerConfig()), source, NoProgress()).count == 7


def test_the_devices_of_a_pod_that_stops_are_in_use(generated, make, planner):
    """Only the device on b is free for the replacement, so the waiting pod gets the whole node a.

    If the device on a were free, too, the replacement would stay on a, which has more free cpu.
    """
    generated[1] = make.node("b", cpu="1")
    plan = rebalanced(planner(*generated, make.pod("big", cpu="4")))
    assert [(one.move.origin, one.move.target) for one in plan.moves] == [("a", "b")]
    assert [one.placed for one in plan.moves] == ["default/big"]


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_pod_that_stops_keeps_the_devices_of_a_claim_that_it_names(make, planner, consumers):
    """Its replacement shares the claim, so only the node of the devices is possible."""
    objects = with_uids(deployment(make, "web", ["a"] * consumers, resourceClaims=SHARED))
    claim = allocated("shared", "a", "d0", objects[-consumers:])
    nodes = [make.node("a"), make.node("b"), devices_of("a", 1), devices_of("b", 1)]
    bare = make.pod("bare", cpu="1", node_name="a")
    assert not rebalanced(planner(*nodes, DEVICE_CLASS, *objects, claim, bare)).moves


@pytest.mark.parametrize("limit", [1, 2])
def test_the_ephemeral_volume_of_a_pod_that_stops_is_attached(scratch, make, planner, limit):
    """With a limit of one volume, the replacement leaves the node even without a cordon."""
    scratch[1] = make.node("b", "1")
    drivers = [{"name": "csi.example", "nodeID": "a", "allocatable": {"count": limit}}]
    node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "a"},
        "spec": {"drivers": drivers},
    }
    plan = rebalanced(planner(*scratch, node, make.pod("big", cpu="4")))
    moves = [(one.move.origin, one.move.target, one.is_cordoned) for one in plan.moves]
    assert moves == [("a", "b", limit > 1)]
