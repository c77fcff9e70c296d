"""Endpoints and EndpointSlices of Services."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason, ObjectChanged
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints
from fairlead.engine.workloads.endpoints.endpoints_capacity import OVER_CAPACITY, truncated


@pytest.fixture
def world(new_world, build):
    zone = {"topology.kubernetes.io/zone": "a"}
    return new_world(ServiceEndpoints(), GarbageCollector()).load(build.node("n1", labels=zone))


def service(name="web", *, selector=None, ports=(), **spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "ns", "uid": f"svc-{name}", "labels": {"x": "y"}},
        "spec": {"selector": selector or {"app": "web"}, "ports": list(ports), **spec},
    }


PORT = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def pod(build, name, address, *, ready=True, **fields):
    made = build.pod(name, **fields)
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    made["status"] = {"phase": "Running", "podIP": address, "conditions": [condition]}
    return made


def slices(world):
    return [one for key, one in sorted(world.objects.items()) if key[0] == "EndpointSlice"]


def addresses(world):
    return sorted(
        (entry["addresses"][0], entry["conditions"]["ready"])
        for one in slices(world)
        for entry in one["endpoints"]
    )


def test_a_service_without_pods_has_empty_endpoints(world):
    world.create(service(ports=[PORT]))
    (one,) = slices(world)
    assert one["endpoints"] == []
    assert one["metadata"]["labels"] == {
        "x": "y",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert one["metadata"]["ownerReferences"][0]["uid"] == "svc-web"
    assert "subsets" not in world.get("Endpoints", "web")


def test_ipv6_addresses_of_a_dump_are_neither_added_nor_removed(world, build):
    """Only IPv4 slices are written; the API server refuses IPv6 addresses in them."""
    loaded = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "web-6",
            "namespace": "ns",
            "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv6",
        "endpoints": [{"addresses": ["fd00::1"]}],
        "ports": [],
    }
    world.create(loaded)
    world.create(service(ports=[PORT]))
    world.create(pod(build, "a", "fd00::1"))
    world.create(pod(build, "b", "10.0.0.2"))
    found = {one["addressType"]: one["endpoints"] for one in slices(world)}
    assert {key: [one["addresses"] for one in rows] for key, rows in found.items()} == {
        "IPv4": [["10.0.0.2"]],
        "IPv6": [["fd00::1"]],
    }


def test_pods_with_an_address_are_endpoints(world, build):
    world.create(service(ports=[PORT]))
    world.create(pod(build, "a", "10.0.0.1"))
    world.create(pod(build, "b", "10.0.0.2", ready=False))
    world.create(build.pod("c"))
    world.create(pod(build, "other", "10.0.0.9", labels={"app": "db"}))
    (one,) = slices(world)
    assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    first = one["endpoints"][0]
    assert first["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert (first["nodeName"], first["zone"], first["targetRef"]["name"]) == ("n1", "a", "a")
    assert addresses(world) == [("10.0.0.1", True), ("10.0.0.2", False)]
    (subset,) = world.get("Endpoints", "web")["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.1"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.2"]
    assert subset["ports"] == one["ports"]


def test_endpoints_have_at_most_a_thousand_addresses(world, build):
    """Ready addresses are listed first; the slices have all addresses."""
    world.load(
        service(ports=[PORT]),
        *(pod(build, f"a{n}", f"10.0.{n // 250}.{n % 250}") for n in range(990)),
        *(pod(build, f"b{n}", f"10.1.0.{n}", ready=False) for n in range(20)),
    )
    found = world.get("Endpoints", "web")
    (subset,) = found["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (990, 10)
    assert found["metadata"]["annotations"][OVER_CAPACITY] == "truncated"
    assert len(addresses(world)) == 1_010
    writes = len(world.sent(PatchObject))
    world.patch("Service", "web", {"metadata": {"annotations": {"a": "b"}}})
    assert len(world.sent(PatchObject)) == writes
    for n in range(10):
        world.delete("Pod", f"b{n}", grace=0)
    found = world.get("Endpoints", "web")
    (subset,) = found["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (990, 10)
    assert OVER_CAPACITY not in found["metadata"].get("annotations", {})


def listed(first, *, ready, not_ready):
    """Return a subset with this many addresses."""
    names = {"addresses": ready, "notReadyAddresses": not_ready}
    lists = {name: [f"{first}{n}" for n in range(count)] for name, count in names.items()}
    return {name: found for name, found in lists.items() if found} | {"ports": [first]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([(600, 400)], None),
        ([(900, 5), (300, 0)], [(750, 0), (250, 0)]),
        ([(1_001, 9)], [(1_000, 0)]),
        ([(500, 400), (300, 200)], [(500, 134), (300, 66)]),
        ([(1_000, 3)], [(1_000, 0)]),
        ([(700, 0), (700, 0), (700, 0)], [(334, 0), (334, 0), (332, 0)]),
    ],
)
def test_subsets_share_the_maximum_of_a_thousand_addresses(before, after):
    def made(numbers):
        return [
            listed(str(index), ready=ready, not_ready=not_ready)
            for index, (ready, not_ready) in enumerate(numbers)
        ]

    assert truncated(made(before)) == (after and made(after))


def test_a_terminating_pod_is_a_serving_endpoint(world, build):
    world.load(service(ports=[PORT]), pod(build, "a", "10.0.0.1"))
    world.delete("Pod", "a")
    (entry,) = slices(world)[0]["endpoints"]
    assert entry["conditions"] == {"ready": False, "serving": True, "terminating": True}
    assert "subsets" not in world.get("Endpoints", "web")
    world.delete("Pod", "a", grace=0)
    assert addresses(world) == []


def test_a_finished_pod_is_no_endpoint(world, build):
    world.load(service(ports=[PORT]), pod(build, "a", "10.0.0.1"))
    world.patch_status("Pod", "a", {"phase": "Failed"})
    assert addresses(world) == []


def test_unready_pods_may_be_published(world, build):
    world.load(service(publishNotReadyAddresses=True), pod(build, "a", "10.0.0.1", ready=False))
    assert addresses(world) == [("10.0.0.1", True)]


IN_ZONE = {"forZones": [{"name": "a"}]}
ON_NODE = {"forNodes": [{"name": "n1"}]}


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        ("", None),
        ("PreferClose", IN_ZONE),
        ("PreferSameZone", IN_ZONE),
        ("PreferSameNode", IN_ZONE | ON_NODE),
    ],
)
def test_ready_endpoints_have_hints_for_the_traffic_distribution(world, build, distribution, hints):
    spec = {"trafficDistribution": distribution} if distribution else {}
    ready, unready = pod(build, "a", "10.0.0.1"), pod(build, "b", "10.0.0.2", ready=False)
    world.create(ready)
    world.create(unready)
    world.create(service(ports=[PORT], **spec))
    (one,) = slices(world)
    found = {entry["addresses"][0]: entry.get("hints") for entry in one["endpoints"]}
    assert found == {"10.0.0.1": hints, "10.0.0.2": None}


def test_hints_follow_the_service(world, build):
    world.load(service(ports=[PORT], trafficDistribution="PreferSameZone"))
    world.create(pod(build, "a", "10.0.0.1"))
    mode = {"service.kubernetes.io/topology-mode": "Auto"}
    world.patch("Service", "web", {"metadata": {"annotations": mode}})
    assert "hints" not in slices(world)[0]["endpoints"][0]
    world.patch("Service", "web", {"metadata": {"annotations": None}})
    assert slices(world)[0]["endpoints"][0]["hints"] == IN_ZONE


@pytest.mark.parametrize(("restarts", "numbers"), [("Always", [9090]), (None, [])])
def test_a_named_port_may_be_the_port_of_a_sidecar(world, build, restarts, numbers):
    proxy = {"name": "proxy", "ports": [{"name": "web", "containerPort": 9090, "protocol": "TCP"}]}
    proxy |= {"restartPolicy": restarts} if restarts else {}
    made = pod(build, "a", "10.0.0.1")
    made["spec"]["initContainers"] = [proxy]
    world.create(made)
    world.create(service(ports=[PORT | {"targetPort": "web"}]))
    (one,) = slices(world)
    assert [port["port"] for port in one["ports"]] == numbers


def test_a_named_port_is_looked_up_in_the_pod(world, build):
    """Pods with different port numbers are in different subsets and slices."""
    named = PORT | {"targetPort": "web"}
    containers = [
        [{"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": number}]}]
        for number in (8000, 9000)
    ]
    world.load(
        service(ports=[named]),
        pod(build, "a", "10.0.0.1", containers=containers[0]),
        pod(build, "b", "10.0.0.2", containers=containers[1]),
    )
    assert sorted(one["ports"][0]["port"] for one in slices(world)) == [8000, 9000]
    assert len(world.get("Endpoints", "web")["subsets"]) == 2


def test_a_slice_has_at_most_a_hundred_endpoints(world, build):
    pods = [pod(build, f"p{place}", f"10.0.{place // 200}.{place % 200}") for place in range(150)]
    world.load(service(ports=[PORT]), *pods)
    assert sorted(len(one["endpoints"]) for one in slices(world)) == [50, 100]
    before = len(world.sent(PatchObject))
    world.delete("Pod", "p0", grace=0)
    assert len(addresses(world)) == 149
    assert len(world.sent(PatchObject)) == before + 2  # one slice, and the Endpoints


def test_endpoints_follow_the_labels_of_pods(world, build):
    world.load(service(), pod(build, "a", "10.0.0.1"))
    world.patch("Pod", "a", {"metadata": {"labels": {"app": "db"}}})
    assert addresses(world) == []


def test_endpoints_follow_the_selector_of_the_service(world, build):
    world.load(service(), pod(build, "a", "10.0.0.1"))
    world.patch("Service", "web", {"spec": {"selector": {"app": "db"}}})
    assert addresses(world) == []
    world.patch("Service", "web", {"spec": {"selector": {"app": "web"}}})
    assert addresses(world) == [("10.0.0.1", True)]


def test_headless_services_and_host_names(world, build):
    one = pod(build, "db-0", "10.0.0.1", hostname="db-0", subdomain="web")
    world.load(service(clusterIP="None"), one)
    (made,) = slices(world)
    assert made["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert made["endpoints"][0]["hostname"] == "db-0"


@pytest.mark.parametrize("spec", [{"type": "ExternalName"}, {"selector": {}}])
def test_services_without_a_selector_are_ignored(world, build, spec):
    one = service()
    one["spec"] |= spec
    world.load(one, pod(build, "a", "10.0.0.1"))
    assert world.log == []


def test_endpoints_of_a_deleted_service_are_deleted(world, build):
    world.load(service(), pod(build, "a", "10.0.0.1"))
    world.delete("Service", "web")
    assert slices(world) == []
    assert world.get("Endpoints", "web") is None


def test_slices_of_a_service_that_was_deleted_with_cascade_orphan_are_replaced(world, build):
    """They stay until there is a new Service with the same name, which deletes them."""
    world.create(service(ports=[PORT]))
    world.create(pod(build, "a", "10.0.0.1"))
    orphaning = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["orphan"]}
    world.patch("Service", "web", {"metadata": orphaning})
    world.delete("Service", "web")
    world.delete("Pod", "a", grace=0)
    assert addresses(world) == [("10.0.0.1", True)]
    again = service(ports=[PORT])
    again["metadata"]["uid"] = "svc-again"
    world.create(again)
    world.create(pod(build, "b", "10.0.0.2"))
    assert addresses(world) == [("10.0.0.2", True)]
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in slices(world)} == {"svc-again"}


def test_existing_endpoints_are_kept(world, build, new_world):
    """As after a restart of the controller."""
    world.load(service(ports=[PORT]), pod(build, "a", "10.0.0.1"))
    other = new_world(ServiceEndpoints()).load(*world.objects.values())
    assert not other.sent(CreateObject | PatchObject | DeleteObject)


def test_a_slice_to_be_deleted_is_reused_instead_of_a_new_slice(world, build):
    world.create(service(ports=[PORT]))
    (before,) = slices(world)
    world.create(pod(build, "a", "10.0.0.1"))
    (after,) = slices(world)
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["ports"][0]["port"] == 8080


def test_labels_follow_the_service(world):
    world.create(service(ports=[PORT]))
    world.patch("Service", "web", {"metadata": {"labels": {"x": None, "z": "1"}}})
    for one in (*slices(world), world.get("Endpoints", "web")):
        labels = one["metadata"]["labels"]
        assert labels["z"] == "1"
        assert "x" not in labels
        assert len(labels) > 1, "whose work they are stays"


def triggered(world):
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    found = {
        one["metadata"].get("annotations", {}).get(key, "")
        for one in (*slices(world), world.get("Endpoints", "web"))
    }
    (at,) = found
    return at


def test_the_last_change_trigger_time_is_written(world, build):
    """It is the Service's creation, then a pod's readiness; it is omitted without such a change."""
    world.create(service(ports=[PORT]))
    assert triggered(world) == "1970-01-12T13:46:40Z"
    made = pod(build, "a", "10.0.0.1", ready=False)
    made["status"]["conditions"][0]["lastTransitionTime"] = "1970-01-12T13:47:00Z"
    world.create(made)
    assert triggered(world) == "1970-01-12T13:47:00Z"
    world.patch_status("Pod", "a", {"podIP": "10.0.0.2"})
    assert triggered(world) == ""


def test_refused_writes_are_repeated_with_backoff(new_world):
    """The namespace's quota is full for a while."""
    is_full = [True]
    tried = []

    def refuse(command):
        if isinstance(command, CreateObject):
            tried.append(command.target.kind)
        return FailureReason.FORBIDDEN if is_full[0] else None

    world = new_world(ServiceEndpoints()).load()
    world.refuse = refuse
    world.stimuli.append(ObjectChanged(decode(service(ports=[PORT]))))
    world.settle()
    assert tried == ["EndpointSlice", "Endpoints"]
    world.run(seconds(1))
    assert 6 <= tried.count("Endpoints") <= 12
    is_full[0] = False
    world.run(seconds(60))
    assert world.get("Endpoints", "web") is not None
    assert len(slices(world)) == 1


def test_a_pod_is_left_out_of_slices_until_its_node_is_known(world, build):
    """Endpoints have it immediately, and so have Services with publishNotReadyAddresses."""
    world.create(service(ports=[PORT]))
    world.create(service("eager", ports=[PORT], publishNotReadyAddresses=True))
    world.create(pod(build, "web-1", "10.0.0.1", node="n2"))
    assert addresses(world) == [("10.0.0.1", True)]
    assert [len(one["endpoints"]) for one in slices(world)] == [1, 0]
    assert world.get("Endpoints", "web")["subsets"][0]["addresses"][0]["ip"] == "10.0.0.1"
    world.create(build.node("n2", labels={"topology.kubernetes.io/zone": "b"}))
    assert addresses(world) == [("10.0.0.1", True), ("10.0.0.1", True)]
    assert slices(world)[1]["endpoints"][0]["zone"] == "b"
