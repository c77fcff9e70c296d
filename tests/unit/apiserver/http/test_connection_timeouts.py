"""Connections beyond the bounds are closed."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from fairlead.apiserver.http import connection_timeouts
from fairlead.apiserver.http.connection_timeouts import TimeoutHttpProtocol


class Wire(asyncio.Transport):
    """Keeps what is written, and how it ended."""

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


class Connections:
    """Connections of one server."""

    def __init__(self):
        self._state, self._app_state = ServerState(), {}

    def open(self):
        config = uvicorn.Config(None, lifespan="off", log_config=None, ws="none")
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
