"""Clients that break the protocol: they are disconnected in time, and others are not affected.

The server is a real one in its own process. For a test that waits for a timeout, only this timeout
is shorter.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from select import select
from time import perf_counter

import pytest
from tests.fuzz.served import served

WAIT_S = 1.0
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
END = (ConnectionError, ssl.SSLError)


@pytest.fixture(scope="module")
def server(tmp_path_factory, request):
    """A server; the parameter, if any, is the name of its timeout that is short."""
    short = getattr(request, "param", None)
    waits = {} if short is None else {short: WAIT_S}
    with served(tmp_path_factory.mktemp("served"), waits) as found:
        yield found


def with_short(timeout):
    return pytest.mark.parametrize("server", [timeout], indirect=True)


@pytest.fixture(autouse=True)
def others_are_answered(server):
    """After each test, check that another client gets a response."""
    yield
    assert server.ask("GET", "/api/v1/namespaces/default")[0] == 200


@pytest.fixture
def call(server):
    """Makes raw connections."""
    with closing(server.connect()) as connection:
        yield connection


def everything(connection):
    """Return all bytes until the peer disconnects. Raises TimeoutError if it does not."""
    content = b""
    try:
        while chunk := connection.recv(1 << 16):
            content += chunk
    except (ConnectionError, ssl.SSLError):
        return content
    return content


def head(server, method, path, *more):
    """Return the head of a permitted request."""
    named = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.token}", *more)
    return "\r\n".join((*named, "", "")).encode()


def is_hung_up_on(connection, data, most):
    """Return whether the server closes the connection before `data` was sent `most` times."""
    for _ in range(most):
        try:
            connection.sendall(data)
        except END:
            return True
    return False


@with_short("HEAD_SECONDS_MAX")
@pytest.mark.parametrize("begun", [b"", b"GET /api HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_an_incomplete_head_is_disconnected_after_the_timeout(call, begun):
    """This happens before the server closes idle connections, and before a read here fails."""
    call.sendall(begun)
    assert everything(call) == b""


@with_short("HEAD_SECONDS_MAX")
def test_a_head_that_is_sent_byte_by_byte_is_disconnected_after_the_timeout(call):
    """The timeout applies to the whole head, not to each byte."""
    call.sendall(b"GET /api HTTP/1.1\r\n")
    call.settimeout(WAIT_S / 10)
    for _ in range(600):
        try:
            call.sendall(b"x")
            if call.recv(1) == b"":
                return
        except TimeoutError:
            continue
        except END:
            return
    pytest.fail("still connected")


def test_an_endless_head_is_refused(call):
    call.sendall(b"GET /api HTTP/1.1\r\n")
    assert is_hung_up_on(call, b"X-More: " + b"y" * 8_000 + b"\r\n", 1_000_000)


def test_an_endless_path_is_refused(call):
    call.sendall(b"GET /")
    assert is_hung_up_on(call, b"y" * 8_000, 1_000_000)


@with_short("BODY_SECONDS_MAX")
def test_an_incomplete_body_is_disconnected_after_the_timeout(server, call):
    call.sendall(head(server, "POST", CONFIG_MAPS, "Content-Length: 100") + b'{"a":')
    assert b" 408 " in everything(call)


@pytest.mark.parametrize("more", ["Content-Length: 99999999999", "Transfer-Encoding: chunked"])
def test_an_endless_body_is_refused(server, call, more):
    """It is refused because of its stated or its received length; the rest is not read."""
    call.sendall(head(server, "POST", CONFIG_MAPS, more))
    assert is_hung_up_on(call, b"10000\r\n" + b"z" * 65_536 + b"\r\n", 100_000)


NONSENSE = (
    b"\x16\x03\x01\x00\x05hello",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\0" * 100,
    b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
)


@pytest.mark.parametrize("sent", NONSENSE, ids=range(len(NONSENSE)))
def test_invalid_requests_are_refused_or_disconnected(call, sent):
    """They never cause an internal server error."""
    call.sendall(sent)
    answer = everything(call)
    assert not answer or answer.startswith(b"HTTP/1.1 4"), answer


@pytest.mark.parametrize(
    "more",
    [
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x",
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
        "Upgrade: SPDY/3.1\r\nConnection: Upgrade",
        "Expect: 100-continue",
        "Authorization: Bearer \xff\xfe",
        "Authorization: Bearer a.b.c",
        "Accept: " + "a;b=c," * 5_000,
        "Impersonate-User: \xff",
        "Cookie: " + "a=b;" * 5_000,
    ],
    ids=lambda more: more.partition(":")[0],
)
def test_unusual_headers_cause_no_server_error(server, call, more):
    text = head(server, "GET", "/api/v1/namespaces", "Connection: close")
    call.sendall(text.replace(b"\r\n\r\n", b"\r\n" + more.encode("latin-1") + b"\r\n\r\n"))
    answer = everything(call)
    assert answer[:10] in (b"HTTP/1.1 2", b"HTTP/1.1 4"), answer[:200]


@pytest.mark.parametrize(
    "path", ["/%00", "/%ff%fe", "/api/v1/%2e%2e/x", "//", "/api/v1/pods?%ff=%00"]
)
def test_unusual_paths_cause_no_server_error(server, call, path):
    call.sendall(head(server, "GET", path, "Connection: close"))
    assert everything(call)[:10] in (b"HTTP/1.1 2", b"HTTP/1.1 4")


def test_pipelined_requests_are_all_answered(server, call):
    """The answers have the order of the requests."""
    call.sendall(head(server, "GET", "/version") * 500)
    content = b""
    while content.count(b"HTTP/1.1 200") < 500:
        chunk = call.recv(1 << 16)
        assert chunk
        content += chunk


def test_half_open_and_idle_connections_do_not_block_other_clients(server):
    """There are hundreds of idle or invalid connections."""
    with ExitStack() as stack:
        for sent in (b"", b"\x16\x03\x01\x02\x00\x01", b"GET /api HTTP/1.1\r\n\r\n") * 100:
            plain = socket.create_connection((server.host, server.port))
            stack.enter_context(closing(plain))
            plain.sendall(sent)
        for _ in range(100):
            stack.enter_context(closing(server.connect()))
        assert server.ask("GET", "/version")[0] == 200


def grown(server, namespace="default"):
    """Create more data, a megabyte at a time."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"generateName": "big-"}, "data": {"k": "v" * 1_000_000}}
    return server.ask("POST", path, body)[1]["metadata"]["name"]


