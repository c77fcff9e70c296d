"""No device is allocated twice, for random pods, claims, slices and terminations.

Random pods with their own and with shared claims run for a random minute in the simulated world,
with and without request latencies, while every version of every claim is checked.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.api.objects import ResourceClaim
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, find_kind
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.testing.random_cluster import Chance
from fairlead.worlds.simulation.world import Latency, SimulatedWorld

START = seconds(1_767_225_600)
CLAIM = find_kind("resourceclaim")
NODES = ("a", "b", "c")
MEMORY = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
BIG = {"cel": {"expression": MEMORY}}


def resource(kind, name, spec, **metadata):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def pool_of(chance, node):
    devices = [
        {"name": f"gpu-{i}", "capacity": {"memory": {"value": chance.of(("24Gi", "80Gi"))}}}
        for i in range(1 + chance.below(3))
    ]
    return resource(
        "ResourceSlice",
        f"{node}-gpus",
        {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    )


def claim_spec(chance):
    wanted = {"deviceClassName": "gpu", "count": 1 + chance.below(2)}
    if chance.one_in(3):
        wanted["selectors"] = [BIG]
    if chance.one_in(4):
        wanted = {"deviceClassName": "gpu", "allocationMode": "All"}
    requests = [{"name": "r", "exactly": wanted}]
    if chance.one_in(4):
        smaller = {"name": "one", "deviceClassName": "gpu", "count": 1}
        requests = [{"name": "r", "firstAvailable": [{"name": "first", **wanted}, smaller]}]
    return {"devices": {"requests": requests}}


def node_manifest(name):
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod_manifest(chance, number):
    claims = [{"name": "own", "resourceClaimTemplateName": f"t{chance.below(3)}"}]
    if chance.one_in(3):
        claims = [{"name": "shared", "resourceClaimName": f"shared-{chance.below(2)}"}]
    elif chance.one_in(4):
        claims.append({"name": "shared", "resourceClaimName": f"shared-{chance.below(2)}"})
    runs = {"fairlead.dev/run-duration": "5s"} if chance.one_in(2) else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "annotations": runs},
        "spec": {
            "resourceClaims": claims,
            "terminationGracePeriodSeconds": chance.below(3),
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


class Minute:
    """A world with devices; `seed` determines its script."""

    def __init__(self, seed, latency):
        self.chance = chance = Chance(seed)
        self.log = []
        engine = build_engine(EngineConfig(seed=seed, start=START), SilentReporter())
        self.world = SimulatedWorld(
            engine, start=START, seed=seed, latency=latency, command_log=self.log.append
        )
        self.allocations = 0
        self.world.store.subscribe(lambda _change: self.audit())
        self.world.load(
            [
                *map(node_manifest, NODES),
                resource("DeviceClass", "gpu", {"selectors": []}),
                *(pool_of(chance, node) for node in NODES),
                *(
                    resource("ResourceClaimTemplate", f"t{i}", {"spec": spec}, namespace="default")
                    for i, spec in enumerate(claim_spec(chance) for _ in range(3))
                ),
                *(
                    resource("ResourceClaim", f"shared-{i}", spec, namespace="default")
                    for i, spec in enumerate(claim_spec(chance) for _ in range(2))
                ),
            ]
        )
        for number in range(25):
            self.world.at(START + seconds(chance.below(40_000) / 1000), self.act(number))

    def act(self, number):
        chance = self.chance
        pod, deletes, gone = pod_manifest(chance, number), chance.one_in(3), chance.below(25)

        def happen(store, now):
            if not deletes:
                store.create(pod, now)
                return
            with suppress(ApiError):  # the pod may not exist
                store.delete(POD, "default", f"p{gone}", now)

        return happen

    def claims(self):
        return [decode(one) for one in self.world.store.list(CLAIM, "default")]

    def audit(self):
        """Check that a device has at most one claim, and that its consumers are on its node."""
        holders = {}
        for claim in self.claims():
            assert isinstance(claim, ResourceClaim)
            allocation = claim.status.allocation
            assert allocation is not None or not claim.status.reserved_for
            for one in allocation.devices.results if allocation else ():
                self.allocations += 1
                device = (one.driver, one.pool, one.device)
                assert holders.setdefault(device, claim.key) == claim.key
        return holders

    def run(self):
        self.world.run(START + seconds(60))
        return self


def devices_of(store, pod):
    """Return the pools whose devices are allocated to the pod's claims."""
    statuses = pod.get("status", {}).get("resourceClaimStatuses", [])
    made = {one["name"]: one["resourceClaimName"] for one in statuses}
    for wanted in pod["spec"]["resourceClaims"]:
        name = wanted.get("resourceClaimName") or made[wanted["name"]]
        claim = decode(store.get(CLAIM, "default", name))
        assert any(one.uid == pod["metadata"]["uid"] for one in claim.status.reserved_for)
        yield from (one.pool for one in claim.status.allocation.devices.results)


SLOW = Latency(bind=seconds(0.4), patch=seconds(0.3))


@pytest.mark.parametrize("latency", [None, SLOW], ids=["at once", "slow requests"])
@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32))
def test_no_device_is_allocated_twice(latency, seed):
    """Pods run where their devices are, and claims are reserved only for existing pods."""
    minute = Minute(seed, latency).run()
    store = minute.world.store
    bound = [pod for pod in store.list(POD, "default") if pod["spec"].get("nodeName")]
    for pod in bound:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            assert {*devices_of(store, pod)} == {pod["spec"]["nodeName"]}
    alive = {pod["metadata"]["uid"] for pod in store.list(POD, "default")}
    for claim in minute.claims():
        assert {one.uid for one in claim.status.reserved_for} <= alive


def test_the_random_minutes_have_all_kinds_of_events():
    """Otherwise the other tests would prove nothing."""
    assert sum(Minute(seed, None).run().allocations for seed in range(3)) > 50


def test_equal_seeds_give_equal_writes():
    """This includes the names of claims."""
    assert Minute(7, SLOW).run().log == Minute(7, SLOW).run().log
