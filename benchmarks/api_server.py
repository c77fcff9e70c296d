"""What the API server costs: reading, writing durably, watching, and holding many pods.

    python benchmarks/api_server.py [--pods 150000]

CPU times are of this process; rates of durable writes depend on the disk. Results go to standard
output as JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from fairlead import __version__
from fairlead.apiserver.cold_storage import ColdStorage
from fairlead.apiserver.journal import Journal
from fairlead.apiserver.kind import POD
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.serving.complete import complete_server
from fairlead.apiserver.serving.server import ApiServer
from fairlead.apiserver.serving.watch import Watch
from fairlead.apiserver.store import Store
from fairlead.worlds.simulation.identity import SeededIds

Json = dict[str, Any]

NOW = 1_800_000_000_000_000_000
WRITERS = 64
PADDING = "x" * 2_600  # so that a pod has about 4 KB, as on a cluster


def pod(number: int) -> Json:
    """A pod that runs, of about 4 KB."""
    name = f"web-{number:06}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-4000-8000-{number:012x}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"example.com/notes": f"{PADDING}{number}"},
        },
        "spec": {
            "nodeName": f"node-{number % 5000}",
            "priority": 0,
            "containers": [
                {
                    "name": "c",
                    "image": "registry.example.com/web:1.2.3",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "env": [{"name": f"E{i}", "value": str(i)} for i in range(10)],
                }
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
        },
    }


def served(storage: ColdStorage) -> ApiServer:
    """A server over `storage`."""
    store = Store(SeededIds(1), storage=storage)
    return complete_server(store, clock=lambda: NOW, address="127.0.0.1:6443", version=__version__)


def asked(server: ApiServer, path: str, *query: tuple[str, str]) -> Response | Watch:
    """The answer to a GET."""
    return server.handle(Request("GET", path, query), NOW)


def cpu_s(act: Callable[[], object], times: int) -> float:
    """CPU seconds of one `act`, the best of three rounds."""
    rounds = []
    for _ in range(3):
        before = process_time()
        for _ in range(times):
            act()
        rounds.append((process_time() - before) / times)
    return min(rounds)


def reading() -> Iterator[Json]:
    """GET of one pod, LIST of 5,000, and what a write costs with 1,000 watches of it."""
    storage = ColdStorage()
    server = served(storage)
    for number in range(5_000):
        storage.put(POD, pod(number))
    path = "/api/v1/namespaces/team-7/pods/web-000007"
    yield {"what": "GET of a pod", "cpu_us": cpu_s(lambda: asked(server, path), 2_000) * 1e6}
    answer = asked(server, "/api/v1/pods")
    assert isinstance(answer, Response)
    megabytes = sum(map(len, answer.body)) / 1e6
    listing = cpu_s(lambda: asked(server, "/api/v1/pods"), 5) * 1e3
    yield {"what": "LIST of 5,000 pods", "megabytes": megabytes, "cpu_ms": listing}
    now = ("resourceVersion", str(storage.version))
    watches = [asked(server, "/api/v1/pods", ("watch", "true"), now) for _ in range(1_000)]
    before = process_time()
    for number in range(100):
        storage.put(POD, pod(number))
    spent = process_time() - before
    told = sum(len(watch.take()) for watch in watches if isinstance(watch, Watch))
    yield {"what": "100 events to 1,000 watches", "events": told, "cpu_ms": spent * 1e3}


def writing(directory: Path) -> Iterator[Json]:
    """Durable writes by 64 writers, each waiting for its own."""
    storage, journal = ColdStorage(), Journal(directory / "writes.db")
    journal.begin(storage)
    count = 20_000

    async def writer(first: int) -> None:
        for number in range(first, count, WRITERS):
            storage.put(POD, pod(number))
            await journal.settle()

    async def all_writers() -> None:
        await asyncio.gather(*(writer(first) for first in range(WRITERS)))

    wall, cpu = perf_counter(), process_time()
    asyncio.run(all_writers())
    wall, cpu = perf_counter() - wall, process_time() - cpu
    journal.close()
    yield {
        "what": "durable writes, 64 writers",
        "per_s": count / wall,
        "cpu_us": cpu / count * 1e6,
    }


def holding(directory: Path, pods: int) -> Iterator[Json]:
    """Memory of a storage with many pods, and how long it takes to be there again."""
    path = directory / "many.db"
    before = resident_mib()
    storage = ColdStorage()
    for number in range(pods):
        storage.put(POD, pod(number))
    yield {"what": f"{pods} pods held", "mib": resident_mib() - before}
    journal = Journal(path, synced=False)
    journal.begin(storage)
    journal.close()
    del storage
    wall, cpu = perf_counter(), process_time()
    journal, again = Journal(path), ColdStorage()
    journal.restore(again)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    journal.close()
    assert sum(1 for _ in again.unsorted(POD)) == pods
    yield {"what": f"{pods} pods recovered", "wall_s": wall, "cpu_s": cpu}


def resident_mib() -> float:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=150_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for part in (reading(), writing(Path(name)), holding(Path(name), wanted.pods)):
            for measured in part:
                print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main()
