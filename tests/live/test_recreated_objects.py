"""Objects that are deleted and created again with the same name during scheduling."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.live.cluster_client import PODS_PATH, Direct, all_bound, node_of, pod, requested
from tests.live.event_loop import run_until_closed
from tests.live.fault_proxy import FaultProxy
from tests.live.test_faults import cluster, runner_of

from fairlead.client.rest_client import RestClient

NODES, PODS = 4, 12


class Recreator(FaultProxy):
    """A proxy that calls `recreate` with each pod before the pod's first binding."""

    def __init__(self, connection, recreate):
        super().__init__(connection, 1, share=0)
        self.recreate = recreate
        self.seen = set()
        self.refused = Counter()

    async def handle(self, request):
        if not request.path.endswith("/binding") or request.path in self.seen:
            return await super().handle(request)
        self.seen.add(request.path)
        await self.recreate(request.path.split("/")[-2], (await request.json())["target"]["name"])
        response = await super().handle(request)
        self.refused[response.status] += 1
        return response


def scheduled(connection, recreate_with, check):
    """Run a scheduler behind a Recreator until all pods are bound; then call `check`."""

    async def run():
        async with RestClient(connection) as client:
            direct = Direct(client)

            async def recreate(name, node):
                await recreate_with(direct, name, node)

            proxy = Recreator(connection, recreate)
            runner = runner_of(await proxy.start())
            running = asyncio.create_task(runner.run())
            try:
                for at in range(PODS):
                    await direct.create([pod(f"p{at}", "100m")])
                    found = await direct.eventually(all_bound, 60)
                check(proxy, found)
            finally:
                runner.stop()
                problem = await running
                await proxy.stop()
        assert problem == ""

    run_until_closed(run())


@pytest.fixture
def connection(tmp_path):
    with cluster(tmp_path, nodes=NODES) as found:
        yield found


def test_a_recreated_pod_with_the_same_name_gets_its_own_decision(connection):
    """The replacement fits another node only; the binding of the old pod must not bind it."""

    async def recreate(direct, name, node):
        await direct.send("DELETE", f"{PODS_PATH}/{name}", {"gracePeriodSeconds": 0})
        other = pod(name, "200m")
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [node]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        other["spec"]["affinity"] = {"nodeAffinity": required}
        await direct.send("POST", PODS_PATH, other)
        avoided[name] = node

    def check(proxy, found):
        assert proxy.refused == {409: PODS}
        assert all(node_of(one) != avoided[one["metadata"]["name"]] for one in found)

    avoided = {}
    scheduled(connection, recreate, check)


def test_a_recreated_node_with_the_same_name_has_its_own_allocatable(connection):
    """The replacements have room for three pods each, and are full in the end."""
    recreated = set()

    async def recreate(direct, _name, node):
        if node in recreated:
            return
        recreated.add(node)
        path = f"/api/v1/nodes/{node}"
        known = await direct.send("GET", path)
        await direct.send("DELETE", path, {})
        labels = known["metadata"]["labels"]
        manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        manifest["metadata"]["labels"] = labels
        room = {**known["status"]["allocatable"], "cpu": "300m"}
        manifest["status"] = {**known["status"], "allocatable": room, "capacity": room}
        await direct.send("POST", "/api/v1/nodes", manifest)

    def check(_proxy, found):
        assert requested(found) == {f"node-{at}": 300 for at in range(1, NODES + 1)}

    scheduled(connection, recreate, check)
