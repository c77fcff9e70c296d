"""Addresses of services."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.served.service_address import (
    require_name,
    with_addresses,
    with_kept_addresses,
)
from fairlead.apiserver.storage import Storage


def service(name="s", **spec):
    spec = {"ports": [{"port": 80}], "type": "ClusterIP", **spec}
    return {"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": spec}


@pytest.fixture
def storage():
    return Storage()


@pytest.fixture
def add(storage):
    """A service that has its addresses, and is stored."""

    def added(*args, **spec):
        made = with_addresses(service(*args, **spec), storage)
        return storage.put(SERVICE, made)

    return added


def test_each_service_has_an_address_of_its_own(add):
    first, second = add("a")["spec"], add("b")["spec"]
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["clusterIP"] != second["clusterIP"]


def test_a_headless_service_has_none(add):
    assert add(clusterIP="None")["spec"]["clusterIPs"] == ["None"]


@pytest.mark.parametrize(
    ("address", "why"),
    [("10.96.7.7", "already allocated"), ("11.0.0.1", "does not match the current range")],
)
def test_an_address_that_is_not_to_be_had(add, address, why):
    add("a", clusterIP="10.96.7.7")
    with pytest.raises(ApiError, match=why):
        add("b", clusterIP=address)


def test_ports_on_nodes(add):
    first = add("a", type="NodePort")["spec"]["ports"][0]["nodePort"]
    second = add("b", type="NodePort")["spec"]["ports"][0]["nodePort"]
    assert 30000 <= first < second <= 32767
    with pytest.raises(ApiError, match="provided port is already allocated"):
        add("c", type="NodePort", ports=[{"port": 80, "nodePort": first}])
    with pytest.raises(ApiError, match="not in the valid range"):
        add("d", type="NodePort", ports=[{"port": 80, "nodePort": 99}])


def test_an_address_stays(add, storage):
    old = add("a")
    kept = with_kept_addresses(old, service("a"), storage)
    assert kept["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    with pytest.raises(ApiError, match="may not change once set"):
        with_kept_addresses(old, service("a", clusterIP="10.96.9.9"), storage)


def test_a_service_elsewhere_has_no_address(add, storage):
    old = add("a")
    moved = with_kept_addresses(old, service("a", type="ExternalName"), storage)
    assert "clusterIP" not in moved["spec"]


def test_ports_on_nodes_go_with_the_type(add, storage):
    old = add("a", type="NodePort")
    new = {**old, "spec": {**old["spec"], "type": "ClusterIP"}}
    changed = with_kept_addresses(old, new, storage)
    assert changed["spec"]["ports"] == [{"port": 80}]


@pytest.mark.parametrize(
    ("spec", "is_refused"),
    [({}, True), ({"clusterIP": "None"}, False), ({"type": "ExternalName"}, False)],
)
def test_an_address_belongs_to_a_name(storage, spec, is_refused):
    """A service whose address is to be chosen is refused for that, not for its lack of a name."""
    nameless = {"metadata": {}, "spec": spec}
    if not is_refused:
        require_name(nameless, storage)
        return
    with pytest.raises(ApiError, match=r"failed to allocate IP: .*spec\.parentRef\.name: Required"):
        require_name(nameless, storage)
