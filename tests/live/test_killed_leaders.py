"""Two replicas of `fairlead run`, of which each new leader is killed: no pod is lost.

The cluster is a `fairlead up` in another process, or that of FAIRLEAD_TEST_KUBECONFIG, in which no
scheduler may run. The test creates nodes, pods and the Lease, and removes them at its end.
"""

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

import pytest
from tests.live.cluster_client import Direct, pod, requested
from tests.live.event_loop import run_until_closed
from tests.up_process import up

from fairlead.client.error import RequestError
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.rest_client import ApiRequest, RestClient

NAME = "fairlead-killed-leaders"
PODS = f"/api/v1/namespaces/{NAME}/pods"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}"
NODES, ROOM_OF_NODE, BATCHES, BATCH = 200, 60, 20, 500  # the pods fill five sixths of the nodes
KILL_SECONDS, LEAD_SECONDS, REST_SECONDS = 120, 5, 300
KILLS_MIN, KILL_SECONDS_MAX = 8, 900
MERGE = "application/merge-patch+json"
WITHOUT = "scheduler,kubelet,node-lifecycle"
CONFIG = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaseDuration: 3s
  renewDeadline: 2s
  retryPeriod: 500ms
  resourceNamespace: {NAME}
  resourceName: {NAME}
clientConnection:
  qps: -1
"""


@contextmanager
def kubeconfig(folder):
    """The kubeconfig of a cluster without a scheduler."""
    given = os.environ.get("FAIRLEAD_TEST_KUBECONFIG")
    if given:
        yield given
        return
    path = str(folder / "kubeconfig")
    with up("--nodes", "0", "--without", WITHOUT, "--kubeconfig", path, paused=False):
        yield path


class Replicas:
    """Two `fairlead run` processes; a killed one is replaced by a new one."""

    def __init__(self, kubeconfig, folder):
        self.config = folder / "scheduler.yaml"
        self.config.write_text(CONFIG)
        self.kubeconfig = kubeconfig
        self.running = {}
        self.started = 0

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

    def start_ended(self):
        """Replace the replicas that have ended, as the kubelet does.

        A leader ends if a slow machine keeps it from renewing the Lease in time.
        """
        for name in [name for name, one in self.running.items() if one.poll() is not None]:
            del self.running[name]
            self.start()

    def stop(self):
        for name in list(self.running):
            self.kill(name)


class Bindings:
    """Records the nodes that a watch has shown for each pod, by uid, in order."""

    def __init__(self, client):
        self.client = client
        self.nodes = defaultdict(list)
        self.deleted = set()

    async def watch(self, version):
        """Record the events after the `version` of a list without pods."""
        while True:
            query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "60"}
            try:
                async for lines in self.client.stream(PODS, query, 70):
                    for line in lines:
                        version = self.observe(json.loads(line))
            except RequestError:
                await asyncio.sleep(0.2)

    def observe(self, event):
        """Record an event; return its version."""
        meta, spec = event["object"]["metadata"], event["object"]["spec"]
        nodes = self.nodes[meta["uid"]]
        if event["type"] == "DELETED":
            self.deleted.add(meta["uid"])
        elif spec.get("nodeName") and spec["nodeName"] not in nodes:
            nodes.append(spec["nodeName"])
        return meta["resourceVersion"]

    def count(self):
        return sum(map(bool, self.nodes.values()))


class Stage:
    """The namespace, the nodes and the pods of the test."""

    def __init__(self, direct):
        self.direct = direct

    async def set_up(self):
        await self.direct.create_namespace(NAME)
        for start in range(0, NODES, 50):
            await asyncio.gather(*map(self.add_node, range(start, start + 50)))

    async def add_node(self, number):
        name = f"{NAME}-{number}"
        room = {"cpu": str(ROOM_OF_NODE), "memory": "1Ti", "pods": "1000"}
        await self.direct.send("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        ready = {"type": "Ready", "status": "True"}
        status = {"status": {"allocatable": room, "capacity": room, "conditions": [ready]}}
        await self.direct.send("PATCH", f"/api/v1/nodes/{name}/status", status, MERGE)
        # without the taint of a node that is not ready yet
        await self.direct.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE)

    async def add_pods(self, names):
        for start in range(0, len(names), 50):
            made = (pod(name, "1") for name in names[start : start + 50])
            await asyncio.gather(*(self.direct.send("POST", PODS, one) for one in made))

    async def pods(self):
        return json.loads(await self.direct.client.get(PODS))["items"]

    async def tear_down(self):
        await self.direct.send("DELETE", f"/api/v1/namespaces/{NAME}")
        for number in range(NODES):
            await self.direct.send("DELETE", f"/api/v1/nodes/{NAME}-{number}")


async def kill_leaders(client, replicas):
    """Kill each new leader and replace it, for KILL_SECONDS; return how many were killed.

    On a slow machine, continue until KILLS_MIN leaders were killed.
    """
    now = time.monotonic  # noqa: TID251 - the processes work in real time
    end, killed = now() + KILL_SECONDS, 0
    while now() < end or killed < KILLS_MIN:
        replicas.start_ended()
        answer = await client.exchange(ApiRequest("GET", LEASE), 60)
        spec = json.loads(answer.body)["spec"] if answer.is_success else {}
        name = (spec.get("holderIdentity") or "").partition("_")[0]
        if name in replicas.running:
            await asyncio.sleep(LEAD_SECONDS)
            replicas.kill(name)
            replicas.start()
            killed += 1
        await asyncio.sleep(0.1)
    return killed


async def story(connection, replicas):
    async with RestClient(connection) as client, RestClient(connection) as watches:
        direct, bindings = Direct(client), Bindings(watches)
        stage = Stage(direct)
        await stage.set_up()
        version = json.loads(await client.get(PODS))["metadata"]["resourceVersion"]
        watching = asyncio.create_task(bindings.watch(version))
        try:
            replicas.start()
            replicas.start()
            killing = asyncio.create_task(kill_leaders(client, replicas))
            for batch in range(BATCHES - 1):
                await stage.add_pods([f"p{batch}-{at}" for at in range(BATCH)])
                await asyncio.sleep(KILL_SECONDS / BATCHES / 2)
            killed = await asyncio.wait_for(killing, KILL_SECONDS_MAX)
            print(f"{killed} leaders killed, {bindings.count()} pods bound until then")
            replicas.kill(next(iter(replicas.running)))  # one replica is left
            await stage.add_pods([f"last-{at}" for at in range(BATCH)])
            for _ in range(REST_SECONDS):
                if bindings.count() == BATCHES * BATCH:
                    break
                replicas.start_ended()
                await asyncio.sleep(1)
            await asyncio.sleep(2)
            return killed, bindings, await stage.pods()
        finally:
            watching.cancel()
            replicas.stop()
            await stage.tear_down()


@pytest.mark.long
def test_no_pod_is_lost_while_leaders_are_killed(tmp_path):
    """One replica remains in the end: every pod is bound once, and no node is over-committed."""
    with kubeconfig(tmp_path) as path:
        connection = Kubeconfig((path,)).connection("")
        killed, bindings, pods = run_until_closed(story(connection, Replicas(path, tmp_path)))
    assert killed >= KILLS_MIN
    assert len(pods) == BATCHES * BATCH
    assert not bindings.deleted
    for one in pods:
        assert bindings.nodes[one["metadata"]["uid"]] == [one["spec"]["nodeName"]]
    assert max(requested(pods).values()) <= 1_000 * ROOM_OF_NODE
