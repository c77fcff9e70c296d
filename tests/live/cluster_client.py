"""Pods for the tests of `fairlead run`, and requests about them to the API server."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict

from fairlead.api.quantity import milli_value
from fairlead.client.rest_client import ApiRequest

PODS_PATH = "/api/v1/namespaces/default/pods"


def pod(name, cpu, priority_class=""):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Direct:
    """Connects to the server directly, without faults."""

    def __init__(self, client):
        self.client = client

    async def send(self, method, path, body=None, content_type="application/json"):
        content = None if body is None else json.dumps(body).encode()
        answer = await self.client.exchange(ApiRequest(method, path, content, content_type), 60)
        assert answer.is_success, answer
        return json.loads(answer.body)

    async def create_namespace(self, name):
        """Create a namespace; wait for its default ServiceAccount, which pods need."""
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = ApiRequest("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")
        async with asyncio.timeout(60):
            while True:
                if (await self.client.exchange(account, 60)).is_success:
                    break
                await asyncio.sleep(0.1)

    async def create(self, pods):
        for start in range(0, len(pods), 50):
            await asyncio.gather(
                *(self.send("POST", PODS_PATH, one) for one in pods[start : start + 50])
            )

    async def pods(self):
        return (await self.send("GET", PODS_PATH))["items"]

    async def eventually(self, condition, seconds):
        """Wait until `condition` holds for the pods; return the pods."""
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


def requested(pods):
    """Return the requested milli-CPUs by node."""
    sums = defaultdict(int)
    for one in pods:
        for container in one["spec"]["containers"]:
            cpu = container["resources"]["requests"]["cpu"]
            sums[node_of(one)] += milli_value(cpu)
    return sums