@pytest.fixture
def big(server):
    """A few ConfigMaps that exceed the buffers of a socket."""
    names = [grown(server) for _ in range(8)]
    yield names
    server.ask("DELETE", CONFIG_MAPS)


def sockets_of(server):
    """Return the names of the server's open sockets."""
    names = set()
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since the folder was listed
            names.add(str(file.readlink()))
    return {name for name in names if name.startswith("socket:")}


def is_closed_by(server, sockets):
    """Return whether the server closes one of `sockets` in time."""
    deadline = perf_counter() + 60 * WAIT_S
    while perf_counter() < deadline:
        if not sockets <= sockets_of(server):
            return True
        select([], [], [], WAIT_S / 5)
    return False


@with_short("READING_SECONDS_MAX")
@pytest.mark.parametrize("path", [CONFIG_MAPS, f"{CONFIG_MAPS}?watch=1"])
def test_a_client_that_does_not_read_its_answer_is_disconnected(server, big, path):
    others = sockets_of(server)
    with closing(server.connect()) as call:
        opened = sockets_of(server) - others
        assert opened
        call.sendall(head(server, "GET", path))
        assert is_closed_by(server, opened)


@with_short("READING_SECONDS_MAX")
def test_a_watch_that_is_not_read_is_disconnected(server, call):
    """Buffers for a client are limited in time and size, so the server's memory does not grow."""
    call.sendall(head(server, "GET", f"{CONFIG_MAPS}?watch=1"))
    before = server.rss_mib
    for _ in range(30):
        name = grown(server)
        server.ask("DELETE", f"{CONFIG_MAPS}/{name}")
    assert is_hung_up_on_unread(call)
    assert server.rss_mib < before + 200


def is_hung_up_on_unread(connection):
    """Return whether the server has closed the connection: a write then fails."""
    for _ in range(600):
        try:
            connection.sendall(b"x")
        except END:
            return True
        select([], [], [], 0.1)
    return False
