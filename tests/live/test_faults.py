"""A scheduler behind a faulty network and server: no pod is lost, and none is bound twice."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from tests.live.cluster_client import PODS_PATH, Direct, all_bound, node_of, pod, requested
from tests.live.event_loop import run_until_closed
from tests.live.fault_proxy import FaultProxy
from tests.up_process import up

from fairlead.api.quantity import milli_value
from fairlead.client.connection import ConnectionConfig
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import RestClient
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter
from fairlead.worlds.cluster.resource import watched_resources
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions

NODES = 20


@contextmanager
def cluster(folder, nodes=NODES):
    """A cluster without a scheduler."""
    path = folder / "kubeconfig"
    options = ("--nodes", str(nodes), "--without", "scheduler", "--kubeconfig", str(path))
    with up(*options, paused=False):
        yield Kubeconfig((str(path),)).connection("")


@pytest.fixture
def connection(tmp_path):
    with cluster(tmp_path) as found:
        yield found


def runner_of(server, connection=None, controllers=("scheduler",), **options):
    """Return a runner for `server`, or for `connection` if that is given."""
    engine = EngineConfig(seed=1)

    def build(now):
        return build_running_engine(replace(engine, start=now), SilentReporter(), controllers)

    return ClusterRunner(
        RunnerOptions(
            config=connection or ConnectionConfig(name="proxy", server=server),
            resources=watched_resources(controllers),
            build=build,
            limits=RequestLimits(qps=0),
            host="test",
            **options,
        )
    )


async def scheduled(connection, seed, story):
    """Run `story` with a scheduler behind a proxy with faults; return the proxy."""
    proxy = FaultProxy(connection, seed)
    async with RestClient(connection) as client:
        runner = runner_of(await proxy.start(), watch_seconds=1)  # notices a silent watch soon
        running = asyncio.create_task(runner.run())
        try:
            await story(Direct(client))
        finally:
            runner.stop()
            problem = await running
            await proxy.stop()
    assert problem == ""
    return proxy


def run(connection, number, seed, seconds, nodes=NODES):
    """Schedule `number` pods that fill the cluster; some are deleted meanwhile."""

    async def story(direct):
        node = await direct.send("GET", "/api/v1/nodes/node-1")
        room = milli_value(node["status"]["allocatable"]["cpu"])
        cpu = f"{room * nodes // (number * 3 // 4)}m"  # leaves little room to spare
        await direct.create([pod(f"p{at}", cpu) for at in range(number // 2)])
        for at in range(0, number // 2, 7):
            await direct.send("DELETE", f"{PODS_PATH}/p{at}", {"gracePeriodSeconds": 0})
        await direct.create([pod(f"q{at}", cpu) for at in range(number // 4)])
        found = await direct.eventually(all_bound, seconds)
        assert all(sum_ <= room for sum_ in requested(found).values())

    return run_until_closed(scheduled(connection, seed, story))


def check(proxy):
    assert set(proxy.bound.values()) == {1}
    assert len(proxy.met) >= 6, proxy.met


@pytest.mark.long
def test_every_pod_is_bound_once_under_faults(connection):
    check(run(connection, number=160, seed=1, seconds=180))


@pytest.mark.long
def test_preemption_succeeds_under_faults(connection):
    """No pod of a high priority stays pending while pods of a lower priority run."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1_000}

    async def story(direct):
        node = await direct.send("GET", "/api/v1/nodes/node-1")
        room = milli_value(node["status"]["allocatable"]["cpu"])
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await direct.send("POST", classes, {**high, "metadata": {"name": "high"}})
        await direct.create([pod(f"low{at}", f"{room // 2}m") for at in range(2 * NODES)])
        await direct.eventually(all_bound, 180)
        await direct.create([pod(f"high{at}", f"{room // 2}m", "high") for at in range(NODES)])

        def high_bound(pods):
            return all(node_of(one) for one in pods if one["metadata"]["name"].startswith("high"))

        found = await direct.eventually(high_bound, 180)
        assert all(sum_ <= room for sum_ in requested(found).values())

    run_until_closed(scheduled(connection, 2, story))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_ten_thousand_pods_are_bound_once_under_faults(seed, tmp_path):
    with cluster(tmp_path, nodes=200) as connection:
        check(run(connection, number=10_000, seed=seed, seconds=900, nodes=200))
