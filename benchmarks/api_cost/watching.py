"""Measures watches over HTTPS, with a hundred events per second: one watch, and a thousand."""

from __future__ import annotations

import asyncio
from time import perf_counter, process_time
from typing import Final

import uvloop

from api_cost.clients import ask_all, event_delays, watch
from api_cost.figure import Figure, Figures
from api_cost.manifest import PODS, posted_pod
from api_cost.process import Server

WATCHES: Final = 1_000
EVENTS_PER_S: Final = 100
SECONDS: Final = 8
WRITERS: Final = 64
BEHIND_S_MAX: Final = 1.0
DELAY_MS_MAX: Final = 2.0


def over_https(server: Server) -> Figures:
    """Measure the delay of events in one watch, and how far many watches lag behind.

    `server` has no pods at first.
    """
    yield uvloop.run(_delayed(server))
    yield uvloop.run(_backlog(server))


async def _delayed(server: Server) -> Figure:
    address, count = server.address, SECONDS * EVENTS_PER_S
    pods = [address.request("POST", PODS, posted_pod(at)) for at in range(count)]
    delays = sorted(await event_delays(address, f"{PODS}?watch=true", pods, EVENTS_PER_S))
    await ask_all(address, [address.request("DELETE", PODS)], 1)
    return Figure(
        what=f"from a write's answer to its event, {EVENTS_PER_S} writes/s, p99",
        value=delays[count * 99 // 100] * 1_000,
        unit="ms",
        target=DELAY_MS_MAX,
        note=f"median {delays[count // 2] * 1_000:.2g} ms",
    )


async def _backlog(server: Server) -> Figure:
    address, count = server.address, SECONDS * EVENTS_PER_S
    watches = await watch(address, f"{PODS}?watch=true", WATCHES)
    pods = [address.request("POST", PODS, posted_pod(at)) for at in range(count)]
    began, cpu, own = perf_counter(), server.cpu_s(), process_time()
    await ask_all(address, pods, WRITERS, EVENTS_PER_S)
    await asyncio.gather(*(one.wait_for(count) for one in watches))
    delivered_at = perf_counter()
    cpu, own = server.cpu_s() - cpu, process_time() - own
    for one in watches:
        one.close()
    return Figure(
        what=f"{WATCHES:,} watches, {EVENTS_PER_S} events/s: backlog after {SECONDS} s",
        value=delivered_at - began - SECONDS,
        unit="s",
        target=BEHIND_S_MAX,
        note=f"4 KB each; {cpu / (delivered_at - began):.0%} of a CPU; "
        f"the client's {own / (delivered_at - began):.0%}",
    )
