"""The head of a response is sent together with the beginning of its body."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from fairlead.apiserver.http.connection_timeouts import TimeoutHttpProtocol

HEAD = b"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that records each write."""

    def __init__(self):
        super().__init__()
        self.written = []

    def write(self, data):
        self.written.append(bytes(data))

    def is_closing(self):
        return False

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def close(self):
        self.written.append(b"closed")


async def answer(scope, receive, send):
    """An ASGI application that sends two parts, and then an empty one."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
    for part in (b"1", b"2"):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def written(*received: bytes) -> list[bytes]:
    """Return the writes of a connection that has received these requests."""

    async def ask() -> list[bytes]:
        config = uvicorn.Config(answer, lifespan="off", log_config=None, ws="none")
        protocol = TimeoutHttpProtocol(config=config, server_state=ServerState(), app_state={})
        wire = Wire()
        protocol.connection_made(wire)
        for data in received:
            protocol.data_received(data)
            await asyncio.sleep(0)
            await asyncio.gather(*protocol.tasks)
        protocol.connection_lost(None)
        return wire.written

    return asyncio.run(ask())


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_head_is_sent_with_the_beginning_of_its_body(method):
    """The head and the first part are one write; each later part is another write."""
    request = f"{method} / HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    assert written(request)[:3] == [HEAD + b"1\r\n1\r\n", b"1\r\n2\r\n", b"0\r\n\r\n"]


def test_each_response_of_a_connection_has_its_head():
    """The second response on a connection has its own head."""
    request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    begun = [data for data in written(request, request) if data.startswith(b"HTTP/1.1")]
    assert begun == [HEAD + b"1\r\n1\r\n"] * 2


def test_a_head_without_a_body_is_sent_alone():
    """The response to HEAD has no body."""
    assert written(b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")[0] == HEAD.replace(
        b"transfer-encoding: chunked\r\n", b""
    )


def test_expect_100_continue_is_answered():
    """The interim response is sent immediately."""
    head = b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"
    assert written(head + b"b")[:2] == [b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"1\r\n1\r\n"]
