"""What `fairlead up` costs before the first request."""

from __future__ import annotations

import asyncio
from pathlib import Path

from api_cost.figure import Figure, Figures
from api_cost.process import UP, serving

NODES = 20
IDLE_S = 5


def up(directory: Path) -> Figures:
    """Measure the time until it is ready, and its memory then."""
    with serving((*UP, "--nodes", str(NODES)), directory) as server:
        what = f"`fairlead up --nodes {NODES}`"
        used = f"{server.cpu_s():.2f} s CPU"
        yield Figure(what=f"{what}: ready", value=server.ready_s, unit="s", target=2, note=used)
        asyncio.run(asyncio.sleep(IDLE_S))
        held = server.resident_mib()
        yield Figure(what=f"{what}: memory, idle", value=held, unit="MiB", target=120)
