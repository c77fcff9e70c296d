"""Watches over WebSockets, on one connection without a socket."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tracemalloc

import pytest
from tests.leaping_loop import run_leaping
from tests.unit.apiserver.conftest import CountedIds
from tests.unit.apiserver.http.test_connection_timeouts import Connections
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage

from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.endpoints.audit import AuditBackend
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.http import connection_timeouts
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN

TOKEN = "secret"
NODES = "/api/v1/nodes?watch=1"
BEARER = "base64url.bearer.authorization.k8s.io."
PROTOCOLS = f"Sec-WebSocket-Protocol: base64.binary.k8s.io, {BEARER}c2VjcmV0"
PLAIN = f"Authorization: Bearer {TOKEN}"
ORIGIN = "Origin: http://localhost"
# The key and its answer are those of RFC 6455.
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
VERSION = "Sec-WebSocket-Version: 13"
UPGRADE = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket"


def request(*headers, url=NODES):
    lines = [f"GET {url} HTTP/1.1", "Host: a", UPGRADE, *headers, "", ""]
    return "\r\n".join(lines).encode()


def from_client(*events):
    """Return the frames of a client that sends `events`."""
    return b"".join(Connection(ConnectionType.CLIENT).send(event) for event in events)


def from_server(data):
    """Return the frames in `data` as pairs of opcode and payload."""
    found = []
    while data:
        size, start = data[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start])
        found.append((data[0], data[start : start + size]))
        data = data[start + size :]
    return found


class Session:
    """A client of an API server with one node."""

    def __init__(self):
        store = Store(CountedIds(), admission=())
        store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, 0)
        self.end = ""
        self.audited = []
        self.store, self.server = store, ApiServer(store, clock=lambda: 0)
        audit = AuditBackend(lambda line: self.audited.append(json.loads(line)))
        app = ApiApp(self.server, TokenAuthenticator({TOKEN: ADMIN}), lambda: 0, audit=audit)
        self.protocol, self.wire = Connections(app).open()

    async def send(self, data):
        self.protocol.data_received(data)
        await asyncio.sleep(0.5)

    def received(self):
        """Return the lines of the head and the frames of the response."""
        head, _, rest = self.wire.written.partition(b"\r\n\r\n")
        return head.decode().split("\r\n"), from_server(rest)

    def close(self):
        self.protocol.connection_lost(None)


def sent(*parts):
    """Send `parts` to an API server with one node; return the session."""

    async def run():
        session = Session()
        for part in parts:
            await session.send(part)
        session.end = session.wire.end
        session.close()
        return session

    return run_leaping(run())


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        pytest.param(PLAIN, [], id="token in the usual header"),
        pytest.param(PROTOCOLS, ["sec-websocket-protocol: base64.binary.k8s.io"], id="browser"),
        pytest.param(
            f"Sec-WebSocket-Protocol: {BEARER}c2VjcmV0\r\nSec-WebSocket-Protocol: v4",
            ["sec-websocket-protocol: v4"],
            id="two headers",
        ),
    ],
)
def test_each_event_is_a_text_frame(header, shown):
    session = sent(request(ORIGIN, KEY, VERSION, header))
    (status, *headers), frames = session.received()
    assert status == "HTTP/1.1 101 Switching Protocols"
    assert {ACCEPT, "upgrade: websocket", "connection: Upgrade"} <= set(headers)
    assert [one for one in headers if one.startswith("sec-websocket-protocol")] == shown
    assert [(code, json.loads(text)["type"]) for code, text in frames] == [(0x81, "ADDED")]
    assert [one["responseStatus"]["code"] for one in session.audited] == [101]
    assert session.end == ""


def test_long_events_and_bookmarks_are_sent_and_the_timeout_closes_the_websocket():
    async def run():
        session = Session()
        url = f"{NODES}&allowWatchBookmarks=1&timeoutSeconds=30&resourceVersion=1"
        await session.send(request(ORIGIN, KEY, VERSION, PLAIN, url=url))
        for size in (200, 100_000):
            labels = {"a": "x" * size}
            meta = {"name": f"n{size}", "annotations": labels}
            session.store.create({"apiVersion": "v1", "kind": "Node", "metadata": meta}, 0)
            await asyncio.sleep(0.5)
        await asyncio.sleep(60)
        session.close()
        return session

    session = run_leaping(run())
    _, (*events, end) = session.received()
    shown = [json.loads(text) for _, text in events]
    assert [one["type"] for one in shown] == ["ADDED", "ADDED", "BOOKMARK"]
    assert len(shown[1]["object"]["metadata"]["annotations"]["a"]) == 100_000
    assert end == (0x88, (1000).to_bytes(2))
    assert session.wire.end == "closed"


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ((ORIGIN, KEY, PLAIN), 400, "missing or bad WebSocket Version"),
        ((ORIGIN, VERSION, PLAIN), 400, "mismatch challenge/response"),
        ((KEY, VERSION, PLAIN), 403, "missing or bad Origin header: the handshake needs one"),
        ((ORIGIN, KEY, VERSION, PLAIN, "Sec-WebSocket-Protocol: a, b"), 400, "missing or bad"),
        ((ORIGIN, KEY, VERSION, f"Sec-WebSocket-Protocol: {BEARER}c2VjcmV0"), 401, ""),
        ((ORIGIN, KEY, VERSION, f"Sec-WebSocket-Protocol: a, {BEARER}d3Jvbmc"), 401, ""),
        ((ORIGIN, KEY, VERSION, f"Sec-WebSocket-Protocol: a, {BEARER}c2V=cm"), 401, ""),
        ((ORIGIN, KEY, VERSION, f"{PROTOCOLS}, {BEARER}c2VjcmV0"), 401, ""),
    ],
    ids=[
        "no version",
        "no key",
        "no origin",
        "two sub-protocols",
        "only the token",
        "wrong token",
        "malformed token",
        "two tokens",
    ],
)
def test_an_invalid_handshake_is_refused_and_leaves_no_watch(headers, status, text):
    session = sent(request(*headers))
    assert session.wire.written.startswith(f"HTTP/1.1 {status} ".encode())
    assert text in session.wire.written.decode()
    assert session.server.watches.count() == 0
    assert session.audited[-1]["responseStatus"]["code"] == status


def test_a_refused_handshake_has_two_lines_in_the_audit_log():
    """As upstream, the first line is written before the handshake is checked."""
    started, refused = sent(request(KEY, VERSION, PLAIN)).audited
    assert (started["stage"], started["responseStatus"]["code"]) == ("ResponseStarted", 101)
    assert (refused["stage"], refused["responseStatus"]["code"]) == ("ResponseComplete", 403)
    same = ("auditID", "verb", "user", "requestURI", "objectRef")
    assert [refused[key] for key in same] == [started[key] for key in same]


def test_wsproto_is_imported_only_for_a_websocket():
    """Most clusters have no such clients, and imports delay the start."""
    code = "import fairlead.cli.commands.up.run, sys; print('wsproto' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_requests_other_than_watches_are_not_upgraded():
    session = sent(request(ORIGIN, KEY, VERSION, PLAIN, url="/api/v1/nodes"))
    assert session.wire.written.startswith(b"HTTP/1.1 200 ")
    assert [one["responseStatus"]["code"] for one in session.audited] == [200]


OPEN = request(ORIGIN, KEY, VERSION, PLAIN)


def test_a_ping_is_answered_and_messages_are_ignored():
    """The bytes of a frame may arrive one at a time."""
    message = from_client(TextMessage("é" * 35_000))
    ping = from_client(Ping(b"hello"))
    pieces = [ping[at : at + 1] for at in range(len(ping))]
    session = sent(OPEN, message[:15], message[15:] + ping, *pieces)
    assert session.received()[1][1:] == [(0x8A, b"hello")] * 2


def test_pings_of_a_client_that_does_not_read_are_not_answered():
    async def run():
        session = Session()
        await session.send(OPEN)
        session.protocol.pause_writing()
        await session.send(from_client(*[Ping(b"hello")] * 1000))
        found = len(session.received()[1])
        await asyncio.sleep(connection_timeouts.READING_SECONDS_MAX)
        end = session.wire.end
        session.close()
        return found, end

    assert run_leaping(run()) == (1, "aborted")


def test_the_message_of_a_client_takes_no_memory_before_it_ends():
    """The client announces 1 TB and sends 16 MiB of it."""

    async def run():
        session = Session()
        await session.send(OPEN)
        await session.send(b"\x82\xff" + (1 << 40).to_bytes(8) + b"mask")
        tracemalloc.start()
        for _ in range(256):
            session.protocol.data_received(bytes(1 << 16))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        end = session.wire.end
        session.close()
        return peak, end

    peak, end = run_leaping(run())
    assert peak < 1 << 20
    assert end == ""


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (from_client(CloseConnection(1000)), 1000),
        (from_client(CloseConnection(4001)), 4001),
        (Connection(ConnectionType.SERVER).send(TextMessage("no mask")), 1002),
        (b"\x89\xfe\x00\x7e" + b"mask" + bytes(126), 1002),
    ],
    ids=["closed by the client", "with another status", "frame without a mask", "long ping"],
)
def test_the_watch_ends_when_the_client_closes_the_websocket_or_breaks_the_protocol(
    data, code, caplog
):
    """An event that is still to be sent is dropped."""

    async def run():
        session = Session()
        await session.send(OPEN)
        before = session.server.watches.count()
        session.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}}, 0)
        await session.send(data)
        ((opcode, payload),) = session.received()[1][1:]
        found = opcode, payload[:2], session.wire.end, session.server.watches.count()
        session.close()
        return before, *found

    assert run_leaping(run()) == (1, 0x88, code.to_bytes(2), "closed", 0)
    assert "Exception" not in caplog.text


def test_the_watch_ends_when_the_connection_is_lost_or_the_server_stops():
    async def run(end):
        session = Session()
        await session.send(OPEN)
        end(session)
        await asyncio.sleep(0.5)
        return session.server.watches.count(), session.received()[1][1:]

    lost = run_leaping(run(lambda session: session.close()))
    stopped = run_leaping(run(lambda session: session.server.watches.close_all()))
    assert lost == (0, [])
    assert stopped == (0, [(0x88, (1000).to_bytes(2))])
