"""Conditions, finalizers and deletion of ServiceCIDRs."""

from __future__ import annotations

import pytest

PATH = "/apis/networking.k8s.io/v1/servicecidrs"
SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(nodes=1)


def add(cluster, name, *cidrs):
    manifest = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": list(cidrs)},
    }
    return cluster.ask("POST", PATH, manifest)


def ready(cluster, name):
    (condition,) = cluster.ask("GET", f"{PATH}/{name}")["status"]["conditions"]
    return condition["status"], condition["message"]


def is_there(cluster, name):
    return cluster.ask("GET", f"{PATH}/{name}")["kind"] == "ServiceCIDR"


def test_the_default_service_cidr_is_ready_and_has_a_finalizer(cluster):
    found = cluster.ask("GET", f"{PATH}/kubernetes")
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
    assert ready(cluster, "kubernetes") == ("True", "Kubernetes Service CIDR is ready")
    managers = {(one["manager"], one["operation"]) for one in found["metadata"]["managedFields"]}
    assert managers == {
        ("service-cidr-controller", "Apply"),
        ("kube-apiserver", "Update"),
        ("kube-controller-manager", "Update"),
    }


def test_an_unused_service_cidr_is_deleted_after_ten_seconds(cluster):
    add(cluster, "more", "10.200.0.0/24")
    cluster.ask("DELETE", f"{PATH}/more")
    cluster.pass_time(9)
    assert is_there(cluster, "more")
    cluster.pass_time(2)
    assert not is_there(cluster, "more")


def test_a_service_cidr_with_allocated_addresses_is_kept(cluster):
    """It is kept until another range contains its addresses. The default range is recreated."""
    before = cluster.ask("DELETE", f"{PATH}/kubernetes")["metadata"]["uid"]
    cluster.pass_time(11)
    status, message = ready(cluster, "kubernetes")
    assert (status, message[:27]) == ("False", "There are still IPAddresses")
    add(cluster, "wider", "10.96.0.0/12")
    assert is_there(cluster, "wider")
    assert cluster.ask("GET", f"{PATH}/kubernetes")["metadata"]["uid"] != before


def test_a_service_cidr_is_deleted_with_the_last_service_that_needs_it(cluster):
    add(cluster, "more", "10.200.0.0/24")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"clusterIP": "10.200.0.9", "clusterIPs": ["10.200.0.9"]},
    }
    cluster.local.store.put_as_is(service, cluster.clock.now())
    cluster.ask("DELETE", f"{PATH}/more")
    cluster.pass_time(20)
    assert is_there(cluster, "more")
    cluster.ask("DELETE", f"{SERVICES}/s")
    assert not is_there(cluster, "more")


def test_a_malformed_range_of_a_dump_gives_no_addresses(cluster):
    """Objects of a dump are loaded without validation."""
    bad = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "bad"},
        "spec": {"cidrs": ["abc", "10.0.0.0/99"]},
    }
    cluster.local.store.put_as_is(bad, cluster.clock.now())
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    made = cluster.ask("POST", SERVICES, {"apiVersion": "v1", "kind": "Service", **service})
    assert made["spec"]["clusterIP"].startswith("10.96.")
    cluster.ask("DELETE", f"{PATH}/bad")
    cluster.pass_time(11)
    assert not is_there(cluster, "bad")
