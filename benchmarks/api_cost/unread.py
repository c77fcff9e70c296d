"""Measures the memory for clients that do not read answers or do not finish requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import sleep
from typing import Final

from api_cost.clients import Address, Silent, ask_all
from api_cost.figure import Figure, Figures
from api_cost.process import Server

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
WATCH: Final = f"{CONFIG_MAPS}?watch=true"
OBJECTS: Final = 200
OBJECT_BYTES: Final = 80_000
CLIENTS: Final = 300
TARGET_MIB: Final = 200
RETURNED_AFTER_S: Final = 45
HALF_SENT: Final = 2_900_000  # bytes of a request of 3 MB


def over_https(server: Server) -> Figures:
    """Measure the additional memory during and after unread answers and unfinished bodies."""
    address = server.address
    asyncio.run(ask_all(address, list(objects(address)), 8))
    idle = server.resident_mib()
    half = address.request("POST", CONFIG_MAPS, b"x" * 3_000_000)[:HALF_SENT]
    requests = {
        "watches, unread": address.request("GET", WATCH),
        "lists, unread": address.request("GET", CONFIG_MAPS),
        "half-sent bodies": half,
    }
    for what, request in requests.items():
        held = asyncio.run(_most_held(server, address, request)) - idle
        yield Figure(
            what=f"{CLIENTS} {what}, over {OBJECTS * OBJECT_BYTES / 1e6:.0f} MB of objects: memory",
            value=held,
            unit="MiB",
            target=TARGET_MIB,
        )
    sleep(RETURNED_AFTER_S)
    yield Figure(what="the same after they left", value=server.resident_mib() - idle, unit="MiB")


def objects(address: Address) -> Iterator[bytes]:
    """Yield the requests that create the objects to be watched and listed."""
    text = b"x" * OBJECT_BYTES
    form = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"a":"%s"}}'
    for number in range(OBJECTS):
        yield address.request("POST", CONFIG_MAPS, form % (number, text))


async def _most_held(server: Server, address: Address, request: bytes) -> float:
    """Return the server's highest memory in MiB while CLIENTS send `request` and read nothing."""
    clients, most = [Silent(request) for _ in range(CLIENTS)], 0.0
    for client in clients:
        await address.open(client)
        most = max(most, server.resident_mib())
    for _ in range(20):
        await asyncio.sleep(0.2)
        most = max(most, server.resident_mib())
    for client in clients:
        client.close()
    return most
