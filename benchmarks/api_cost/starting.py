"""Measures `fairlead up` without requests: its start, and its CPU time while it is idle."""

from __future__ import annotations

import asyncio
from pathlib import Path

from api_cost.figure import Figure, Figures
from api_cost.process import UP, Server, serving

NODES = 20
IDLE_S = 5
MANY_NODES = 5_000
MEASURED_S = 30
STILL_STARTING = 0.02  # The share of a core above which a server is not idle yet.


def up(directory: Path) -> Figures:
    """Measure the time until a small cluster is ready, and the server's memory 5 s later."""
    with serving((*UP, "--nodes", str(NODES)), directory) as server:
        what = f"`fairlead up --nodes {NODES}`"
        used = f"{server.cpu_s():.2f} s CPU"
        yield Figure(what=f"{what}: ready", value=server.ready_s, unit="s", target=2, note=used)
        asyncio.run(asyncio.sleep(IDLE_S))
        held = server.resident_mib()
        yield Figure(what=f"{what}: memory, idle", value=held, unit="MiB", target=120)


def idle(directory: Path) -> Figures:
    """Measure the CPU time of an idle cluster with many nodes."""
    with serving((*UP, "--nodes", str(MANY_NODES)), directory) as server:
        while _busy_share(server, 1) > STILL_STARTING:
            pass
        share = _busy_share(server, MEASURED_S)
        what = f"`fairlead up --nodes {MANY_NODES}`, idle"
        yield Figure(what=what, value=share * 100, unit="% of a core", target=0.3)


def _busy_share(server: Server, seconds: float) -> float:
    """Return the share of a core that the server uses during the next `seconds`."""
    before = server.cpu_s()
    asyncio.run(asyncio.sleep(seconds))
    return (server.cpu_s() - before) / seconds
