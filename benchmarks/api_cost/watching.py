"""What watches cost: a thousand of them, over HTTPS, told of a hundred events a second."""

from __future__ import annotations

import asyncio
from time import perf_counter, process_time
from typing import Final

import uvloop

from api_cost.clients import ask_all, watch
from api_cost.figure import Figure, Figures
from api_cost.manifest import PODS, posted_pod
from api_cost.process import Server

WATCHES: Final = 1_000
EVENTS_PER_S: Final = 100
SECONDS: Final = 8
WRITERS: Final = 64
BEHIND_S_MAX: Final = 1.0


def over_https(server: Server) -> Figures:
    """How far behind the last watch is when the last event is due; no pods are there yet."""
    yield uvloop.run(_told(server))


async def _told(server: Server) -> Figure:
    address, count = server.address, SECONDS * EVENTS_PER_S
    watches = await watch(address, f"{PODS}?watch=true", WATCHES)
    pods = [address.request("POST", PODS, posted_pod(at)) for at in range(count)]
    began, cpu, own = perf_counter(), server.cpu_s(), process_time()
    await ask_all(address, pods, WRITERS, EVENTS_PER_S)
    await asyncio.gather(*(one.told(count) for one in watches))
    told = perf_counter()
    cpu, own = server.cpu_s() - cpu, process_time() - own
    for one in watches:
        one.close()
    return Figure(
        what=f"{WATCHES:,} watches told of {EVENTS_PER_S} events/s: behind after {SECONDS} s",
        value=told - began - SECONDS,
        unit="s",
        target=BEHIND_S_MAX,
        besides=f"4 KB each; {cpu / (told - began):.0%} of a CPU; "
        f"the client's {own / (told - began):.0%}",
    )
