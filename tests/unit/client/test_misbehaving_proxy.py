"""Proxies that close connections or send invalid or endless data cause a request error."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import product

import pytest

from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import ConnectionConfigError, RequestError
from fairlead.client.http.session import _connector
from fairlead.client.rest_client import RestClient, _system_proxy

WITHIN_S = 60


async def hang_up(reader, writer):
    """Close the connection at once."""


async def hang_up_later(reader, writer):
    await reader.read(1)
    writer.write(b"\5\0")


async def nonsense(reader, writer):
    await reader.read(1)
    writer.write(b"\xff" * 1_000)


async def refusal(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")


async def tunnel_to_nowhere(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")


async def endless_head(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        writer.write(b"X-%d: %s\r\n" % (number, b"y" * 1_000))
        await writer.drain()


async def endless_line(reader, writer):
    await reader.read(1)
    while True:
        writer.write(b"\5" * 65_536)
        await writer.drain()


def ask(scheme, server, behave):
    async def serve(reader, writer):
        with suppress(ConnectionError):
            await behave(reader, writer)
        writer.close()

    async def run():
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        config = ConnectionConfig(name="context x", server=server, proxy_url=url)
        try:
            async with asyncio.timeout(WITHIN_S), RestClient(config) as client:
                return await client.get("/version")
        finally:
            listening.close()

    return asyncio.run(run())


SCHEMES = ("http", "socks5")
SERVERS = ("http://api.example:8080", "https://api.example:6443")
BEHAVIOURS = (
    hang_up,
    hang_up_later,
    nonsense,
    refusal,
    tunnel_to_nowhere,
    endless_head,
    endless_line,
)
# Through an HTTP proxy, this is the empty answer of a server without TLS.
CASES = [
    case
    for case in product(SCHEMES, SERVERS, BEHAVIOURS)
    if case != ("http", SERVERS[0], tunnel_to_nowhere)
]


@pytest.mark.parametrize(("scheme", "server", "behave"), CASES)
def test_a_misbehaving_proxy_causes_a_request_error(scheme, server, behave):
    with pytest.raises(RequestError) as error:
        ask(scheme, server, behave)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_unreachable_proxy_is_named_in_the_error(scheme):
    url = f"{scheme}://127.0.0.1:1"
    config = ConnectionConfig(name="context x", server=SERVERS[0], proxy_url=url)

    async def run():
        async with RestClient(config) as client:
            await client.get("/version")

    with pytest.raises(RequestError, match=r"api.example:8080: .*to proxy|cannot connect to the"):
        asyncio.run(run())


def test_a_socks_proxy_without_a_port_has_port_1080():
    connector = asyncio.run(_socks_connector("socks5h://user:pw@proxy"))
    assert (connector._proxy_host, connector._proxy_port) == ("proxy", 1080)


async def _socks_connector(url):
    connector = _connector(url, 1)
    await connector.close()
    return connector


@pytest.mark.parametrize(
    ("value", "found"),
    [("proxy:3128", "http://proxy:3128"), ("socks5h://proxy", "socks5h://proxy"), ("", "")],
)
def test_the_proxy_of_the_environment_can_have_no_scheme(monkeypatch, value, found):
    monkeypatch.setenv("HTTPS_PROXY", value)
    monkeypatch.delenv("https_proxy", raising=False)
    assert _system_proxy("https://api.example") == found


@pytest.mark.parametrize(
    ("server", "found"),
    [
        ("https://localhost:1", ""),
        ("https://127.0.0.2:1", ""),
        ("https://[::1]:1", ""),
        ("https://127.example", "http://proxy"),
    ],
)
def test_loopback_addresses_are_reached_without_the_proxy(monkeypatch, server, found):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.delenv("https_proxy", raising=False)
    assert _system_proxy(server) == found


@pytest.mark.parametrize("value", ["ftp://proxy", "http://proxy:99999", "http://"])
def test_an_invalid_proxy_of_the_environment_is_refused(monkeypatch, value):
    monkeypatch.setenv("HTTPS_PROXY", value)
    monkeypatch.delenv("https_proxy", raising=False)
    with pytest.raises(ConnectionConfigError, match=r"^HTTPS_PROXY: .* is not an http, https or"):
        _system_proxy("https://api.example")
