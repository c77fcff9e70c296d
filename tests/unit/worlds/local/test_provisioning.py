"""Dynamic provisioning in a local cluster for any provisioner name."""

from __future__ import annotations

import pytest

from fairlead.api.well_known_label import ZONE

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


@pytest.mark.parametrize(
    ("provisioner", "source"),
    [
        ("ebs.csi.aws.com", "csi"),
        ("kubernetes.io/aws-ebs", "csi"),
        ("rancher.io/local-path", "hostPath"),
        ("example.com/" + "a" * 60, "hostPath"),
        ("my_storage", "hostPath"),
    ],
)
def test_a_claim_is_bound_to_a_new_volume(cluster, provisioner, source):
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": provisioner})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    cluster.ask("POST", CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    cluster.pass_time(10)
    assert cluster.find("pvc", "a")["status"]["phase"] == "Bound"
    (volume,) = cluster.list("pv", "")
    assert source in volume["spec"]


@pytest.fixture
def claim():
    """A PersistentVolumeClaim of the class `fast`."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": "a"}, "spec": spec}


MERGE = "application/merge-patch+json"


@pytest.fixture
def bound(cluster, claim):
    """A cluster in which the claim is bound to a volume of 1Gi."""
    fast = {"metadata": {"name": "fast"}, "provisioner": "a.b", "allowVolumeExpansion": True}
    cluster.ask("POST", CLASSES, fast)
    cluster.ask("POST", CLAIMS, claim)
    cluster.pass_time(10)
    return cluster


def sizes(cluster):
    """Return the capacity of the volume, and the capacity in the claim's status."""
    [volume] = cluster.list("pv", "")
    status = cluster.find("pvc", "a")["status"]
    return volume["spec"]["capacity"]["storage"], status["capacity"]["storage"]


def grow(cluster, size):
    body = {"spec": {"resources": {"requests": {"storage": size}}}}
    return cluster.ask("PATCH", f"{CLAIMS}/a", body, MERGE)


def test_an_increased_request_of_a_claim_expands_its_volume(bound):
    grow(bound, "2Gi")
    assert sizes(bound) == ("1Gi", "1Gi")
    bound.pass_time(10)
    assert sizes(bound) == ("2Gi", "2Gi")
    events = {one["reason"]: one for one in bound.list("events")}
    assert {"Resizing", "VolumeResizeSuccessful"} <= {*events}
    assert events["Resizing"]["source"]["component"] == "external-resizer a.b"


def test_a_volume_that_was_not_provisioned_is_not_expanded(bound):
    [volume] = bound.list("pv", "")
    path = f"/api/v1/persistentvolumes/{volume['metadata']['name']}"
    mark = {"metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": None}}}
    bound.ask("PATCH", path, mark, MERGE)
    grow(bound, "2Gi")
    bound.pass_time(10)
    assert sizes(bound) == ("1Gi", "1Gi")


def test_an_expansion_that_a_policy_refuses_is_repeated(bound):
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["persistentvolumes"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false"}],
    }
    bound.ask("POST", policies, {"metadata": {"name": "p"}, "spec": spec})
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    bound.ask(
        "POST",
        f"{policies.removesuffix('ies')}ybindings",
        {"metadata": {"name": "b"}, "spec": binding},
    )
    grow(bound, "2Gi")
    bound.pass_time(30)
    assert sizes(bound) == ("1Gi", "1Gi")
    bound.ask("DELETE", f"{policies}/p")
    bound.pass_time(60)
    assert sizes(bound) == ("2Gi", "2Gi")


def as_stock_controller(cluster, claim):
    """Request a volume, and bind it to the claim, as kube-controller-manager does."""
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"})
    note = {"volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com"}
    claim = {**claim, "metadata": {**claim["metadata"], "annotations": note}}
    cluster.ask("POST", CLAIMS, claim)
    cluster.pass_time(10)


def test_volumes_are_provisioned_but_not_bound_beside_kube_controller_manager(make_cluster, claim):
    cluster = make_cluster(without=("volumes",))
    as_stock_controller(cluster, claim)
    [volume] = cluster.list("pv", "")
    assert volume["spec"]["claimRef"]["name"] == "a"
    assert volume["spec"]["csi"]["driver"] == "ebs.csi.aws.com"
    assert cluster.find("pvc", "a")["status"]["phase"] == "Pending"
    status = f"/api/v1/persistentvolumes/{volume['metadata']['name']}/status"
    cluster.ask("PATCH", status, {"status": {"phase": "Released"}}, MERGE)
    cluster.pass_time(10)
    assert cluster.list("pv", "") == []


