"""What `fairlead up` costs without requests: its start, and while it is idle."""

from __future__ import annotations

import asyncio
from pathlib import Path

from api_cost.figure import Figure, Figures
from api_cost.process import UP, serving

NODES = 20
IDLE_S = 5
MANY_NODES = 5_000
MEASURED_S = 30


def up(directory: Path) -> Figures:
    """Measure the time until it is ready, and its memory then."""
    with serving((*UP, "--nodes", str(NODES)), directory) as server:
        what = f"`fairlead up --nodes {NODES}`"
        used = f"{server.cpu_s():.2f} s CPU"
        yield Figure(what=f"{what}: ready", value=server.ready_s, unit="s", target=2, note=used)
        asyncio.run(asyncio.sleep(IDLE_S))
        held = server.resident_mib()
        yield Figure(what=f"{what}: memory, idle", value=held, unit="MiB", target=120)


def idle(directory: Path) -> Figures:
    """Measure how busy it is with many nodes while nothing happens."""
    with serving((*UP, "--nodes", str(MANY_NODES)), directory) as server:
        asyncio.run(asyncio.sleep(2 * IDLE_S))
        before = server.cpu_s()
        asyncio.run(asyncio.sleep(MEASURED_S))
        share = (server.cpu_s() - before) / MEASURED_S
        what = f"`fairlead up --nodes {MANY_NODES}`, idle"
        yield Figure(what=what, value=share * 100, unit="% of a core", target=0.3)
