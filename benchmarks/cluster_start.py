"""Measures the start of `fairlead run` in a large cluster: memory, and time to the first binding.

    python benchmarks/cluster_start.py [--nodes 5000] [--pods 150000] [--pages]

This process is the API server. It serves nodes and pods of 2.5 KB as streaming lists, or with
--pages in pages. All pods are bound except five. `fairlead run` has its own process, which this
process kills at the first binding. The figures are the time from the start of `fairlead run` to the
first binding, the time from the end of the list of pods to the first binding, and the CPU time and
peak memory of `fairlead run`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import uvloop
from aiohttp import web

Json = dict[str, Any]
PENDING: Final = 5
LINES_AT_ONCE: Final = 200
VERSION: Final = "900000"
SECONDS_MAX: Final = 600
SINCE: Final = "2026-11-20T10:00:00Z"
END: Final = {
    "type": "BOOKMARK",
    "object": {
        "metadata": {
            "resourceVersion": VERSION,
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
    },
}


def node(number: int) -> Json:
    """Return a node with usual labels, conditions and images."""
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    images = [
        {"names": [f"registry.example.com/app-{one}:v1"], "sizeBytes": 100_000_000}
        for one in range(50)
    ]
    name = f"node-{number}"
    zone = f"zone-{number % 3}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": str(number + 1),
            "labels": labels,
        },
        "spec": {},
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": images,
        },
    }


def pod(number: int, nodes: int) -> Json:
    """Return a pod of a Deployment, as an API server stores it; the first PENDING are pending."""
    app = f"app-{number // 30}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d8f7c9b4"}
    is_bound = number >= PENDING
    return {
        "metadata": {
            "name": f"{app}-5d8f7c9b4-{number:05x}",
            "generateName": f"{app}-5d8f7c9b4-",
            "namespace": f"team-{number % 50}",
            "uid": f"{number:08x}-1c2d-4e5f-8a9b-0123456789ab",
            "resourceVersion": str(10_000 + number),
            "creationTimestamp": SINCE,
            "labels": {"app": app, "pod-template-hash": "5d8f7c9b4"},
            "annotations": {f"example.com/annotation-{one}": "x" * 100 for one in range(6)},
            "ownerReferences": [{**owner, "uid": f"{number // 30:08x}", "controller": True}],
        },
        "spec": pod_spec(app) | ({"nodeName": f"node-{number % nodes}"} if is_bound else {}),
        "status": pod_status(number) if is_bound else {"phase": "Pending"},
    }


def pod_spec(app: str) -> Json:
    """Return the spec of a pod with a token, as admission completes it."""
    token = "kube-api-access-x"  # noqa: S105 - the name of a volume
    container = {
        "name": "c",
        "image": f"registry.example.com/{app}:v1",
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "env": [{"name": "A", "value": "b" * 50}],
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets"}],
    }
    problems = ("not-ready", "unreachable")
    return {
        "volumes": [{"name": token, "projected": {"sources": []}}],
        "containers": [container],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{one}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for one in problems
        ],
        "priority": 0,
    }


def pod_status(number: int) -> Json:
    """Return the status of a running pod."""
    types = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "startTime": SINCE,
        "conditions": [
            {"type": one, "status": "True", "lastTransitionTime": SINCE} for one in types
        ],
        "containerStatuses": [
            {
                "name": "c",
                "ready": True,
                "restartCount": 0,
                "image": "i",
                "imageID": "sha256:" + "a" * 64,
                "containerID": f"containerd://{number:064x}",
                "state": {"running": {"startedAt": SINCE}},
            }
        ],
        "qosClass": "Burstable",
    }


class Server:
    """Serves lists and watches of nodes and pods; lists of other kinds are empty.

    `bound` is set at the first binding. `listed` is the time (of `perf_counter`) at which the list
    of pods ended.
    """

    def __init__(self, nodes: int, pods: int, *, streams: bool) -> None:
        """Serve `nodes` nodes and `pods` pods, as streaming lists or in pages."""
        self._streams = streams
        self._objects: dict[str, tuple[int, Callable[[int], Json]]] = {
            "/api/v1/nodes": (nodes, node),
            "/api/v1/pods": (pods, lambda number: pod(number, nodes)),
        }
        self.listed = 0.0
        self.bound = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        if request.method != "GET":
            if request.path.endswith("/binding"):
                self.bound.set()
            await request.read()
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if "watch" not in request.query:
            return self._page(request)
        if "sendInitialEvents" in request.query and not self._streams:
            return web.Response(status=422)
        return await self._watch(request)

    def _page(self, request: web.Request) -> web.Response:
        number, make = self._objects.get(request.path, (0, node))
        start = int(request.query.get("continue", "0"))
        end = min(number, start + int(request.query.get("limit", "500")))
        more = {"continue": str(end)} if end < number else {}
        if not more:
            self._note_end(request)
        items = [make(one) for one in range(start, end)]
        metadata = {"resourceVersion": VERSION, **more}
        return web.json_response({"items": items, "metadata": metadata})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if "sendInitialEvents" in request.query:
            number, make = self._objects.get(request.path, (0, node))
            kind = {"kind": "Pod", "apiVersion": "v1"} if request.path.endswith("/pods") else {}
            for begin in range(0, number, LINES_AT_ONCE):
                some = range(begin, min(number, begin + LINES_AT_ONCE))
                await response.write(
                    lines({"type": "ADDED", "object": kind | make(one)} for one in some)
                )
            await response.write(lines([END]))
            self._note_end(request)
        await self.bound.wait()
        return response

    def _note_end(self, request: web.Request) -> None:
        if request.path == "/api/v1/pods":
            self.listed = time.perf_counter()


def lines(events: Iterable[Json]) -> bytes:
    """Return events as the lines of a watch."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start `fairlead run` against the server on `port`."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    options = ["--kubeconfig", str(path), "--no-leader-election", "--no-events", "--listen", "none"]
    command = [sys.executable, "-m", "fairlead.cli", "run", *options]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - ours


def end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Kill `process`; return its CPU time and peak memory."""
    process.kill()
    _, process.returncode, used = os.wait4(process.pid, 0)
    return used


async def measure(nodes: int, pods: int, *, streams: bool) -> None:
    """Start `fairlead run`, and print a line with the cost of its start."""
    server = Server(nodes, pods, streams=streams)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = start(Path(folder), runner.addresses[0][1])
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await server.bound.wait()
            bound = time.perf_counter()
        finally:
            used = end(process)
    await runner.cleanup()
    how = "streamed" if streams else "in pages"
    print(
        f"{nodes:,} nodes and {pods:,} pods {how}: first binding after {bound - began:.1f} s, "
        f"{bound - server.listed:.1f} s after the list of pods; "
        f"{used.ru_utime + used.ru_stime:.1f} s of CPU, {used.ru_maxrss / 1024 / 1024:.2f} GiB"
    )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--pages", action="store_true")
    given = parser.parse_args()
    uvloop.run(measure(given.nodes, given.pods, streams=not given.pages))


if __name__ == "__main__":
    main()
