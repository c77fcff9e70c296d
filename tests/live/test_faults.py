"""A scheduler behind a network and a server that fail: no pod is lost, none is bound twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.live.fault_proxy import FaultProxy
from tests.up_process import up

from fairlead.api.quantity import milli_value
from fairlead.client.connection import ConnectionConfig
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import ApiRequest, RestClient
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter
from fairlead.worlds.cluster.resource import watched_resources
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions

NODES = 20
PODS_PATH = "/api/v1/namespaces/default/pods"


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


def pod(name, cpu, priority_class=""):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Direct:
    """The server itself, without faults."""

    def __init__(self, client):
        self.client = client

    async def send(self, method, path, body=None, content_type="application/json"):
        content = None if body is None else json.dumps(body).encode()
        answer = await self.client.exchange(ApiRequest(method, path, content, content_type), 30)
        assert answer.is_success, answer
        return json.loads(answer.body)

    async def create(self, pods):
        for start in range(0, len(pods), 50):
            await asyncio.gather(
                *(self.send("POST", PODS_PATH, one) for one in pods[start : start + 50])
            )

    async def pods(self):
        return (await self.send("GET", PODS_PATH))["items"]

    async def eventually(self, condition, seconds):
        """The pods, once `condition` holds for them."""
        end = time.monotonic() + seconds  # noqa: TID251 - the server works in real time
        while True:
            found = await self.pods()
            if condition(found):
                return found
            unbound = [one["metadata"]["name"] for one in found if not node_of(one)]
            assert time.monotonic() < end, f"waited in vain; pending: {unbound[:5]}"  # noqa: TID251
            await asyncio.sleep(0.2)


def node_of(pod):
    return pod["spec"].get("nodeName", "")


def all_bound(pods):
    return all(map(node_of, pods))


def runner_of(server, **options):
    engine = EngineConfig(seed=1)

    def build(now):
        return build_running_engine(replace(engine, start=now), SilentReporter(), ("scheduler",))

    return ClusterRunner(
        RunnerOptions(
            config=ConnectionConfig(name="proxy", server=server),
            resources=watched_resources(("scheduler",)),
            build=build,
            limits=RequestLimits(qps=0),
            host="test",
            watch_seconds=1,
            request_seconds=1.0,
            **options,
        )
    )


async def scheduled(connection, seed, story):
    """Run `story` with a scheduler behind a proxy with faults; return the proxy."""
    proxy = FaultProxy(connection, seed)
    async with RestClient(connection) as client:
        runner = runner_of(await proxy.start())
        running = asyncio.create_task(runner.run())
        try:
            await story(Direct(client))
        finally:
            runner.stop()
            problem = await running
            await proxy.stop()
    assert problem == ""
    return proxy


def requested(pods):
    """Milli-CPUs by node."""
    sums = defaultdict(int)
    for one in pods:
        for container in one["spec"]["containers"]:
            cpu = container["resources"]["requests"]["cpu"]
            sums[node_of(one)] += milli_value(cpu)
    return sums


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

    return asyncio.run(scheduled(connection, seed, story))


def check(proxy):
    assert set(proxy.bound.values()) == {1}
    assert len(proxy.met) >= 6, proxy.met


def test_every_pod_is_bound_once_whatever_fails(connection):
    check(run(connection, number=160, seed=1, seconds=60))


def test_a_preemptor_gets_its_room_whatever_fails(connection):
    """No pod of a high priority is left pending where pods of a lower one run."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1_000}

    async def story(direct):
        node = await direct.send("GET", "/api/v1/nodes/node-1")
        room = milli_value(node["status"]["allocatable"]["cpu"])
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await direct.send("POST", classes, {**high, "metadata": {"name": "high"}})
        await direct.create([pod(f"low{at}", f"{room // 2}m") for at in range(2 * NODES)])
        await direct.eventually(all_bound, 60)
        await direct.create([pod(f"high{at}", f"{room // 2}m", "high") for at in range(NODES)])

        def high_bound(pods):
            return all(node_of(one) for one in pods if one["metadata"]["name"].startswith("high"))

        found = await direct.eventually(high_bound, 60)
        assert all(sum_ <= room for sum_ in requested(found).values())

    asyncio.run(scheduled(connection, 2, story))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_ten_thousand_pods_are_bound_once_whatever_fails(seed, tmp_path):
    with cluster(tmp_path, nodes=200) as connection:
        check(run(connection, number=10_000, seed=seed, seconds=900, nodes=200))


# --- leaders that are killed ---------------------------------------------------------------------

ELECTION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaseDuration: 3s
  renewDeadline: 2s
  retryPeriod: 500ms
clientConnection:
  qps: -1
"""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Replicas:
    """Two `fairlead run` processes; a killed one is replaced by a new one."""

    def __init__(self, kubeconfig, folder):
        self.config = folder / "scheduler.yaml"
        self.config.write_text(ELECTION)
        self.kubeconfig = kubeconfig
        self.running = {}
        self.started = 0
        for _ in range(2):
            self.start()

    def start(self):
        name = f"replica-{self.started}"
        self.started += 1
        options = ("--kubeconfig", self.kubeconfig, "--config", str(self.config))
        command = [sys.executable, "-m", "fairlead.cli", "run", "--listen", "none", *options]
        self.running[name] = subprocess.Popen(
            command, stderr=subprocess.DEVNULL, env={**os.environ, "POD_NAME": name}
        )

    def kill(self, name):
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.start()

    def stop(self):
        for process in self.running.values():
            process.kill()
            process.wait()


async def kill_leaders(direct, replicas, seconds, after):
    """Kill each new leader `after` seconds; return how many were killed."""
    end, killed = time.monotonic() + seconds, 0  # noqa: TID251
    while time.monotonic() < end:  # noqa: TID251
        answer = await direct.client.exchange(ApiRequest("GET", LEASE), 10)
        holder = json.loads(answer.body)["spec"]["holderIdentity"] if answer.is_success else ""
        name = holder.partition("_")[0]
        if name in replicas.running:
            await asyncio.sleep(after)
            replicas.kill(name)
            killed += 1
        await asyncio.sleep(0.2)
    return killed


@pytest.mark.long
def test_no_pod_is_lost_while_leaders_are_killed(tmp_path):
    async def story(connection, replicas):
        async with RestClient(connection) as client:
            direct = Direct(client)
            node = await direct.send("GET", "/api/v1/nodes/node-1")
            room = milli_value(node["status"]["allocatable"]["cpu"])
            killing = asyncio.create_task(kill_leaders(direct, replicas, 120, 5))
            for batch in range(20):
                await direct.create([pod(f"p{batch}-{at}", f"{room // 60}m") for at in range(50)])
                await asyncio.sleep(5)
            killed = await killing
            found = await direct.eventually(all_bound, 60)
            assert len(found) == 1_000
            assert all(sum_ <= room for sum_ in requested(found).values())
            return killed

    with cluster(tmp_path) as connection:
        replicas = Replicas(str(tmp_path / "kubeconfig"), tmp_path)
        try:
            assert asyncio.run(story(connection, replicas)) >= 8
        finally:
            replicas.stop()
