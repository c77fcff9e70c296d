"""Pods with resource claims from creation to deletion, with all controllers."""

from __future__ import annotations

import json

from msgspec import structs

from fairlead.api.codec import as_json
from fairlead.api.objects import DeviceClassSpec
from fairlead.apiserver.kind import NODE, POD, find_kind
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.testing.builders import make_node
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_767_225_600)
CLAIM = find_kind("resourceclaim")
GPU = "example.com/gpu"


def manifest(view):
    kind = type(view).__name__
    version = "v1" if kind == "Node" else "resource.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, **as_json(view)}


def pod(name, spec, **more):
    metadata = {"name": name, "namespace": "default"}
    whole = {"containers": [{"name": "c", "image": "i"}], **spec, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


class World(SimulatedWorld):
    """A cluster of two nodes with a device each, and the given objects."""

    def __init__(self, *views):
        self.log = []
        engine = build_engine(EngineConfig(start=START), SilentReporter())
        super().__init__(engine, start=START, command_log=self.log.append)
        nodes = [make_node("a"), make_node("b")]
        slices = [make_slice("a"), make_slice("b")]
        self.load(map(manifest, [*nodes, *slices, make_device_class(), *views]))

    def create(self, *pods):
        for one in pods:
            self.at(self.now, lambda store, now, one=one: store.create(one, now))
        return self.after(60)

    def after(self, duration_s):
        self.run(self.now + seconds(duration_s))
        return self

    def node_of(self, name):
        return self.store.get(POD, "default", name)["spec"].get("nodeName", "")

    def why(self, name):
        conditions = self.store.get(POD, "default", name)["status"]["conditions"]
        return next(c for c in conditions if c["type"] == "PodScheduled").get("message", "")

    def devices(self, claim):
        allocation = self.store.get(CLAIM, "default", claim).get("status", {}).get("allocation")
        results = allocation["devices"]["results"] if allocation else ()
        return [f"{one['pool']}/{one['device']}" for one in results]


def test_a_pod_waits_until_a_device_is_released():
    """Its condition has upstream's message."""
    claims = [make_resource_claim(name) for name in ("c", "d", "e")]
    world = World(*claims).create(
        *(pod(f"p{i}", make_pod_resource_claims(c.metadata.name)) for i, c in enumerate(claims))
    )
    assert {world.node_of("p0"), world.node_of("p1"), world.node_of("p2")} == {"a", "b", ""}
    assert world.why("p2") == (
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable,"
        " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    world.at(world.now, lambda store, now: store.delete(POD, "default", "p0", now))
    world.after(60)
    assert world.node_of("p2")
    assert world.devices("c") == []
    assert sorted(world.devices("d") + world.devices("e")) == ["a/gpu-0", "b/gpu-0"]


def test_pods_that_share_a_claim_run_on_the_same_node():
    """The node has the device."""
    world = World(make_resource_claim("c"))
    world.create(*(pod(f"p{i}", make_pod_resource_claims("c")) for i in range(5)))
    assert len({world.node_of(f"p{i}") for i in range(5)}) == 1
    status = world.store.get(CLAIM, "default", "c")["status"]
    assert [one["name"] for one in status["reservedFor"]] == [f"p{i}" for i in range(5)]


def test_an_unused_allocation_on_a_cordoned_node_is_moved():
    """The first attempt deallocates the claim, the second one allocates it again."""
    world = World(make_resource_claim("c", status=make_claim_status("a", "gpu-0")))
    world.at(START, lambda s, now: s.patch(NODE, "", "a", {"spec": {"unschedulable": True}}, now))
    world.create(pod("p", make_pod_resource_claims("c")))
    assert world.node_of("p") == "b"
    assert world.devices("c") == ["b/gpu-0"]
    notes = [json.loads(line).get("note", "") for line in world.log]
    assert any("deallocation of ResourceClaim completed" in note for note in notes)


def test_a_pod_is_retried_after_its_claim_was_deleted_during_the_binding():
    """The pod waits for its claim."""
    world = World().create(pod("p", make_pod_resource_claims("c")))
    assert world.node_of("p") == ""
    world.at(world.now, lambda s, now: s.create(manifest(make_resource_claim("c")), now))
    assert world.after(60).node_of("p")


def test_an_extended_resource_is_provided_by_devices():
    """The special claim is created with the placement and deleted with the pod."""
    asks = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}]}
    spec = DeviceClassSpec(extended_resource_name=GPU)
    world = World(structs.replace(make_device_class("named"), spec=spec))
    world.create(*(pod(f"p{i}", asks) for i in range(3)))
    placed = [f"p{i}" for i in range(3) if world.node_of(f"p{i}")]
    assert len(placed) == 2
    shown = [world.store.get(POD, "default", name)["status"] for name in placed]
    claims = [one["extendedResourceClaimStatus"]["resourceClaimName"] for one in shown]
    assert sorted(world.devices(claims[0]) + world.devices(claims[1])) == ["a/gpu-0", "b/gpu-0"]
    world.after(600)
    assert len(world.devices(claims[0])) == 1
    world.at(world.now, lambda store, now: store.delete(POD, "default", placed[0], now))
    world.after(120)
    assert all(world.node_of(f"p{i}") for i in range(3) if f"p{i}" != placed[0])
    names = [one["metadata"]["name"] for one in world.store.list(CLAIM)]
    assert claims[0] not in names
    assert len(names) == 2


