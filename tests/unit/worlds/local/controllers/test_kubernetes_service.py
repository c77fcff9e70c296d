"""The Service `kubernetes` and its endpoints."""

from __future__ import annotations

import pytest

from fairlead.worlds.local.controllers.kubernetes_service import KubernetesService

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(address="10.0.0.1:6443")


def ends(obj):
    return obj["subsets"][0]["addresses"][0]["ip"], obj["subsets"][0]["ports"][0]["port"]


def test_the_service_has_the_address_of_the_server(cluster):
    """The Service has the first cluster IP, as in any cluster."""
    spec = cluster.ask("GET", SERVICE)["spec"]
    assert (spec["clusterIP"], spec["type"]) == ("10.96.0.1", "ClusterIP")
    assert spec["ports"] == [
        {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443},
    ]
    assert ends(cluster.find("Endpoints", "kubernetes")) == ("10.0.0.1", 6443)
    (entry,) = cluster.find("EndpointSlice", "kubernetes")["endpoints"]
    assert entry["addresses"] == ["10.0.0.1"]
    assert cluster.find("ServiceCIDR", "kubernetes", "")["spec"]["cidrs"] == ["10.96.0.0/16"]


@pytest.mark.parametrize("path", [SERVICE, ENDPOINTS])
def test_a_deleted_service_is_created_again(cluster, path):
    """This controller creates only the Service `kubernetes` again."""
    before = cluster.ask("GET", path)["metadata"]["uid"]
    cluster.ask("DELETE", path)
    assert cluster.ask("GET", path)["metadata"]["uid"] != before


def test_a_slice_with_a_loopback_address_is_deleted_and_created_again(make_cluster):
    """The garbage collector removes the finalizer `orphan`, although the address is invalid."""
    cluster = make_cluster(address="127.0.0.1:6443")
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    before = cluster.ask("GET", path)["metadata"]["uid"]
    cluster.ask("DELETE", path, {"propagationPolicy": "Orphan"})
    cluster.pass_time(5)
    after = cluster.ask("GET", path)
    assert after["metadata"]["uid"] != before
    assert after["endpoints"][0]["addresses"] == ["127.0.0.1"]


def test_the_endpoints_follow_the_port_of_the_server(cluster):
    """A restarted server may listen on another port."""
    moved = KubernetesService(cluster.local.store.storage, "10.0.0.1:7000")
    for _ in range(2):
        cluster.start(moved, "default")
    assert ends(cluster.find("Endpoints", "kubernetes")) == ("10.0.0.1", 7000)
    (port,) = cluster.find("EndpointSlice", "kubernetes")["ports"]
    assert port["port"] == 7000


def test_a_server_with_a_host_name_has_no_endpoints(make_cluster):
    cluster = make_cluster(address="box.example:6443")
    assert cluster.find("Service", "kubernetes") is not None
    assert cluster.find("Endpoints", "kubernetes") is None
