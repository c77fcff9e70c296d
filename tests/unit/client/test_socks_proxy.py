"""Requests through a scripted SOCKS5 proxy (RFC 1928)."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import RequestError
from fairlead.client.rest_client import RestClient

SUCCEEDED, NOT_ALLOWED = 0, 2
DOMAIN_NAME = 3


class SocksProxy:
    """A proxy that connects to `port` of this machine, whatever the requested host is."""

    def __init__(self, port, reply=SUCCEEDED):
        self.port = port
        self.reply = reply
        self.requests = []

    async def handle(self, reader, writer):
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\5\0")
        _, _, _, kind, length = await reader.readexactly(5)
        assert kind == DOMAIN_NAME
        name = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.requests.append((name.decode(), port))
        writer.write(bytes([5, self.reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        if self.reply == SUCCEEDED:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
            await asyncio.gather(copy(reader, to_server), copy(from_server, writer))
        writer.close()


async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def ask(reply=SUCCEEDED):
    """Return the response through the proxy, and what the proxy was requested to connect to."""

    async def run():
        async def answer(request):
            return web.Response(text=f"{request.method} {request.path}")

        app = web.Application()
        app.router.add_get("/version", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        proxy = SocksProxy(site._server.sockets[0].getsockname()[1], reply)
        listening = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
        url = f"socks5://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        server = "http://api.cluster.example:8080"
        config = ConnectionConfig(name="context x", server=server, proxy_url=url)
        try:
            async with RestClient(config) as client:
                return await client.get("/version"), proxy.requests
        finally:
            listening.close()
            await runner.cleanup()

    return asyncio.run(run())


def test_the_proxy_resolves_the_name_of_the_server():
    body, requests = ask()
    assert body == b"GET /version"
    assert requests == [("api.cluster.example", 8080)]


def test_a_refusal_of_the_proxy_causes_a_request_error():
    with pytest.raises(RequestError, match="the connection failed"):
        ask(NOT_ALLOWED)
