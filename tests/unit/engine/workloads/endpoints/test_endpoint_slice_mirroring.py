"""EndpointSlices that mirror Endpoints written by clients."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints
from fairlead.engine.workloads.endpoints.endpoint_slice_mirroring import EndpointMirroring

NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
PORT = {"name": "db", "port": 5432, "protocol": "TCP"}


@pytest.fixture
def world(new_world):
    return new_world(ServiceEndpoints(), EndpointMirroring()).load()


def service(name="db", selector=None):
    spec = {"ports": [PORT], **({"selector": selector} if selector else {})}
    meta = {"name": name, "namespace": "ns", "uid": f"svc-{name}"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def endpoints(*ips, name="db", late=(), ports=(PORT,), **meta):
    subset = {"ports": list(ports)}
    if ips:
        subset["addresses"] = [{"ip": ip} for ip in ips]
    if late:
        subset["notReadyAddresses"] = [{"ip": ip} for ip in late]
    place = {"name": name, "namespace": "ns", "uid": f"ep-{name}", **meta}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": place, "subsets": [subset]}


def slices(world):
    return [one for key, one in sorted(world.objects.items()) if key[0] == "EndpointSlice"]


def held(world):
    return [
        (entry["addresses"][0], entry["conditions"]["ready"])
        for one in slices(world)
        for entry in one["endpoints"]
    ]


def test_addresses_are_mirrored(world):
    """Labels and annotations are copied, except those about the last change."""
    world.create(service())
    notes = {
        "team": "a",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z",
    }
    made = endpoints("192.0.2.1", late=("192.0.2.2",), labels={"x": "y"}, annotations=notes)
    made["subsets"][0]["addresses"][0] |= {"hostname": "h", "nodeName": "n1"}
    world.create(made)
    (one,) = slices(world)
    assert one["metadata"]["labels"] == {
        "x": "y",
        NAME: "db",
        MANAGED_BY: "endpointslicemirroring-controller.k8s.io",
    }
    assert one["metadata"]["annotations"] == {"team": "a"}
    (owner,) = one["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Endpoints", "ep-db", True)
    assert (one["addressType"], one["ports"]) == ("IPv4", [PORT])
    assert one["endpoints"] == [
        {
            "addresses": ["192.0.2.1"],
            "conditions": {"ready": True},
            "hostname": "h",
            "nodeName": "n1",
        },
        {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
    ]


def test_the_order_of_services_and_endpoints_does_not_matter(world):
    world.create(endpoints("192.0.2.1"))
    assert slices(world) == []
    world.create(service())
    assert held(world) == [("192.0.2.1", True)]


@pytest.mark.parametrize(
    ("meta", "selector"),
    [
        pytest.param({}, {"app": "db"}, id="pods are selected: another controller's work"),
        pytest.param(
            {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, None, id="left out"
        ),
        pytest.param(
            {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
            None,
            id="the record of an election",
        ),
    ],
)
def test_endpoints_that_are_not_mirrored(new_world, meta, selector):
    world = new_world(EndpointMirroring()).load()
    world.create(service(selector=selector))
    world.create(endpoints("192.0.2.1", **meta))
    assert slices(world) == []


def test_a_slice_is_updated_if_its_endpoints_change(world):
    """It is updated in place, and only if the Endpoints differ."""
    world.create(service())
    world.create(endpoints("192.0.2.1"))
    (before,) = slices(world)
    world.patch("Endpoints", "db", {"subsets": endpoints("192.0.2.3")["subsets"]})
    (after,) = slices(world)
    assert before["metadata"]["name"] == after["metadata"]["name"]
    assert held(world) == [("192.0.2.3", True)]
    world.patch("Endpoints", "db", {"metadata": {"labels": {"a": "b"}}})
    assert slices(world)[0]["metadata"]["labels"]["a"] == "b"
    sent = len(world.sent(PatchObject))
    world.patch("Service", "db", {"metadata": {"labels": {"c": "d"}}})
    assert len(world.sent(PatchObject)) == sent


def test_a_slice_follows_the_ports_of_its_endpoints(world):
    world.create(service())
    world.create(endpoints("192.0.2.1"))
    other = {"name": "db", "port": 3306, "protocol": "TCP"}
    world.patch("Endpoints", "db", {"subsets": endpoints("192.0.2.1", ports=(other,))["subsets"]})
    (one,) = slices(world)
    assert one["ports"] == [other]
    assert len(world.sent(CreateObject)) == 1


def test_each_address_family_has_its_own_slice(world):
    world.create(service())
    world.create(endpoints("192.0.2.1", "2001:db8::1"))
    assert sorted(one["addressType"] for one in slices(world)) == ["IPv4", "IPv6"]


def test_an_address_that_is_no_ip_address_is_not_mirrored(world):
    """Hand-written Endpoints of a dump are not validated."""
    world.create(service())
    world.create(endpoints("nonsense", "10.0.0.2"))
    [one] = slices(world)
    assert [entry["addresses"] for entry in one["endpoints"]] == [["10.0.0.2"]]


@pytest.mark.parametrize("kind", ["Endpoints", "Service"])
def test_slices_are_deleted_with_their_endpoints(world, kind):
    world.create(service())
    world.create(endpoints("192.0.2.1"))
    world.delete(kind, "db")
    assert slices(world) == []
    assert world.sent(DeleteObject)


def test_a_service_that_gets_a_selector_is_not_mirrored(world):
    world.create(service())
    world.create(endpoints("192.0.2.1"))
    world.patch("Service", "db", {"spec": {"selector": {"app": "db"}}})
    managers = [one["metadata"]["labels"][MANAGED_BY] for one in slices(world)]
    assert managers == ["endpointslice-controller.k8s.io"]


def test_a_deleted_slice_is_created_again(world):
    world.create(service())
    world.create(endpoints("192.0.2.1"))
    (one,) = slices(world)
    world.delete("EndpointSlice", one["metadata"]["name"])
    assert held(world) == [("192.0.2.1", True)]


def test_too_many_addresses_are_reported(world):
    """A thousand of a subset are mirrored."""
    ips = [f"192.0.{number // 250}.{number % 250 + 1}" for number in range(1002)]
    world.create(service())
    world.create(endpoints(*ips))
    assert len(held(world)) == 1000
    (event,) = world.events
    assert event.reason == "TooManyAddressesToMirror"
    assert event.note.endswith(" per Endpoints subset. 2 addresses were skipped")
