"""Defaults of objects in a snapshot."""

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


def test_the_defaults_of_a_pod():
    pod = defaulted("Pod", spec={"containers": []})
    assert pod["spec"] == {
        "containers": [],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    }
    assert pod["status"] == {"phase": "Pending"}


def test_given_values_are_kept():
    spec = {
        "containers": [{"name": "c"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "mine",
    }
    status = {"phase": "Running"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec, "status": status}
    assert with_defaults(kind_of(pod), pod) is pod


def test_a_negative_grace_period_becomes_one_second():
    spec = defaulted("Pod", spec={"terminationGracePeriodSeconds": -5})["spec"]
    assert spec["terminationGracePeriodSeconds"] == 1


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_limits_are_default_requests(key):
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = {key: [{"name": "c", "resources": resources}]}
    [container] = defaulted("Pod", spec=spec)["spec"][key]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert resources["requests"] == {"cpu": "1"}


def test_requests_are_not_default_limits():
    resources = {"requests": {"cpu": "1"}}
    assert container_of(resources=resources)["resources"] == resources


def test_pod_templates_get_no_defaults():
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}
    spec = defaulted("Deployment", "apps/v1", spec={"template": template})["spec"]
    assert spec["template"] is template


def test_the_defaults_of_ports():
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
        (
            "Job",
            "batch/v1",
            {"parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1},
            {
                "parallelism": 3,
                "completionMode": "Indexed",
                "backoffLimitPerIndex": 1,
                "backoffLimit": 2**31 - 1,
            },
        ),
    ],
)
def test_the_defaults_of_workloads(kind, api_version, spec, expected):
    assert defaulted(kind, api_version, spec=spec)["spec"] == expected


def test_a_quota_has_a_spec():
    """Admission reads it."""
    assert defaulted("ResourceQuota")["spec"] == {}


def test_the_default_selector_is_the_labels_of_the_template():
    template = {"metadata": {"labels": {"a": "b"}}}
    spec = defaulted("ReplicationController", spec={"template": template})["spec"]
    assert (spec["selector"], spec["replicas"]) == ({"a": "b"}, 1)


def test_allocatable_defaults_to_the_capacity():
    status = {"capacity": {"cpu": "4"}}
    assert defaulted("Node", status=status)["status"]["allocatable"] == {"cpu": "4"}
    status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    assert defaulted("Node", status=status)["status"] == status


def test_a_namespace_gets_a_label_with_its_name():
    namespace = defaulted("Namespace")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert namespace["status"] == {"phase": "Active"}


def test_other_kinds_get_no_defaults():
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    assert with_defaults(kind_of(obj), obj) is obj
