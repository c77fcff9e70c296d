"""Field managers of the writes of controllers, kubelets and the scheduler."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/default/pods"
APPLY = "application/apply-patch+yaml"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(replicas=2, **template_meta):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels, **template_meta}, "spec": POD["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def rolled_out(cluster):
    """A cluster with a running Deployment."""
    cluster.ask("POST", DEPLOYMENTS, deployment())
    cluster.pass_time(5)
    return cluster


def entries(obj):
    """Return the owned fields by (manager, subresource)."""
    return {
        (entry["manager"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"]["managedFields"]
    }


def test_a_pod_has_a_controller_and_a_kubelet_as_field_managers(rolled_out):
    [pod, other] = rolled_out.list("pod")
    found = entries(pod)
    assert set(found) == {("kube-controller-manager", ""), ("kubelet", "status")}
    made, reported = found["kube-controller-manager", ""], found["kubelet", "status"]
    assert {"f:containers", "f:restartPolicy"} <= set(made["f:spec"])
    assert "f:nodeName" not in made["f:spec"]
    assert {"f:containerStatuses", "f:phase", "f:podIP"} <= set(reported["f:status"])
    assert 'k:{"type":"Ready"}' in reported["f:status"]["f:conditions"]
    assert made is entries(other)["kube-controller-manager", ""]


def test_status_and_revision_of_a_deployment_belong_to_its_controller(rolled_out):
    written = entries(rolled_out.find("deployment", "web"))["kube-controller-manager", "status"]
    annotations = written["f:metadata"]["f:annotations"]
    assert "f:deployment.kubernetes.io/revision" in annotations
    assert "f:replicas" in written["f:status"]


def test_an_apply_to_fields_of_a_controller_conflicts(rolled_out):
    [replica_set] = rolled_out.list("replicaset")
    name = replica_set["metadata"]["name"]
    path = f"/apis/apps/v1/namespaces/default/replicasets/{name}"
    wanted = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {"replicas": 7},
    }
    query = (("fieldManager", "me"),)
    refusal = rolled_out.ask("PATCH", path, wanted, APPLY, query=query)
    assert refusal["code"] == 409
    assert 'conflict with "kube-controller-manager"' in refusal["message"]
    assert ".spec.replicas" in refusal["message"]


def test_the_scheduler_owns_the_condition_and_the_events_that_it_writes(cluster):
    huge = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "99"}}}
    cluster.ask("POST", PODS, {**POD, "spec": {"containers": [huge]}})
    assert ("kube-scheduler", "status") in entries(cluster.find("pod", "a"))
    [event] = [row for row in cluster.list("event") if row["reason"] == "FailedScheduling"]
    assert set(entries(event)) == {("kube-scheduler", "")}


def test_a_node_has_the_kubelet_as_field_manager(cluster):
    found = entries(cluster.find("node", "node-2", ""))
    assert set(found) == {
        ("kubelet", ""),
        ("kubelet", "status"),
        ("kube-controller-manager", ""),  # the TTL annotation for caches
    }
    assert "f:capacity" in found["kubelet", "status"]["f:status"]


def test_conditions_of_an_unreachable_node_belong_to_the_node_controller(cluster):
    stopped = {"metadata": {"annotations": {"fairlead.dev/kubelet": "stopped"}}}
    cluster.ask("PATCH", "/api/v1/nodes/node-1", stopped, "application/merge-patch+json")
    cluster.pass_time(120)
    found = entries(cluster.find("node", "node-1", ""))
    assert "f:conditions" in found["kube-controller-manager", "status"]["f:status"]
    assert "f:taints" in found["kube-controller-manager", ""]["f:spec"]


def test_leases_belong_to_kubelets_and_default_objects_to_the_controller(cluster):
    lease = cluster.find("lease", "node-1", "kube-node-lease")
    assert set(entries(lease)) == {("kubelet", "")}
    shown = cluster.find("configmap", "kube-root-ca.crt")
    assert set(entries(shown)) == {("kube-controller-manager", "")}


def test_the_usage_of_a_quota_belongs_to_its_controller(cluster):
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}}
    cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    found = entries(cluster.find("resourcequota", "q"))
    assert "f:used" in found["kube-controller-manager", "status"]["f:status"]