def test_devices_of_a_generated_claim_are_free_at_once_when_its_pod_is_deleted():
    """The claim is deallocated before its deletion, which wakes the waiting pod."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": as_json(make_resource_claim("c").spec)},
    }
    world = World()
    world.at(world.now, lambda store, now: store.create(template, now))
    world.create(*(pod(f"p{i}", make_pod_resource_claims(templates=["t"])) for i in range(3)))
    (waiting,) = (f"p{i}" for i in range(3) if not world.node_of(f"p{i}"))
    gone = "p0" if waiting != "p0" else "p1"
    world.at(world.now, lambda store, now: store.delete(POD, "default", gone, now))
    assert world.after(60).node_of(waiting)


def test_a_pod_is_bound_when_its_device_is_attached():
    """Until then it has a nominated node, and is checked every five seconds."""
    device = make_device("gpu-0") | {
        "bindingConditions": ["attached"],
        "bindingFailureConditions": ["broken"],
    }
    world = World(make_resource_claim("c"), make_slice("b", [device], driver="fabric.example.com"))
    world.store.delete(find_kind("resourceslice"), "", "gpu.example.com-a", world.now)
    world.store.delete(find_kind("resourceslice"), "", "gpu.example.com-b", world.now)
    world.create(pod("p", make_pod_resource_claims("c")))
    assert world.node_of("p") == ""
    claim = world.store.get(CLAIM, "default", "c")
    assert claim["status"]["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    shown = {"driver": "fabric.example.com", "pool": "b", "device": "gpu-0"}
    attached = {"type": "attached", "status": "True", "reason": "R", "message": "m"}
    attached["lastTransitionTime"] = "2026-01-01T00:01:00Z"
    fields = {"devices": [shown | {"conditions": [attached]}]}
    world.at(
        world.now + seconds(1),
        lambda store, now: store.patch_status(CLAIM, "default", "c", fields, now),
    )
    assert world.after(3).node_of("p") == ""
    assert world.after(3).node_of("p") == "b"


def test_a_pod_of_a_tainted_device_is_deleted():
    """Devices without taints stay available to other pods."""
    world = World(make_resource_claim("c"))
    world.create(pod("p", make_pod_resource_claims("c")))
    node = world.node_of("p")
    taint = {"key": "broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    tainted = manifest(make_slice(node, [make_device("gpu-0") | {"taints": [taint]}]))
    kind = find_kind("resourceslice")
    patch = {"spec": {"devices": tainted["spec"]["devices"]}}
    name = f"gpu.example.com-{node}"
    world.at(world.now, lambda store, now: store.patch(kind, "", name, patch, now))
    world.after(60)
    assert world.store.list(POD) == []
    assert world.devices("c") == []