def test_a_claim_that_no_controller_has_annotated_gets_no_volume(make_cluster, claim):
    cluster = make_cluster(without=("volumes",))
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"})
    cluster.ask("POST", CLAIMS, claim)
    cluster.pass_time(10)
    assert cluster.list("pv", "") == []


@pytest.mark.parametrize("without", [("volumes", "provisioner"), ("provisioner",)])
def test_without_the_provisioner_no_volume_is_created(make_cluster, claim, without):
    cluster = make_cluster(without=without)
    as_stock_controller(cluster, claim)
    assert cluster.list("pv", "") == []


def create_on_node(cluster, name, node, volumes):
    containers = [{"name": "c", "image": "i"}]
    spec = {"nodeName": node, "containers": containers, "volumes": volumes}
    pod = {"metadata": {"name": name}, "spec": spec}
    cluster.ask("POST", "/api/v1/namespaces/default/pods", pod)


def test_one_event_says_that_a_pod_waits_for_a_volume_on_another_node(bound):
    """For example the new pod of a Deployment during a rolling update."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}]
    for name, node in (("old", "node-1"), ("new", "node-2")):
        create_on_node(bound, name, node, volumes)
        bound.pass_time(60)
    assert bound.find("pod", "new")["status"]["phase"] == "Pending"
    [volume] = bound.list("pv", "")
    [event] = [one for one in bound.list("events") if one["reason"] == "FailedAttachVolume"]
    assert (event["involvedObject"]["name"], event["count"]) == ("new", 1)
    assert event["source"]["component"] == "attachdetach-controller"
    assert event["message"] == (
        f'Multi-Attach error for volume "{volume["metadata"]["name"]}" '
        "Volume is already used by pod(s) old"
    )


def test_a_pod_with_a_node_name_starts_only_when_its_claim_is_bound(cluster, claim):
    """Its kubelet retries, because no scheduler has waited for the claim."""
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "w", "emptyDir": {}},
    ]
    create_on_node(cluster, "p", "node-1", volumes)
    cluster.pass_time(5)
    cluster.ask("POST", CLAIMS, claim)
    cluster.pass_time(30)
    status = cluster.find("pod", "p")["status"]
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    events = [one for one in cluster.list("events") if one["reason"] == "FailedMount"]
    start = (
        "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
        "failed to process volumes=[v]: error processing PVC default/a: "
    )
    missing = 'failed to fetch PVC from API server: persistentvolumeclaims "a" not found'
    assert {one["message"] for one in events} == {start + missing, start + "PVC is not bound"}
    assert {(one["type"], one["source"]["component"]) for one in events} == {("Warning", "kubelet")}
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": "a.b"})
    cluster.pass_time(60)
    assert cluster.find("pvc", "a")["status"]["phase"] == "Bound"
    assert cluster.find("pod", "p")["status"]["phase"] == "Running"


def test_the_ephemeral_claim_of_a_pod_with_a_node_name_is_bound_first(cluster, claim):
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": "a.b"})
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim["spec"]}}}]
    create_on_node(cluster, "p", "node-1", volumes)
    cluster.pass_time(60)
    assert cluster.find("pvc", "p-v")["status"]["phase"] == "Bound"
    assert cluster.find("pod", "p")["status"]["phase"] == "Running"


def test_a_claim_without_a_class_gets_a_volume_in_the_zone_of_its_pod(cluster):
    """The default StorageClass provisions a volume when the pod of the claim is scheduled."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.ask("POST", CLAIMS, {"metadata": {"name": "a"}, "spec": claim})
    cluster.pass_time(10)
    found = cluster.find("pvc", "a")
    assert (found["spec"]["storageClassName"], found["status"]["phase"]) == ("standard", "Pending")

    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "a"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    spec = {
        "containers": [{"name": "c", "image": "nginx", "volumeMounts": mounts}],
        "volumes": volumes,
    }
    cluster.ask(
        "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec}
    )
    cluster.pass_time(10)
    pod = cluster.find("pod", "p")
    zone = cluster.find("node", pod["spec"]["nodeName"], "")["metadata"]["labels"][ZONE]
    [volume] = cluster.list("pv", "")
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert pod["status"]["phase"] == "Running"
    assert term["matchExpressions"][0] == {"key": ZONE, "operator": "In", "values": [zone]}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"without": ("storage-class",)}, id="it is left out"),
        pytest.param({"without": ("provisioner",)}, id="nothing provisions its volumes"),
        pytest.param(
            {"objects": ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},)},
            id="the cluster is a copy of another cluster",
        ),
    ],
)
def test_there_is_no_default_storage_class_if(make_cluster, options):
    assert make_cluster(**options).list("storageclass", "") == []
