"""Measures `fairlead run` over HTTPS: the CPU time for each pod that it binds.

    python benchmarks/cluster_run.py [--nodes 5000] [--pods 10000]

This process runs the scheduler. The API server is a `fairlead up` in another process, and a third
process creates pods of 2 KB. The figures are the user and system CPU time of this process for each
pod, until all pods are bound and all requests are answered, and the highest memory of this process
so far. There are three measurements: all pods wait when the scheduler starts; the pods arrive while
the scheduler runs, without Events; and the same with Events.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from msgspec.structs import replace

from fairlead.client.connection import ConnectionConfig
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import ApiRequest, RestClient
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.engine import Engine
from fairlead.worlds.cluster.resource import watched_resources
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions
from fairlead.worlds.gc_thresholds import collect_rarely

SCHEDULER = ("scheduler",)
PODS = "/api/v1/namespaces/default/pods"
WITHOUT = "scheduler,kubelet,node-lifecycle"
PADDING = {f"example.com/annotation-{number}": "x" * 100 for number in range(8)}
AT_ONCE = 64
SECONDS_MAX = 600


@contextmanager
def serving(nodes: int) -> Iterator[str]:
    """Run a cluster without a scheduler; yield the path of its kubeconfig."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "kubeconfig")
        options = ["--nodes", str(nodes), "--zones", "3", "--without", WITHOUT]
        command = [sys.executable, "-m", "fairlead.cli", "up", "--kubeconfig", path, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
            assert process.stdout is not None
            process.stdout.readline()
            try:
                yield path
            finally:
                process.terminate()


def connection(kubeconfig: str) -> ConnectionConfig:
    """Return the connection that the kubeconfig file `kubeconfig` describes."""
    return Kubeconfig((kubeconfig,)).connection("")


async def create(kubeconfig: str, name: str, pods: int) -> None:
    """Create `pods` pods of 2 KB, whose names begin with `name`."""

    async def one(number: int) -> None:
        requests = {"cpu": "10m", "memory": "20Mi"}
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}{number}", "annotations": PADDING},
            "spec": {"containers": [container]},
        }
        answer = await client.exchange(ApiRequest("POST", PODS, json.dumps(body).encode()), 60)
        assert answer.is_success, answer.message

    async with RestClient(connection(kubeconfig)) as client:
        for start in range(0, pods, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, pods))
            await asyncio.gather(*map(one, numbers))


def loading(kubeconfig: str, name: str, pods: int) -> subprocess.Popen[bytes]:
    """Start a process that creates pods as `create` does."""
    command = [sys.executable, __file__, "--load", kubeconfig, name, str(pods)]
    return subprocess.Popen(command)  # noqa: S603 - this script


async def measure(kubeconfig: str, name: str, pods: int, *, burst: bool, events: bool) -> None:
    """Run the scheduler until it has bound `pods` pods, and print a line with the cost.

    With `burst`, the pods exist before the scheduler starts. With `events`, the scheduler creates
    Events.
    """
    if burst:
        loading(kubeconfig, name, pods).wait()
    started: list[float] = []
    bound = 0

    class Counting(SilentReporter):
        def report(self, record: object) -> None:
            nonlocal bound
            bound += type(record).__name__ == "PodPlaced"

    def build(now: Instant) -> Engine:
        started.append(time.process_time())
        return build_running_engine(replace(EngineConfig(), start=now), Counting(), SCHEDULER)

    options = RunnerOptions(
        config=connection(kubeconfig),
        resources=watched_resources(SCHEDULER),
        build=build,
        limits=RequestLimits(qps=0),
        host="benchmark" if events else "",
    )
    runner = ClusterRunner(options)
    running = asyncio.create_task(runner.run())
    process = None
    if not burst:
        while not runner.is_settled:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.1)
        started[:] = [time.process_time()]
        process = loading(kubeconfig, name, pods)
    end = time.perf_counter() + SECONDS_MAX
    while bound < pods or not runner.is_settled:
        assert time.perf_counter() < end, f"only {bound} of {pods} pods were bound"
        await asyncio.sleep(0.2)
    cost = (time.process_time() - started[0]) / pods * 1e6
    runner.stop()
    await running
    if process is not None:
        process.wait()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    how = "waiting at the start" if burst else "arriving"
    written = "with events" if events else "without events"
    dropped = f", {runner.events_dropped:,} events dropped" if runner.events_dropped else ""
    print(f"{pods:,} pods {how}, {written}: {cost:.0f} µs a pod, {memory:.0f} MiB{dropped}")


def main() -> None:
    """Make all measurements; with --load, only create pods for a measurement."""
    if sys.argv[1:2] == ["--load"]:
        uvloop.run(create(sys.argv[2], sys.argv[3], int(sys.argv[4])))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=10_000)
    given = parser.parse_args()
    collect_rarely()
    with serving(given.nodes) as kubeconfig:
        rows = (("burst", True, False), ("plain", False, False), ("events", False, True))
        for name, burst, events in rows:
            work = measure(kubeconfig, name, given.pods, burst=burst, events=events)
            uvloop.run(work)


if __name__ == "__main__":
    main()
