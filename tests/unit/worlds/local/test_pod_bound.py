"""The limit of pods in a local cluster."""

from __future__ import annotations

import pytest

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(nodes=1, pods_max=20)


def test_a_billion_replicas_create_only_the_maximum_of_pods(cluster):
    """The controller reports the reason in an event, and does not retry all the time."""
    spec = {
        "replicas": 1_000_000_000,
        "selector": {"matchLabels": {"a": "b"}},
        "template": TEMPLATE,
    }
    cluster.ask("POST", REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec})
    cluster.pass_time(60)
    assert len(cluster.list("pod")) == 20
    failed = [one for one in cluster.list("event") if one["reason"] == "FailedCreate"]
    assert 1 <= len(failed) <= 20
    text = "is forbidden: there may be 20 pods in this cluster at most"
    assert all(text in one["message"] for one in failed)
    (condition,) = cluster.find("replicaset", "web")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")


def test_pods_above_the_limit_are_refused_until_a_pod_is_deleted(cluster):
    """The deletion of a pod allows the creation of another one."""
    for number in range(20):
        made = cluster.ask("POST", PODS, {"metadata": {"name": f"p{number}"}, **TEMPLATE_SPEC})
        assert made["kind"] == "Pod"
    refused = cluster.ask("POST", PODS, {"metadata": {"name": "more"}, **TEMPLATE_SPEC})
    assert (refused["code"], refused["reason"]) == (403, "Forbidden")
    query = (("gracePeriodSeconds", "0"),)
    cluster.ask("DELETE", f"{PODS}/p3", query=query)
    assert (
        cluster.ask("POST", PODS, {"metadata": {"name": "more"}, **TEMPLATE_SPEC})["kind"] == "Pod"
    )


TEMPLATE_SPEC = {"spec": TEMPLATE["spec"]}
