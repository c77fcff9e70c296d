"""Measures durable writes: into the store, over HTTPS, and with all controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

import uvloop

from api_cost.clients import ask_all, watch
from api_cost.figure import Figure, Figures
from api_cost.manifest import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    RUNNING,
    STRATEGIC,
    binding,
    config_map,
    label_patch,
    posted_pod,
    running_pod,
    status_patch,
)
from api_cost.process import Server
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog

WRITERS: Final = 64
STORED: Final = 30_000
POSTED: Final = 8_000
POSTED_BY_FEW: Final = 4_000
FEW_WRITERS: Final = 8
POSTED_TO_CONTROLLERS: Final = 3_000

# The parts of a request: method, path, body, media type of the body.
RequestParts = tuple[str, str, bytes, str]


def into_store(directory: Path) -> Figures:
    """Measure writes into a storage with a write-ahead log; each writer waits for its write."""
    storage, journal = CompactStorage(), WriteAheadLog(directory / "writes.db")
    journal.begin(storage)
    pods = [running_pod(number) for number in range(STORED)]

    async def writer(first: int) -> None:
        for number in range(first, STORED, WRITERS):
            storage.put(POD, pods[number])
            await journal.wait_until_durable()

    async def all_writers() -> None:
        await asyncio.gather(*map(writer, range(WRITERS)))

    wall, cpu = perf_counter(), process_time()
    uvloop.run(all_writers())
    wall, cpu = perf_counter() - wall, process_time() - cpu
    journal.close()
    yield Figure(
        what=f"durable writes into the store, {WRITERS} writers",
        value=STORED / wall,
        unit="/s",
        target=5_000,
        is_least=True,
        note=f"{cpu / STORED * 1e6:.0f} µs CPU each, the journal's thread included",
    )


def _of(at: int, method: str, part: str, body: bytes, media_type: str = STRATEGIC) -> RequestParts:
    return method, f"{PODS}/web-{at}{part}", body, media_type


def _put(at: int) -> RequestParts:
    return "PUT", f"{CONFIG_MAPS}/settings-{at}", config_map(at, "c"), ""


# The measured writes: name, target in requests per second, function that returns the request for a
# number.
_WRITES: Final[tuple[tuple[str, float | None, Callable[[int], RequestParts]], ...]] = (
    ("POST of a pod", 1_500, lambda at: ("POST", PODS, posted_pod(at), "")),
    ("POST of a binding", None, lambda at: _of(at, "POST", "/binding", binding(at), "")),
    ("PATCH of a pod's status", None, lambda at: _of(at, "PATCH", "/status", status_patch(at))),
    ("PATCH of a pod's labels", None, lambda at: _of(at, "PATCH", "", label_patch(at), MERGE)),
    ("POST of a ConfigMap", None, lambda at: ("POST", CONFIG_MAPS, config_map(at), "")),
    ("PUT of a ConfigMap", None, _put),
)


def over_https(server: Server) -> Figures:
    """Measure each kind of write to an API server without controllers."""
    for what, target, request_of in _WRITES:
        yield _written(server, f"{what} over HTTPS, durable", request_of, POSTED, target)


def by_few_clients(server: Server) -> Figures:
    """Measure the server's CPU time for new pods from a few clients, without controllers."""
    numbers = range(POSTED, POSTED + POSTED_BY_FEW)
    requests = [server.address.request("POST", PODS, posted_pod(number)) for number in numbers]
    before = server.cpu_s()
    statuses = uvloop.run(ask_all(server.address, requests, FEW_WRITERS))
    spent = (server.cpu_s() - before) / POSTED_BY_FEW
    assert statuses == {b"201": POSTED_BY_FEW}, statuses
    what = f"POST of a pod over HTTPS, {FEW_WRITERS} clients, durable"
    yield Figure(what=what, value=spent * 1e6, unit="µs CPU", target=400)


def with_controllers(server: Server) -> Figures:
    """Measure the server's CPU time for new pods from their creation until they run."""
    cpu_s, answered_s, running_s = uvloop.run(_run(server))
    yield Figure(
        what="POST of a pod to `fairlead up`, until it runs",
        value=cpu_s / POSTED_TO_CONTROLLERS * 1e6,
        unit="µs CPU",
        note=f"all answered in {answered_s:.1f} s, running in {running_s:.1f} s",
    )


async def _run(server: Server) -> tuple[float, float, float]:
    """Create pods; return (CPU time, time until all are created, time until all run), in s."""
    address, posted = server.address, range(POSTED_TO_CONTROLLERS)
    requests = [address.request("POST", PODS, posted_pod(number)) for number in posted]
    (running,) = await watch(address, RUNNING, 1)
    began, before = perf_counter(), server.cpu_s()
    statuses = await ask_all(address, requests, WRITERS)
    answered_s = perf_counter() - began
    assert statuses == {b"201": POSTED_TO_CONTROLLERS}, statuses
    await running.wait_for(POSTED_TO_CONTROLLERS)
    cpu_s, running_s = server.cpu_s() - before, perf_counter() - began
    running.close()
    return cpu_s, answered_s, running_s


def _written(
    server: Server,
    what: str,
    request_of: Callable[[int], RequestParts],
    count: int,
    target: float | None,
) -> Figure:
    requests = [server.address.request(*request_of(number)) for number in range(count)]
    wall, before, own = perf_counter(), server.cpu_s(), process_time()
    statuses = uvloop.run(ask_all(server.address, requests, WRITERS))
    wall, cpu, own = perf_counter() - wall, server.cpu_s() - before, process_time() - own
    assert set(statuses) <= {b"200", b"201"}, statuses
    return Figure(
        what=what,
        value=count / wall,
        unit="/s",
        target=target,
        is_least=True,
        note=f"{cpu / count * 1e6:.0f} µs CPU each; the client's {own / count * 1e6:.0f}",
    )
