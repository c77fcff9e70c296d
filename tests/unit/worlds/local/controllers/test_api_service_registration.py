"""APIServices of custom resource groups."""

from __future__ import annotations

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def definition(plural, *versions, group="toys.example.com"):
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [
                {"name": name, "served": True, "storage": not at, "schema": schema}
                for at, name in enumerate(versions)
            ],
        },
    }


def registered(cluster):
    items = cluster.ask("GET", SERVICES)["items"]
    return [
        one["metadata"]["name"] for one in items if one["spec"].get("group") == "toys.example.com"
    ]


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(nodes=1)


def test_each_served_version_is_registered(cluster):
    cluster.ask("POST", DEFINITIONS, definition("balls", "v1", "v1beta1"))
    assert registered(cluster) == ["v1.toys.example.com", "v1beta1.toys.example.com"]
    found = cluster.ask("GET", f"{SERVICES}/v1.toys.example.com")
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    assert found["spec"] == {
        "group": "toys.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Available",
        "True",
        "Local",
    )


def test_an_api_service_is_deleted_with_the_last_definition_of_its_version(cluster):
    """If another definition has the same version, the APIService is kept."""
    cluster.ask("POST", DEFINITIONS, definition("balls", "v1"))
    cluster.ask("POST", DEFINITIONS, definition("bats", "v1", "v2"))
    assert registered(cluster) == ["v1.toys.example.com", "v2.toys.example.com"]
    cluster.ask("DELETE", f"{DEFINITIONS}/bats.toys.example.com")
    assert registered(cluster) == ["v1.toys.example.com"]
    cluster.ask("DELETE", f"{DEFINITIONS}/balls.toys.example.com")
    assert registered(cluster) == []


def test_the_api_service_of_an_unserved_version_is_deleted(cluster):
    cluster.ask("POST", DEFINITIONS, definition("balls", "v1", "v2"))
    changed = definition("balls", "v1", "v2")
    changed["spec"]["versions"][1]["served"] = False
    cluster.ask(
        "PATCH",
        f"{DEFINITIONS}/balls.toys.example.com",
        {"spec": {"versions": changed["spec"]["versions"]}},
        "application/merge-patch+json",
    )
    assert registered(cluster) == ["v1.toys.example.com"]


def test_a_deleted_or_changed_api_service_is_restored(cluster):
    cluster.ask("POST", DEFINITIONS, definition("balls", "v1"))
    path = f"{SERVICES}/v1.toys.example.com"
    cluster.ask("DELETE", path)
    cluster.ask("PATCH", path, {"spec": {"versionPriority": 7}}, "application/merge-patch+json")
    assert cluster.ask("GET", path)["spec"]["versionPriority"] == 100


def test_api_services_of_users_are_not_changed(cluster):
    """APIServices without the controller's label are ignored."""
    spec = {
        "group": "toys.example.com",
        "version": "v1",
        "groupPriorityMinimum": 5,
        "versionPriority": 5,
    }
    named = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    cluster.ask(
        "POST", SERVICES, {**named, "metadata": {"name": "v1.toys.example.com"}, "spec": spec}
    )
    cluster.ask("POST", DEFINITIONS, definition("balls", "v1"))
    cluster.ask("DELETE", f"{DEFINITIONS}/balls.toys.example.com")
    assert cluster.ask("GET", f"{SERVICES}/v1.toys.example.com")["spec"] == spec
