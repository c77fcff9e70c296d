"""Every result of a webhook call, including failures, is returned as a WebhookAnswer."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from fairlead.apiserver.http import webhook_client
from fairlead.apiserver.http.webhook_client import call_webhook
from fairlead.apiserver.suspension import WebhookCall


async def _call(answer, ca):
    """Return the result of a call whose response is the text `answer`; HTTPS if `ca` is set."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        url = f"{'https' if ca else 'http'}://127.0.0.1:{port}/"
        return await call_webhook(WebhookCall(url, ca, 60, b"{}"))


def call(body, ca=""):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return asyncio.run(_call(head % len(body) + body, ca))


@pytest.mark.parametrize("length", [0, 10, 1 << 20])
def test_a_response_is_read_completely(length):
    """The response may arrive in any number of pieces."""
    body = b"x" * length
    assert call(body).body == body


def test_a_response_that_is_too_long_is_a_failure(monkeypatch):
    monkeypatch.setattr(webhook_client, "ANSWER_BYTES_MAX", 100_000)
    assert call(b"x" * 200_000).failure == "the answer is longer than 100000 bytes"


@pytest.mark.parametrize("authority", ["nonsense", "\0\u2603"])
def test_an_invalid_ca_bundle_is_a_failure(authority):
    assert call(b"", ca=authority).failure == (
        "unable to load root certificates: unable to parse bytes as PEM block"
    )


def test_decompression_of_a_response_is_limited(monkeypatch):
    """A kilobyte can decompress to a megabyte."""
    packed = gzip.compress(b"0" * 1_000_000)
    monkeypatch.setattr(webhook_client, "ANSWER_BYTES_MAX", 100_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    found = asyncio.run(_call(head % len(packed) + packed, ""))
    assert found.failure == "the answer is longer than 100000 bytes"


def test_redirects_are_not_followed():
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    found = asyncio.run(_call(moved, ""))
    assert found.failure.startswith("the server responded with the status code 302")
