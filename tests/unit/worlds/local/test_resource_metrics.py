"""The Metrics API that `kubectl top` reads."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/default/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def container(name, **requests):
    return {"name": name, "image": "i", "resources": {"requests": requests}}


@pytest.fixture
def run(cluster):
    """Runs a pod with these containers on node-1."""

    def run(name, *containers, annotations=None, labels=None, node="node-1"):
        meta = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
        spec = {"containers": list(containers), "nodeName": node}
        cluster.ask("POST", PODS, {"metadata": meta, "spec": spec})
        cluster.pass_time(2)

    return run


def used(answer):
    """Return the usage by container."""
    return {row["name"]: row["usage"] for row in answer["containers"]}


def test_the_usage_of_a_container_is_its_requests(cluster, run):
    run("a", container("c", cpu="250m", memory="64Mi"), container("d"))
    answer = cluster.ask("GET", f"{METRICS}/namespaces/default/pods/a")
    assert (answer["kind"], answer["window"]) == ("PodMetrics", "15s")
    assert used(answer) == {
        "c": {"cpu": "250m", "memory": "64Mi"},
        "d": {"cpu": "1m", "memory": "8Mi"},
    }


def test_an_annotation_sets_the_usage_of_all_containers(cluster, run):
    annotations = {"fairlead.dev/usage": "cpu=100m,memory=90Mi"}
    run("a", container("c", cpu="2"), container("d", cpu="1"), annotations=annotations)
    assert used(cluster.ask("GET", f"{METRICS}/namespaces/default/pods/a")) == {
        "c": {"cpu": "66m", "memory": "45Mi"},
        "d": {"cpu": "34m", "memory": "45Mi"},
    }


def test_the_usage_of_a_node_includes_its_pods_and_daemons(cluster, run):
    run("a", container("c", cpu="250m", memory="64Mi"))
    run("b", container("c", cpu="1", memory="1Gi"))
    patch = {"metadata": {"annotations": {"fairlead.dev/usage": "cpu=750m,memory=1Gi"}}}
    cluster.ask("PATCH", "/api/v1/nodes/node-1", patch, "application/merge-patch+json")
    rows = cluster.ask("GET", f"{METRICS}/nodes")["items"]
    assert [(row["metadata"]["name"], row["usage"]) for row in rows] == [
        ("node-1", {"cpu": "2", "memory": "2112Mi"}),
        ("node-2", {"cpu": "0", "memory": "0"}),
        ("node-3", {"cpu": "0", "memory": "0"}),
    ]


def test_only_running_pods_are_measured(cluster, run):
    run("a", container("c"))
    cluster.ask("POST", PODS, {"metadata": {"name": "b"}, "spec": {"containers": [container("c")]}})
    assert [row["metadata"]["name"] for row in cluster.ask("GET", f"{METRICS}/pods")["items"]] == [
        "a"
    ]
    said = [
        cluster.ask("GET", f"{METRICS}/{place}")["message"]
        for place in ("namespaces/default/pods/b", "namespaces/default/pods/c", "nodes/x")
    ]
    assert said == [
        'podmetrics.metrics.k8s.io "default/b" not found',
        'pods "c" not found',
        'nodes "x" not found',
    ]


def test_an_unreachable_node_is_not_measured(cluster, run):
    run("a", container("c"))
    stopped = {"metadata": {"annotations": {"fairlead.dev/kubelet": "stopped"}}}
    cluster.ask("PATCH", "/api/v1/nodes/node-1", stopped, "application/merge-patch+json")
    cluster.pass_time(60)
    nodes = cluster.ask("GET", f"{METRICS}/nodes")["items"]
    assert [row["metadata"]["name"] for row in nodes] == ["node-2", "node-3"]
    refusal = cluster.ask("GET", f"{METRICS}/nodes/node-1")
    assert refusal["message"] == 'nodemetrics.metrics.k8s.io "node-1" not found'
    assert cluster.ask("GET", f"{METRICS}/pods")["items"] == []


def test_measurements_can_be_selected_by_label(cluster, run):
    run("a", container("c"), labels={"app": "web"})
    run("b", container("c"))
    query = (("labelSelector", "app=web"),)
    [row] = cluster.ask("GET", f"{METRICS}/pods", query=query)["items"]
    assert row["metadata"]["labels"]["app"] == "web"


def test_a_table_has_a_column_for_each_resource(cluster, run):
    run("a", container("c", cpu="250m", memory="64Mi"), container("d", cpu="1750m"))
    table = cluster.ask("GET", f"{METRICS}/pods", accept=TABLE)
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "cpu", "memory", "Window"]
    assert [row["cells"] for row in table["rows"]] == [["a", "2", "72Mi", "15s"]]


def test_writes_and_watches_are_refused(cluster, run):
    run("a", container("c"))
    assert cluster.ask("DELETE", f"{METRICS}/namespaces/default/pods/a")["code"] == 405
    assert cluster.ask("GET", f"{METRICS}/pods", query=(("watch", "true"),))["code"] == 405


def test_the_group_is_last_in_discovery(cluster):
    groups = [group["name"] for group in cluster.ask("GET", "/apis")["groups"]]
    assert groups[-1] == "metrics.k8s.io"
    rows = cluster.ask("GET", METRICS)["resources"]
    assert [(row["name"], row["singularName"], row["kind"], row["verbs"]) for row in rows] == [
        ("nodes", "", "NodeMetrics", ["get", "list"]),
        ("pods", "", "PodMetrics", ["get", "list"]),
    ]


def test_the_api_service_is_available(cluster):
    cluster.ask("GET", "/version")  # the server updates its own statuses after each request
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
    [condition] = cluster.ask("GET", path)["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Available", "True")


def test_openapi_contains_the_types(cluster):
    schemas = cluster.ask("GET", f"/openapi/v3{METRICS}")["components"]["schemas"]
    node = schemas["io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics"]
    assert list(node["properties"]) == [
        "apiVersion",
        "kind",
        "metadata",
        "timestamp",
        "window",
        "usage",
    ]


def test_the_metrics_api_can_be_disabled(make_cluster):
    cluster = make_cluster(nodes=1, without=("metrics",))
    groups = [group["name"] for group in cluster.ask("GET", "/apis")["groups"]]
    assert "metrics.k8s.io" not in groups
    assert cluster.find("apiservice", "v1beta1.metrics.k8s.io", "") is None


def test_the_role_view_includes_pod_metrics(cluster):
    role = cluster.find("clusterrole", "system:aggregated-metrics-reader", "")
    assert role["rules"][0]["resources"] == ["pods", "nodes"]
    review = {
        "spec": {
            "user": "alice",
            "resourceAttributes": {
                "verb": "list", "group": "metrics.k8s.io", "resource": "pods", "namespace": "x",
            },
        }
    }  # fmt: skip
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert not cluster.ask("POST", reviews, review)["status"]["allowed"]
    binding = {
        "metadata": {"name": "v"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {
            "kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io",
        },
    }  # fmt: skip
    cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    assert cluster.ask("POST", reviews, review)["status"]["allowed"]
