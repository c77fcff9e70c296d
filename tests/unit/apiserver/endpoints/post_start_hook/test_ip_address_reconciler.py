"""IPAddresses of Services, and allocation from ServiceCIDRs."""

from __future__ import annotations

import pytest

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


@pytest.fixture
def add(api):
    """Create a Service."""

    def added(name="s", query="", **spec):
        body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
        return api.post(f"{SERVICES}{query}", body)

    return added


@pytest.fixture
def add_range(api):
    """Create a ServiceCIDR."""

    def added(name, *cidrs):
        body = {"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}
        assert api.post(RANGES, body).status == 201

    return added


@pytest.fixture
def addresses(api):
    """Return the names of all IPAddresses."""
    return lambda: [one["metadata"]["name"] for one in api.get(ADDRESSES).json["items"]]


def test_a_service_has_an_ip_address(api, add):
    """The IPAddress has the fields that upstream's allocator writes."""
    address = add().json["spec"]["clusterIP"]
    found = api.get(f"{ADDRESSES}/{address}").json
    assert found["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"resource": "services", "namespace": "default", "name": "s"}
    assert found["spec"] == {"parentRef": parent}
    (entry,) = found["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kube-apiserver", "Update")


def test_the_ip_address_is_deleted_with_its_service(api, add, addresses):
    add()
    api.delete(f"{SERVICES}/s")
    assert addresses() == []


def test_the_ip_address_is_deleted_when_the_service_needs_none(api, add, addresses):
    """It is created again when the Service needs an address again."""
    add()
    moved = {"spec": {"type": "ExternalName", "externalName": "a.b", "ports": None}}
    assert api.patch(f"{SERVICES}/s", moved).status == 200
    assert addresses() == []
    back = {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 80}]}}
    address = api.patch(f"{SERVICES}/s", back).json["spec"]["clusterIP"]
    assert addresses() == [address]


def test_headless_refused_and_dry_run_services_have_no_ip_address(add, addresses):
    assert add("a", clusterIP="None").status == 201
    assert add("b", query="?dryRun=All").status == 201
    assert add("c", clusterIP="10.0.0.1").status == 422
    assert addresses() == []


def test_a_deleted_ip_address_in_use_is_created_again(api, add, addresses):
    address = add().json["spec"]["clusterIP"]
    api.delete(f"{ADDRESSES}/{address}")
    assert addresses() == [address]


def test_an_address_in_use_is_refused(api, add):
    parent = {"group": "example.com", "resource": "gateways", "name": "g"}
    body = {"metadata": {"name": "10.96.1.1"}, "spec": {"parentRef": parent}}
    assert api.post(ADDRESSES, body).status == 201
    refused = add(clusterIP="10.96.1.1")
    assert refused.status == 422
    assert refused.message == (
        'Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.96.1.1"]: '
        "failed to allocate IP 10.96.1.1: provided IP is already allocated"
    )
    assert add().json["spec"]["clusterIP"] != "10.96.1.1"


def test_a_dry_run_allocates_nothing(add):
    """A dry run may use a taken address, but not an address outside of the ranges."""
    add(clusterIP="10.96.0.9")
    assert add("b", query="?dryRun=All", clusterIP="10.96.0.9").status == 201
    refused = add("b", query="?dryRun=All", clusterIP="10.0.0.9")
    why = "the provided IP (10.0.0.9) is not in the valid range. The range of valid IPs is "
    assert refused.message.endswith(f"failed to allocate IP 10.0.0.9: {why}10.96.0.0/16")


def test_an_additional_service_cidr_adds_addresses(api, add, add_range):
    add_range("kubernetes", "10.96.0.0/30")
    given = [add(name).json["spec"]["clusterIP"] for name in "ab"]
    assert sorted(given) == ["10.96.0.1", "10.96.0.2"]
    refused = add("c")
    text = "Internal error occurred: failed to allocate a serviceIP: range is full"
    assert (refused.status, refused.message) == (500, text)
    add_range("more", "10.7.0.0/28")
    assert add("c").json["spec"]["clusterIP"] == "10.7.0.1"
    assert add("d", clusterIP="10.7.0.14").status == 201


@pytest.mark.parametrize("address", ["10.96.0.0", "10.96.0.3"])
def test_the_ends_of_a_range_are_not_allocated(add, add_range, address):
    add_range("kubernetes", "10.96.0.0/30")
    refused = add(clusterIP=address)
    assert "the provided network does not match the current range" in refused.message


def test_the_lower_part_of_a_range_is_reserved_for_static_addresses(add, add_range):
    """The first sixteen of 256 addresses are reserved."""
    add_range("kubernetes", "10.96.0.0/24")
    assert add().json["spec"]["clusterIP"] == "10.96.0.17"


def test_a_terminating_range_is_used_only_if_there_is_no_other(api, add, add_range):
    add_range("kubernetes", "10.96.0.0/24")
    api.patch(f"{RANGES}/kubernetes", {"metadata": {"finalizers": ["a.b/c"]}})
    api.delete(f"{RANGES}/kubernetes")
    assert add(name="last").json["spec"]["clusterIP"] == "10.96.0.17"
    add_range("other", "10.7.0.0/24")
    assert add(name="first").json["spec"]["clusterIP"] == "10.7.0.17"


def test_existing_services_keep_addresses_outside_of_all_ranges(api, add, add_range):
    """The address of an existing Service is not validated again."""
    add()
    add_range("kubernetes", "10.7.0.0/24")
    changed = api.patch(f"{SERVICES}/s", {"spec": {"ports": [{"port": 81}]}})
    assert changed.status == 200
