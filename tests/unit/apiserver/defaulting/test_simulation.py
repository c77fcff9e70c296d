"""What a stored object says although its author did not."""

from __future__ import annotations

import pytest

from fairlead.apiserver.defaulting.simulation import with_defaults
from fairlead.apiserver.kind import kind_of


def defaulted(kind, api_version="v1", **parts):
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **parts}
    return with_defaults(kind_of(obj), obj)


def container_of(**container):
    spec = {"containers": [{"name": "c", **container}]}
    return defaulted("Pod", spec=spec)["spec"]["containers"][0]


def test_a_pod():
    pod = defaulted("Pod", spec={"containers": []})
    assert pod["spec"] == {
        "containers": [],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    }
    assert pod["status"] == {"phase": "Pending"}


def test_what_is_said_stays():
    spec = {
        "containers": [{"name": "c"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "mine",
    }
    status = {"phase": "Running"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec, "status": status}
    assert with_defaults(kind_of(pod), pod) is pod


def test_a_negative_grace_period_means_a_second():
    spec = defaulted("Pod", spec={"terminationGracePeriodSeconds": -5})["spec"]
    assert spec["terminationGracePeriodSeconds"] == 1


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_limits_ask_for_as_much(key):
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = {key: [{"name": "c", "resources": resources}]}
    [container] = defaulted("Pod", spec=spec)["spec"][key]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert resources["requests"] == {"cpu": "1"}


def test_requests_do_not_limit():
    resources = {"requests": {"cpu": "1"}}
    assert container_of(resources=resources)["resources"] == resources


def test_templates_are_not_pods():
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}
    spec = defaulted("Deployment", "apps/v1", spec={"template": template})["spec"]
    assert spec["template"] is template


def test_ports_are_tcp_and_on_the_hosts_network_the_hosts():
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 53}]
    assert container_of(ports=ports)["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        ports[1],
    ]
    spec = {"hostNetwork": True, "containers": [{"name": "c", "ports": ports}]}
    [container] = defaulted("Pod", spec=spec)["spec"]["containers"]
    assert container["ports"][0] == {"containerPort": 80, "protocol": "TCP", "hostPort": 80}


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "expected"),
    [
        ("Deployment", "apps/v1", {}, {"replicas": 1}),
        ("ReplicaSet", "apps/v1", {"replicas": 0}, {"replicas": 0}),
        ("StatefulSet", "apps/v1", {}, {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        ("DaemonSet", "apps/v1", {}, {}),
        ("CronJob", "batch/v1", {}, {"suspend": False}),
        (
            "Job",
            "batch/v1",
            {},
            {"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed"},
        ),
        (
            "Job",
            "batch/v1",
            {"parallelism": 3},
            {"parallelism": 3, "backoffLimit": 6, "completionMode": "NonIndexed"},
        ),
        (
            "Job",
            "batch/v1",
            {"completions": 4},
            {"completions": 4, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed"},
        ),
    ],
)
def test_workloads(kind, api_version, spec, expected):
    assert defaulted(kind, api_version, spec=spec)["spec"] == expected


def test_a_replication_controller_selects_its_templates_labels():
    template = {"metadata": {"labels": {"a": "b"}}}
    spec = defaulted("ReplicationController", spec={"template": template})["spec"]
    assert (spec["selector"], spec["replicas"]) == ({"a": "b"}, 1)


def test_a_node_has_all_of_its_capacity():
    status = {"capacity": {"cpu": "4"}}
    assert defaulted("Node", status=status)["status"]["allocatable"] == {"cpu": "4"}
    status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    assert defaulted("Node", status=status)["status"] == status


def test_a_namespace_bears_its_name_as_a_label():
    namespace = defaulted("Namespace")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert namespace["status"] == {"phase": "Active"}


def test_other_kinds_stay_as_they_are():
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    assert with_defaults(kind_of(obj), obj) is obj
