"""A scheduler with a wrong clock, and a scheduler in namespaces that refuse its writes."""

from __future__ import annotations

import asyncio

import pytest
from tests.live.cluster_client import PODS_PATH, Direct, all_bound, node_of, pod
from tests.live.event_loop import run_until_closed
from tests.live.test_faults import cluster, runner_of

from fairlead.client.leader_election import ElectionConfig
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.instant import seconds
from fairlead.worlds.cluster.telemetry.run_log import RunLog
from fairlead.worlds.local.clock import LocalClock

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("odd"), nodes=3) as found:
        yield found


async def nothing(_direct):
    pass


def scheduled(connection, story, ahead_s=0, prepare=nothing, **options):
    """Run `story` with a scheduler whose clock is `ahead_s` ahead; return its log.

    `prepare` runs before the scheduler starts. The log does not contain slow cycles, because every
    cycle can be slow on a busy machine.
    """
    log = []
    written = RunLog(lambda entry, _: log.append(entry.message), lambda: 0)

    async def run():
        async with RestClient(connection) as client:
            await prepare(Direct(client))
            runner = runner_of(connection.server, connection=connection, log=written, **options)
            runner.clock = LocalClock(runner.clock.now() + seconds(ahead_s))
            running = asyncio.create_task(runner.run())
            try:
                await story(Direct(client))
            finally:
                runner.stop()
                assert await running == ""

    run_until_closed(run())
    return [line for line in log if not line.startswith("slow cycle: ")]


async def clean(direct):
    """Delete all pods. Waiting pods come first, because they would take the room of the others."""
    for one in sorted(await direct.pods(), key=lambda one: bool(node_of(one))):
        path = f"{PODS_PATH}/{one['metadata']['name']}"
        await direct.send("DELETE", path, {"gracePeriodSeconds": 0})


@pytest.mark.long
@pytest.mark.parametrize("hours", [-2, 2], ids=["slow", "fast"])
def test_a_clock_that_is_two_hours_off_has_no_effect(connection, hours):
    """Leader election takes the usual time, and nodes do not count as unreachable."""
    election = ElectionConfig(
        identity=f"clock {hours}",
        name=f"clock{hours}",
        lease_duration=seconds(30),
        renew_deadline=seconds(20),
        retry_period=seconds(1) // 2,
    )
    controllers = ("scheduler", "node-lifecycle", "taint-eviction")

    async def prepare(direct):
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        spec = {"holderIdentity": "gone", "leaseDurationSeconds": 1}
        spec |= {"renewTime": "2026-01-01T00:00:00.000000Z"}
        body = {**lease, "metadata": {"name": election.name}, "spec": spec}
        await direct.send("POST", path, body)

    async def story(direct):
        for round_ in range(3):
            await direct.create([pod(f"p{round_}-{at}", "10m") for at in range(5)])
            await direct.eventually(all_bound, 60)
            await asyncio.sleep(2)
        nodes = (await direct.send("GET", "/api/v1/nodes"))["items"]
        assert all(not one["spec"].get("taints") for one in nodes)
        assert all(node_of(one) for one in await direct.pods())
        await clean(direct)

    options = {"election": election, "controllers": controllers, "prepare": prepare}
    log = scheduled(connection, story, hours * 3_600, **options)
    assert [line for line in log if "Traceback" in line] == []


def test_namespaces_that_refuse_events_do_not_delay_others(connection):
    """One has a quota for events, and one is deleted while its pods are scheduled."""

    async def create(direct, namespace, names):
        path = f"{NAMESPACES}/{namespace}/pods"
        await asyncio.gather(*(direct.send("POST", path, pod(name, "10m")) for name in names))

    async def story(direct):
        names = [f"p{at}" for at in range(20)]
        for name in ("full", "ending"):
            await direct.create_namespace(name)
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "events"}}
        hard = {"hard": {"count/events.events.k8s.io": "0", "count/events": "0"}}
        await direct.send("POST", f"{NAMESPACES}/full/resourcequotas", {**quota, "spec": hard})
        await create(direct, "full", names)
        await create(direct, "ending", names)
        held = {**pod("held", "10m"), "metadata": {"name": "held", "finalizers": ["example.com/x"]}}
        await direct.send("POST", f"{NAMESPACES}/ending/pods", held)
        await direct.send("DELETE", f"{NAMESPACES}/ending", {})
        await direct.create([pod(name, "10m") for name in names])
        await direct.eventually(all_bound, 60)
        async with asyncio.timeout(60):
            while True:
                found = (await direct.send("GET", f"{NAMESPACES}/full/pods"))["items"]
                if len(found) == len(names) and all_bound(found):
                    break
                await asyncio.sleep(0.1)
        await clean(direct)

    assert scheduled(connection, story) == []


RESOURCE_API = "/apis/resource.k8s.io/v1"


def test_pods_with_extended_resources_of_a_device_class_get_claims(connection):
    """The scheduler creates a claim if only a DeviceClass provides the requested resource."""
    version = {"apiVersion": "resource.k8s.io/v1"}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool}
    devices["devices"] = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    gpus = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": devices}
    a_class = {
        **version,
        "kind": "DeviceClass",
        "spec": {"extendedResourceName": "example.com/gpu"},
    }

    async def prepare(direct):
        body = {**gpus, "metadata": {"name": "node-1-gpu"}}
        await direct.send("POST", f"{RESOURCE_API}/resourceslices", body)
        body = {**a_class, "metadata": {"name": "gpu"}}
        await direct.send("POST", f"{RESOURCE_API}/deviceclasses", body)

    async def story(direct):
        pods = [pod(f"gpu-{at}", "10m") for at in range(3)]
        for one in pods:
            resources = one["spec"]["containers"][0]["resources"]
            resources["requests"]["example.com/gpu"] = "1"
            resources["limits"] = {"example.com/gpu": "1"}
        await direct.create(pods)
        found = await direct.eventually(lambda found: sum(map(bool, map(node_of, found))) == 2, 60)
        placed = [one for one in found if node_of(one)]
        claims = (await direct.send("GET", f"{RESOURCE_API}/resourceclaims"))["items"]
        used = {one["status"]["extendedResourceClaimStatus"]["resourceClaimName"] for one in placed}
        assert used == {one["metadata"]["name"] for one in claims}
        assert all(one["status"]["reservedFor"] for one in claims)
        await clean(direct)

    assert scheduled(connection, story, prepare=prepare) == []
