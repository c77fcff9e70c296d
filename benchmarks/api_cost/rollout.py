"""Measures the rollout of a large Deployment in `fairlead up`, and its effect on other clients."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter
from typing import Final

import uvloop

from api_cost.clients import Address, answer_delays, ask_all, watch
from api_cost.figure import Figure, Figures
from api_cost.manifest import NAMESPACE, RUNNING
from api_cost.process import Server

NODES: Final = 1_000
REPLICAS: Final = 5_000
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
GET_EVERY_S: Final = 0.02
SETTLED_S: Final = 3  # a new cluster is idle after this time


def of_deployment(server: Server, stored: str) -> Figures:
    """Measure the server's CPU time, and the delays of answers, until all pods run.

    `stored` is the text in the table that says where the server stores objects.
    """
    first_s, last_s, cpu_s, delays = uvloop.run(_rolled_out(server))
    what = f"{REPLICAS:,} replicas on {NODES:,} nodes, {stored}"
    yield Figure(
        what=f"{what}, from creation to the last pod Running",
        value=cpu_s,
        unit="s CPU",
        target=6,
        note=f"{cpu_s / REPLICAS * 1e6:.0f} µs each; {last_s:.1f} s",
    )
    # Simulated kubelets start a pod half a second after its binding.
    yield Figure(what=f"{what}: first pod Running", value=first_s, unit="s", target=1)
    delays.sort()
    yield Figure(
        what=f"GET of a namespace meanwhile, {stored}, p99",
        value=delays[len(delays) * 99 // 100] * 1e3,
        unit="ms",
        target=50,
        note=f"median {delays[len(delays) // 2] * 1e3:.2g} ms",
    )


async def _rolled_out(server: Server) -> tuple[float, float, float, list[float]]:
    """Return (time to the first running pod, time to the last, CPU time, delays of GETs), in s."""
    address = server.address
    await asyncio.sleep(SETTLED_S)
    (running,) = await watch(address, RUNNING, 1)
    is_over = asyncio.Event()
    get = address.request("GET", f"/api/v1/namespaces/{NAMESPACE}")
    asking = asyncio.create_task(answer_delays(address, get, GET_EVERY_S, is_over))
    began, cpu_s = perf_counter(), server.cpu_s()
    await _create(address)
    await running.wait_for(REPLICAS)
    cpu_s = server.cpu_s() - cpu_s
    is_over.set()
    delays = await asking
    running.close()
    times = running.arrived_at
    return times[0] - began, times[-1] - began, cpu_s, delays


async def _create(address: Address) -> None:
    labels = {"app": "web"}
    container = {
        "name": "c",
        "image": "registry.example.com/web:1.2.3",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    body = json.dumps(manifest).encode()
    assert await ask_all(address, [address.request("POST", DEPLOYMENTS, body)], 1) == {b"201": 1}
