"""Batch scheduling in a local cluster: PodGroups, queues and gangs."""

from __future__ import annotations

import pytest

VOLCANO = "scheduling.volcano.sh/v1beta1"
PODS = "/api/v1/namespaces/default/pods"


def member(number):
    meta = {"name": f"g-{number}", "annotations": {"scheduling.k8s.io/group-name": "g"}}
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": containers}}


def nodes_of(cluster):
    return [pod["spec"].get("nodeName", "") for pod in cluster.list("pod")]


def test_a_gang_starts_when_it_is_complete(cluster):
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 2, "queue": "q"}}
    queue = {"metadata": {"name": "q"}, "spec": {"weight": 1}}
    for plural, obj in (("queues", queue), ("namespaces/default/podgroups", group)):
        made = cluster.ask("POST", f"/apis/{VOLCANO}/{plural}", obj)
        assert made["metadata"]["uid"]
    cluster.ask("POST", PODS, member(0))
    cluster.pass_time(5)
    assert nodes_of(cluster) == [""]
    cluster.ask("POST", PODS, member(1))
    cluster.pass_time(5)
    assert all(nodes_of(cluster))
    group = cluster.ask("GET", f"/apis/{VOLCANO}/namespaces/default/podgroups/g")
    assert group["status"]["phase"] == "Running"


def test_no_pod_is_scheduled_without_the_scheduler(make_cluster):
    cluster = make_cluster(nodes=1, without=("scheduler",))
    cluster.ask("POST", PODS, member(0))
    cluster.pass_time(5)
    assert nodes_of(cluster) == [""]


@pytest.mark.parametrize(
    "group",
    [
        VOLCANO,
        "scheduling.incubator.k8s.io/v1alpha1",
        "scheduling.sigs.dev/v1alpha2",
        "scheduling.x-k8s.io/v1alpha1",
    ],
)
def test_pod_groups_are_served_in_the_groups_of_all_schedulers(cluster, group):
    found = cluster.ask("GET", f"/apis/{group}")
    assert "podgroups/status" in [resource["name"] for resource in found["resources"]]


@pytest.mark.parametrize(
    ("resource", "spec", "unknown"),
    [
        (f"{VOLCANO}/namespaces/default/podgroups", {"minMembers": 1}, "spec.minMembers"),
        (f"{VOLCANO}/queues", {"weight": 1, "guarantee": {"cpu": 1}}, "spec.guarantee.cpu"),
        (
            "scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
            {"minMember": 1, "queue": "q"},
            "spec.queue",
        ),
        (
            "scheduling.incubator.k8s.io/v1alpha1/namespaces/default/podgroups",
            {"minMembers": 1},
            "",
        ),
    ],
    ids=["Volcano's group", "Volcano's queue", "scheduler-plugins' group", "kube-batch's group"],
)
def test_unknown_fields_are_refused_if_the_scheduler_has_schemas(cluster, resource, spec, unknown):
    """kubectl asks for this validation. kube-batch's own definitions allow any field."""
    obj = {"metadata": {"name": "one"}, "spec": spec}
    strict = (("fieldValidation", "Strict"),)
    found = cluster.ask("POST", f"/apis/{resource}", obj, query=strict)
    assert found.get("message", "").endswith(f'unknown field "{unknown}"' if unknown else "")
    assert (found["kind"] == "Status") is bool(unknown)


def test_only_one_api_group_has_short_names(cluster):
    definitions = cluster.list("crd", "")
    short = {d["spec"]["group"] for d in definitions if d["spec"]["names"].get("shortNames")}
    assert short == {"scheduling.volcano.sh"}


def test_the_default_queue_exists_from_the_start(cluster):
    [queue] = cluster.ask("GET", f"/apis/{VOLCANO}/queues")["items"]
    assert queue["metadata"]["name"] == "default"
    assert queue["spec"]["weight"] == 1


def test_without_the_scheduler_there_is_no_default_queue(make_cluster):
    """The batch scheduler creates it, and a what-if concludes from a Queue that there are gangs."""
    cluster = make_cluster(without=("scheduler",))
    assert cluster.ask("GET", f"/apis/{VOLCANO}/queues")["items"] == []
