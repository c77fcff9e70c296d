"""Fields that Services keep when they change, and dry runs of Services."""

from __future__ import annotations

import pytest

from fairlead.apiserver.registry.strategies.core.service import with_kept_addresses
from fairlead.apiserver.registry.strategies.core.service_allocation import (
    DRY_RUN_PORTS,
    with_addresses,
)
from fairlead.apiserver.storage.storage import Storage

BALANCED = {
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "allocateLoadBalancerNodePorts": True,
    "loadBalancerClass": "a.b/c",
    "healthCheckNodePort": 30_001,
    "clusterIP": "10.96.1.1",
    "clusterIPs": ["10.96.1.1"],
    "ports": [{"port": 80, "nodePort": 30_000}],
}


def service(spec, **status):
    return {"metadata": {"name": "s", "uid": "u"}, "spec": spec, "status": status}


def changed(before, **fields):
    """Return the spec of a Service after an update with `fields`; None removes a field."""
    after = {key: value for key, value in {**before, **fields}.items() if value is not None}
    return with_kept_addresses(service(before), service(after), Storage())["spec"]


@pytest.mark.parametrize(
    ("type_name", "kept", "is_on_nodes"),
    [
        ("NodePort", {"externalTrafficPolicy"}, True),
        ("ClusterIP", set(), False),
        ("ExternalName", set(), False),
    ],
)
def test_fields_that_the_new_type_does_not_use_are_dropped(type_name, kept, is_on_nodes):
    spec = changed(BALANCED, type=type_name)
    useless = {"externalTrafficPolicy", "allocateLoadBalancerNodePorts", "loadBalancerClass",
               "healthCheckNodePort"}  # fmt: skip
    assert useless & spec.keys() == kept
    assert ("nodePort" in spec["ports"][0]) == is_on_nodes


def test_unused_fields_that_are_also_changed_are_kept_for_validation():
    spec = changed(BALANCED, type="ClusterIP", loadBalancerClass="x/y", healthCheckNodePort=1,
                   ports=[{"port": 80, "nodePort": 30_009}])  # fmt: skip
    assert (spec["loadBalancerClass"], spec["healthCheckNodePort"]) == ("x/y", 1)
    assert spec["ports"][0]["nodePort"] == 30_009


def test_an_omitted_health_check_node_port_is_kept():
    assert changed(BALANCED, healthCheckNodePort=None)["healthCheckNodePort"] == 30_001


def test_a_service_with_external_ips_keeps_its_external_traffic_policy():
    """Such a Service is reachable from outside, whatever its type."""
    reached = {"type": "ClusterIP", "externalIPs": ["1.1.1.1"], "externalTrafficPolicy": "Cluster",
               "clusterIP": "10.96.1.1"}  # fmt: skip
    assert changed(reached)["externalTrafficPolicy"] == "Cluster"
    assert "externalTrafficPolicy" not in changed(reached, externalIPs=None)


def test_the_load_balancer_status_is_dropped_if_the_type_changes():
    ingress = {"ingress": [{"ip": "1.1.1.1"}]}
    old = service(BALANCED, loadBalancer=ingress)
    new = service({**BALANCED, "type": "NodePort"}, loadBalancer=ingress)
    assert with_kept_addresses(old, new, Storage())["status"] == {"loadBalancer": {}}
    assert with_kept_addresses(old, old, Storage())["status"] == {"loadBalancer": ingress}


def test_a_dry_run_shows_addresses_that_are_not_allocated():
    spec = {"type": "NodePort", "ports": [{"port": 80}, {"port": 81}]}
    tried = with_addresses(service(spec), Storage(), dry_run=True)["spec"]
    assert tried["clusterIP"] == "10.96.0.0"
    assert [port["nodePort"] for port in tried["ports"]] == [*DRY_RUN_PORTS[:2]]
    wanted = {**spec, "clusterIP": "10.96.7.7", "ports": [{"port": 80, "nodePort": 30_005}]}
    tried = with_addresses(service(wanted), Storage(), dry_run=True)["spec"]
    assert (tried["clusterIP"], tried["ports"][0]["nodePort"]) == ("10.96.7.7", 30_005)
