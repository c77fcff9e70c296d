"""Connections beyond the bounds are closed."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from fairlead.apiserver.http import connection_timeouts
from fairlead.apiserver.http.connection_timeouts import TimeoutHttpProtocol


class Wire(asyncio.Transport):
    """A transport that records writes, and how it was closed."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.end = ""

    def write(self, data):
        self.written += data

    def is_closing(self):
        return bool(self.end)

    def close(self):
        self.end = "closed"

    def abort(self):
        self.end = "aborted"

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Connections:
    """The connections of one server."""

    def __init__(self, app=None):
        self._app, self._state, self._app_state = app, ServerState(), {}

    def open(self):
        config = uvicorn.Config(self._app, lifespan="off", log_config=None, ws="none")
        protocol = TimeoutHttpProtocol(
            config=config, server_state=self._state, app_state=self._app_state
        )
        wire = Wire()
        protocol.connection_made(wire)
        return protocol, wire


def test_connections_beyond_the_limit_get_503(monkeypatch):
    monkeypatch.setattr(connection_timeouts, "CONNECTIONS_MAX", 2)

    async def three():
        connections = Connections()
        opened = [connections.open() for _ in range(3)]
        opened[0][0].connection_lost(None)
        opened[2][0].connection_lost(None)
        opened.append(connections.open())
        ends = [(wire.end, wire.written[:12]) for _, wire in opened]
        for protocol, _ in opened:
            protocol.connection_lost(None)
        return ends, opened[2][1].written

    ends, refusal = asyncio.run(three())
    assert ends == [("closed", b""), ("", b""), ("closed", b"HTTP/1.1 503"), ("", b"")]
    assert b"\r\nRetry-After: 1\r\n" in refusal


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(1.0, ["aborted", "", ""], id="unread for a second"),
        pytest.param(0.1, ["", "", ""], id="unread for a moment"),
    ],
)
def test_the_oldest_unread_connection_is_aborted_beyond_the_limit(monkeypatch, seconds, expected):
    monkeypatch.setattr(connection_timeouts, "UNREAD_MAX", 2)

    async def three():
        connections = Connections()
        opened = [connections.open() for _ in range(3)]
        times = iter((0.0, 0.0, seconds))
        for protocol, _ in opened:
            at = next(times)
            monkeypatch.setattr(protocol.loop, "time", lambda at=at: at)
            protocol.pause_writing()
        ends = [wire.end for _, wire in opened]
        for protocol, _ in opened:
            protocol.connection_lost(None)
        return ends

    assert asyncio.run(three()) == expected


@pytest.mark.parametrize(
    ("head", "status_line"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            b"400 Bad Request: too many Host headers",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
        (
            b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
        (b"GET / HTTP/1.0\r\n\r\n", b"served"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 60_000 + b"\r\n\r\n", b"served"),
    ],
    ids=["no host", "two hosts", "long header", "long path", "HTTP/1.0 without host", "60 KB"],
)
def test_a_request_head_is_refused_as_by_a_go_server(head, status_line):
    """The head may arrive in one piece, and may be that of a second request."""
    good = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    async def answers(data):
        protocol, wire = Connections(_serving).open()
        protocol.data_received(data)
        for _ in range(10):
            await asyncio.sleep(0)
        end = wire.end
        protocol.connection_lost(None)
        return wire.written, end

    for before in (b"", good):
        written, end = asyncio.run(answers(before + head))
        assert written.count(b"served") == bool(before) + (status_line == b"served")
        assert written.endswith(status_line)
        assert (end == "closed") == (status_line != b"served" or b"HTTP/1.0" in head)


@pytest.mark.parametrize("before", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_a_head_without_an_end_is_refused_and_the_rest_is_discarded(monkeypatch, before):
    """If the connection were closed at once, the client would get a reset, not the refusal."""
    monkeypatch.setattr(connection_timeouts, "LINGER_SECONDS_MAX", 0.01)

    async def answers():
        protocol, wire = Connections(_serving).open()
        protocol.data_received(before)
        for _ in range(10):
            await asyncio.sleep(0)
        protocol.data_received(b"GET /" + b"x" * 70_000)
        protocol.data_received(b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        ends = [wire.end]
        await asyncio.sleep(0.05)
        ends.append(wire.end)
        protocol.connection_lost(None)
        return wire.written, ends

    written, ends = asyncio.run(answers())
    assert written.count(b"HTTP/1.1 431 Request Header Fields Too Large\r\n") == 1
    assert written.count(b"served") == bool(before)
    assert ends == ["", "aborted"]


async def _serving(_, __, send):
    headers = [(b"content-length", b"6")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"served"})


@pytest.mark.parametrize(
    "head",
    [b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ids=["idle", "busy"],
)
def test_a_connection_is_aborted_soon_after_the_server_stops(monkeypatch, head):
    """A TLS connection that is only closed waits until the client reads."""
    monkeypatch.setattr(connection_timeouts, "FLUSH_SECONDS_MAX", 0.01)

    async def ends():
        protocol, wire = Connections(_serving).open()
        protocol.data_received(head)
        protocol.shutdown()
        found = [wire.end]
        while found[-1] != "aborted":
            await asyncio.sleep(0)
            if wire.end != found[-1]:
                found.append(wire.end)
        protocol.connection_lost(None)
        return found

    assert [one for one in asyncio.run(ends()) if one] == ["closed", "aborted"]
