"""Measures `fairlead up` with clients that do not read answers or do not finish requests.

    python benchmarks/memory_curve.py > benchmarks/releases/0.1.0-memory-curve.csv

The clients open 300 watches of 16 MB of objects and do not read the events, and send 300 bodies of
3 MB except for the last 100 KB. Then all clients leave. The tool prints lines of CSV with the
server's memory above its memory when idle: a line for every 20 clients that connect, and then about
five lines per second. The last line on standard error is the maximum. The exit status is 1 if the
maximum is 200 MB or more.
"""

from __future__ import annotations

import asyncio
import csv
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Final

from api_cost.clients import Silent, ask_all
from api_cost.process import UP, Server, serving
from api_cost.unread import CLIENTS, CONFIG_MAPS, HALF_SENT, WATCH, objects

MB_MAX: Final = 200
SAMPLE_S: Final = 0.2
HELD_S: Final = 20
LEFT_S: Final = 40
_MB_PER_MIB: Final = 2**20 / 1e6
_PER_SAMPLE: Final = 20  # clients

Row = tuple[float, str, float]  # (seconds since the start, open clients, MB above idle)


async def curve(server: Server) -> AsyncIterator[Row]:
    """Yield the server's memory while clients connect, stay, and after they have left."""
    address = server.address
    await ask_all(address, list(objects(address)), 8)
    idle, began = server.resident_mib(), perf_counter()
    half = address.request("POST", CONFIG_MAPS, b"x" * 3_000_000)[:HALF_SENT]
    clients: list[Silent] = []

    def row(what: str) -> Row:
        above = (server.resident_mib() - idle) * _MB_PER_MIB
        return round(perf_counter() - began, 1), what, round(above, 1)

    for what, request in (("watches", address.request("GET", WATCH)), ("half-sent bodies", half)):
        for number in range(CLIENTS):
            clients.append(Silent(request))
            await address.open(clients[-1])
            if number % _PER_SAMPLE == 0:
                yield row(what)
    for _ in range(int(HELD_S / SAMPLE_S)):
        await asyncio.sleep(SAMPLE_S)
        yield row("both")
    for client in clients:
        client.close()
    for _ in range(int(LEFT_S / SAMPLE_S)):
        await asyncio.sleep(SAMPLE_S)
        yield row("none")


async def _printed(server: Server) -> float:
    """Print the curve as CSV; return the maximum in MB."""
    writer, most = csv.writer(sys.stdout), 0.0
    writer.writerow(("seconds", "clients", "MB above idle"))
    async for one in curve(server):
        writer.writerow(one)
        most = max(most, one[2])
    return most


def main() -> int:
    """Run the benchmark; return 1 if the memory is not below MB_MAX."""
    with (
        tempfile.TemporaryDirectory() as name,
        serving((*UP, "--nodes", "1", "--paused"), Path(name)) as server,
    ):
        most = asyncio.run(_printed(server))
    print(f"at most {most} MB above idle", file=sys.stderr)
    return 0 if most < MB_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
