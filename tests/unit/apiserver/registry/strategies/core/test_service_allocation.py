"""Allocation of cluster IPs and node ports for Services."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.registry.strategies.core.service import with_kept_addresses
from fairlead.apiserver.registry.strategies.core.service_allocation import (
    PORTS,
    require_name,
    with_addresses,
)
from fairlead.apiserver.storage.storage import Storage


def service(name="s", **spec):
    spec = {"ports": [{"port": 80}], "type": "ClusterIP", **spec}
    return {"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": spec}


@pytest.fixture
def storage():
    return Storage()


@pytest.fixture
def add(storage):
    """Allocates the addresses of a Service and stores it."""

    def added(*args, **spec):
        made = with_addresses(service(*args, **spec), storage)
        return storage.put(SERVICE, made)

    return added


def test_each_service_has_its_own_cluster_ip(add):
    first, second = add("a")["spec"], add("b")["spec"]
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["clusterIP"] != second["clusterIP"]


def test_a_headless_service_has_no_cluster_ip(add):
    assert add(clusterIP="None")["spec"]["clusterIPs"] == ["None"]


@pytest.mark.parametrize(
    ("address", "why"),
    [("10.96.7.7", "already allocated"), ("11.0.0.1", "does not match the current range")],
)
def test_a_cluster_ip_in_use_or_out_of_range_is_refused(add, address, why):
    add("a", clusterIP="10.96.7.7")
    with pytest.raises(ApiError, match=why):
        add("b", clusterIP=address)


def test_node_ports_are_allocated_and_checked(add):
    first = add("a", type="NodePort")["spec"]["ports"][0]["nodePort"]
    second = add("b", type="NodePort")["spec"]["ports"][0]["nodePort"]
    assert 30000 <= first < second <= 32767
    with pytest.raises(ApiError, match="provided port is already allocated"):
        add("c", type="NodePort", ports=[{"port": 80, "nodePort": first}])
    with pytest.raises(ApiError, match="not in the valid range"):
        add("d", type="NodePort", ports=[{"port": 80, "nodePort": 99}])


def test_the_first_node_ports_are_left_for_services_that_request_them(add):
    """Users often request ports such as 30000 and 30080."""
    assert add("a", type="NodePort")["spec"]["ports"][0]["nodePort"] == 30_086
    most = [{"name": f"p{port}", "port": port} for port in range(30_087, 32_768)]
    assert add("b", type="NodePort", ports=most)["spec"]["ports"][-1]["nodePort"] == 32_767
    assert add("c", type="NodePort")["spec"]["ports"][0]["nodePort"] == 30_000


def test_the_cluster_ip_is_kept_by_an_update(add, storage):
    old = add("a")
    kept = with_kept_addresses(old, service("a"), storage)
    assert kept["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    with pytest.raises(ApiError, match="may not change once set"):
        with_kept_addresses(old, service("a", clusterIP="10.96.9.9"), storage)


def test_a_service_of_type_external_name_has_no_cluster_ip(add, storage):
    old = add("a")
    moved = with_kept_addresses(old, service("a", type="ExternalName"), storage)
    assert "clusterIP" not in moved["spec"]


def test_node_ports_are_released_when_the_type_changes(add, storage):
    old = add("a", type="NodePort")
    new = {**old, "spec": {**old["spec"], "type": "ClusterIP"}}
    changed = with_kept_addresses(old, new, storage)
    assert changed["spec"]["ports"] == [{"port": 80}]


@pytest.mark.parametrize(
    ("spec", "is_refused"),
    [({}, True), ({"clusterIP": "None"}, False), ({"type": "ExternalName"}, False)],
)
def test_allocation_of_a_cluster_ip_requires_a_name(storage, spec, is_refused):
    """A nameless Service that needs an address is refused by the allocator."""
    nameless = {"metadata": {}, "spec": spec}
    if not is_refused:
        require_name(nameless, storage)
        return
    with pytest.raises(ApiError, match=r"failed to allocate IP: .*spec\.parentRef\.name: Required"):
        require_name(nameless, storage)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"ipFamilies": ["IPv6"]}, 'ipFamilies[0]: Invalid value: "IPv6": not configured on this'),
        ({"ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
        ({"clusterIP": "fd00::1"}, "IPv6 is not configured on this cluster"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "not configured for dual-stack services"),
        ({"clusterIPs": ["10.96.9.9"]}, "must be empty when `clusterIP` is not specified"),
    ],
)
def test_unavailable_ip_families_are_refused(add, spec, why):
    """The cluster has addresses of one IP family only."""
    with pytest.raises(ApiError) as refused:
        add(**spec)
    assert why in refused.value.message


def test_a_headless_service_without_a_selector_is_dual_stack(add):
    """A headless Service with a selector has only the cluster's family."""
    bare, selecting = add("a", clusterIP="None"), add("b", clusterIP="None", selector={"a": "b"})
    assert bare["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert bare["spec"]["ipFamilyPolicy"] == "RequireDualStack"
    assert selecting["spec"]["ipFamilies"] == ["IPv4"]


def test_protocols_of_the_same_port_share_a_node_port(add):
    """TCP and UDP on the same port number get the same node port."""
    ports = [{"port": 53, "name": "t"}, {"port": 53, "name": "u", "nodePort": 30053}]
    made = add(type="NodePort", ports=ports)["spec"]["ports"]
    assert [port["nodePort"] for port in made] == [30053, 30053]


def test_a_node_port_is_kept_by_the_name_of_the_port(add, storage):
    """A port with the same name keeps its node port, even if its number changes."""
    add("b", type="NodePort")
    old = add("a", type="NodePort", ports=[{"port": 80, "name": "web"}])
    new = service(
        "a", type="NodePort", ports=[{"port": 9, "name": "n"}, {"port": 8, "name": "web"}]
    )
    ports = with_kept_addresses(old, new, storage)["spec"]["ports"]
    assert ports[1]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert ports[0]["nodePort"] not in (ports[1]["nodePort"], 30000)


def test_a_health_check_node_port_is_allocated(add):
    """externalTrafficPolicy Local needs one; a port that is already allocated is refused."""
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    made = add("a", **local)["spec"]
    assert made["healthCheckNodePort"] != made["ports"][0]["nodePort"]
    with pytest.raises(ApiError, match=r"HealthCheck NodePort .*: provided port is already"):
        add("b", **local, healthCheckNodePort=made["healthCheckNodePort"])


def test_more_node_ports_than_the_range_has_are_refused(add):
    ports = [{"port": 1 + at} for at in range(len(PORTS) + 1)]
    with pytest.raises(ApiError) as refused:
        add(type="NodePort", ports=ports)
    text = "Internal error occurred: failed to allocate a nodePort: range is full"
    assert (refused.value.code, refused.value.message) == (500, text)
    numbers = [port["nodePort"] for port in add(type="NodePort", ports=ports[1:])["spec"]["ports"]]
    assert sorted(numbers) == list(PORTS)
