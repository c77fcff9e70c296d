"""Hints of Services whose topology mode is Auto."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchObject
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints

ZONE = "topology.kubernetes.io/zone"
MODE = "service.kubernetes.io/topology-mode"


@pytest.fixture
def world(new_world):
    return new_world(ServiceEndpoints(), GarbageCollector())


def node(build, zone, cpu="4", *, ready=True, labels=None):
    """A node named after its zone."""
    made = build.node(f"n-{zone}", labels={**({ZONE: zone} if zone else {}), **(labels or {})})
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    made["status"] = {"allocatable": {"cpu": cpu}, "conditions": [condition]}
    return made


def service(mode="Auto"):
    meta = {"name": "web", "namespace": "ns", "uid": "svc", "annotations": {MODE: mode}}
    port = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}
    spec = {"selector": {"app": "web"}, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def pods(build, zone, count, *, ready=True):
    found = []
    for number in range(count):
        made = build.pod(f"{zone}{number}", node=f"n-{zone}")
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        address = f"10.{ord(zone)}.0.{number}"
        made["status"] = {"phase": "Running", "podIP": address, "conditions": [condition]}
        found.append(made)
    return found


def entries(world):
    slices = [one for key, one in sorted(world.objects.items()) if key[0] == "EndpointSlice"]
    return [entry for one in slices for entry in one["endpoints"]]


def hinted(world):
    """Return how many endpoints have a hint for each zone."""
    found = {}
    for entry in entries(world):
        for zone in entry.get("hints", {}).get("forZones", ()):
            found[zone["name"]] = found.get(zone["name"], 0) + 1
    return found


def notes(world):
    return [event.note.removesuffix(", addressType: IPv4") for event in world.events]


TOO_FEW = "Insufficient number of endpoints (1 endpoints, 2 zones)"
OVERLOAD = (
    "Unable to allocate minimum required endpoints to each zone without exceeding overload "
    "threshold"
)
NO_NODES = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)


@pytest.mark.parametrize(
    ("cpu", "there", "hints", "note"),
    [
        ({"a": "4", "b": "4"}, {"a": 2, "b": 2}, {"a": 2, "b": 2}, "has been enabled"),
        ({"a": "4", "b": "4"}, {"a": 3, "b": 1}, {"a": 2, "b": 2}, "has been enabled"),
        ({"a": "6", "b": "2"}, {"a": 2, "b": 2}, {"a": 3, "b": 1}, "has been enabled"),
        ({"a": "4", "b": "4"}, {"a": 2, "b": 1}, {}, f"{OVERLOAD} (3 endpoints, 2 zones)"),
        ({"a": "4", "b": "4"}, {"a": 1}, {}, TOO_FEW),
        ({"a": "4"}, {"a": 4}, {}, NO_NODES),
        ({"a": "4", "b": "0"}, {"a": 2, "b": 2}, {}, NO_NODES),
        ({"a": "4", "b": "4", "c": "4"}, {"a": 6}, {"a": 2, "b": 2, "c": 2}, "has been enabled"),
    ],
)
def test_zones_get_endpoints_in_proportion_to_their_cpu(world, build, cpu, there, hints, note):
    nodes = [node(build, zone, amount) for zone, amount in cpu.items()]
    ready = [pod for zone, count in there.items() for pod in pods(build, zone, count)]
    world.load(*nodes, service(), *ready)
    assert hinted(world) == hints
    (text,) = notes(world)
    assert text.endswith(note)


@pytest.mark.parametrize(
    ("fields", "hints"),
    [
        ({"ready": False}, {}),
        ({"labels": {"node-role.kubernetes.io/control-plane": ""}}, {}),
        ({}, {"a": 2, "b": 2}),
    ],
    ids=["not ready", "of the control plane", "usual"],
)
def test_only_ready_workers_count(world, build, fields, hints):
    world.load(node(build, "a"), node(build, "b", **fields), service(), *pods(build, "a", 4))
    assert hinted(world) == hints


def test_unready_endpoints_have_no_hints(world, build):
    unready = pods(build, "b", 3, ready=False)
    world.load(node(build, "a"), node(build, "b"), service(), *pods(build, "a", 2), *unready)
    assert hinted(world) == {"a": 1, "b": 1}


def test_without_the_annotation_hints_are_removed(world, build):
    world.load(node(build, "a"), node(build, "b"), service(), *pods(build, "a", 2))
    world.patch("Service", "web", {"metadata": {"annotations": {MODE: None}}})
    assert hinted(world) == {}
    assert notes(world) == [
        "Topology Aware Hints has been enabled",
        "Topology Aware Hints has been disabled",
    ]


def test_hints_follow_the_nodes(world, build):
    """Hints change if a zone has too few endpoints, or if its hints are no longer valid."""
    world.load(node(build, "a"), node(build, "b"), service(), *pods(build, "a", 4))
    world.create(node(build, "c", "8"))
    assert hinted(world) == {"a": 1, "b": 1, "c": 2}
    world.delete("Node", "n-c", namespace="")
    world.delete("Node", "n-b", namespace="")
    assert hinted(world) == {}


def test_a_slice_that_does_not_change_keeps_its_hints(world, build):
    """Although the zones would exchange other endpoints if all were distributed anew."""
    first = pods(build, "a", 100)
    world.load(node(build, "a"), node(build, "b"), service(), *first)
    assert hinted(world) == {"a": 50, "b": 50}
    writes = len(world.sent(PatchObject))
    world.create(pods(build, "b", 1)[0])
    assert sum(hinted(world).values()) == 101
    slices = [one for one in world.sent(PatchObject)[writes:] if one.target.kind == "EndpointSlice"]
    assert slices == []


def test_nothing_is_written_if_nothing_changes(world, build):
    world.load(node(build, "a"), node(build, "b"), service(), *pods(build, "a", 2))
    writes = len(world.log)
    world.patch("Service", "web", {"metadata": {"annotations": {"x": "y"}}})
    assert len(world.log) == writes
