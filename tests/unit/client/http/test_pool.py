"""Requests over persistent connections; the server is scripted and sees raw bytes."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys

import pytest

from fairlead.client import rest_client
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import RequestError
from fairlead.client.http import connection as http_connection
from fairlead.client.rest_client import ApiRequest, RestClient

WRITE = ApiRequest("POST", "/api/v1/pods", b"{}")
REPLACE = ApiRequest("PUT", "/api/v1/pods/a", b"{}")
READ = ApiRequest("GET", "/api/v1/pods", query={"limit": "5", "continue": "a/b=+"})
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
CLOSE = b""  # instead of an answer, the connection is closed


class RawServer:
    """A server that sends its answers in order on any connection, and records requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.connections = []

    async def handle(self, reader, writer):
        requests = []
        self.connections.append(requests)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                writer.write(answer)
                if answer == CLOSE or b"onnection: close" in answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    def ask(self, work, loop_factory=None, **more):
        """Return the result of `work` for a client of this server."""

        async def run():
            server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            config = ConnectionConfig(name="context x", server=f"http://127.0.0.1:{port}/prefix")
            async with server, RestClient(config, **more) as client:
                found = await work(client)
            await asyncio.sleep(0)
            return found

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(run())


def sent(*requests, seconds_max=60):
    """Send requests one after another; return the answers."""

    async def work(client):
        return [await client.exchange(one, seconds_max) for one in requests]

    return work


def test_a_connection_is_reused():
    server = RawServer(OK, OK)
    answers = server.ask(sent(WRITE, WRITE))
    assert [(one.status, one.body) for one in answers] == [(201, b"{}")] * 2
    assert [len(one) for one in server.connections] == [2]


def test_a_request_names_the_server_and_carries_its_body():
    server = RawServer(OK)
    server.ask(sent(WRITE))
    head, _, body = server.connections[0][0].partition(b"\r\n\r\n")
    start, *headers = head.split(b"\r\n")
    assert start == b"POST /prefix/api/v1/pods HTTP/1.1"
    names = {one.split(b":")[0] for one in headers}
    assert names == {b"Host", b"User-Agent", b"Accept", b"Content-Type", b"Content-Length"}
    assert body == b"{}"


def test_the_number_of_connections_is_limited():
    async def work(client):
        return await asyncio.gather(*(client.exchange(WRITE, 60) for _ in range(9)))

    server = RawServer(*[OK] * 9)
    assert all(one.status == 201 for one in server.ask(work, connections_max=2))
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.0 201 Created\r\nConnection: close\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["in chunks", "after 100", "up to the end", "with the end announced"],
)
def test_responses_with_chunks_and_interim_responses_are_read(answer):
    server = RawServer(answer, OK)
    answers = server.ask(sent(WRITE, WRITE))
    assert [(one.status, one.body) for one in answers] == [(201, b"{}")] * 2


def test_a_write_without_a_response_is_not_repeated():
    server = RawServer(OK, CLOSE, OK)
    answers = server.ask(sent(WRITE, WRITE))
    assert answers[1].status == 0
    assert "the connection failed: the server closed it" in answers[1].message
    assert sum(map(len, server.connections)) == 2


def test_a_response_is_not_passed_to_the_next_request_of_a_closed_connection():
    server = RawServer(b"HTTP/1.1 204 No Content\r\n\r\n", CLOSE)
    assert [one.status for one in server.ask(sent(WRITE, WRITE))] == [204, 0]


def test_an_idempotent_write_is_repeated_after_an_idle_connection_was_closed():
    server = RawServer(OK, CLOSE, OK)
    assert [one.status for one in server.ask(sent(WRITE, REPLACE))] == [201, 201]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}", "closed it"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000,
            "more than 1 MiB",
        ),
    ],
    ids=["no HTTP", "cut", "too long"],
)
def test_a_malformed_response_is_a_failed_connection(answer, problem):
    answers = RawServer(answer).ask(sent(WRITE), bytes_max=1 << 20)
    assert answers[0].status == 0
    assert "the connection failed: " in answers[0].message
    assert (
        problem.replace("over", "has more than").replace("than 1", "than 1") in answers[0].message
    )


def test_a_slow_response_is_a_timeout():
    async def silence(reader, writer):
        await reader.read()
        writer.close()

    server = RawServer()
    server.handle = silence
    answers = server.ask(sent(WRITE, seconds_max=0.05))
    assert answers[0].message == "the server did not answer in time"


def test_a_read_has_no_body_and_accepts_gzip():
    server = RawServer(OK)
    server.ask(sent(READ))
    start, *headers = server.connections[0][0].removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert start == b"GET /prefix/api/v1/pods?limit=5&continue=a%2Fb%3D%2B HTTP/1.1"
    assert {one.split(b":")[0] for one in headers} == {
        b"Host",
        b"User-Agent",
        b"Accept",
        b"Accept-Encoding",
    }
    assert b"Accept-Encoding: gzip" in headers


def test_a_read_is_repeated_after_an_idle_connection_was_closed():
    server = RawServer(OK, CLOSE, OK)
    assert [one.status for one in server.ask(sent(WRITE, READ))] == [201, 201]


def compressed(body, encoding="gzip"):
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (compressed(gzip.compress(b"{}")), b"{}"),
        (compressed(gzip.compress(b"{") + gzip.compress(b"}")), b"{}"),
        (compressed(b"{}", "identity"), b"{}"),
        (compressed(b""), b""),
    ],
    ids=["one member", "two members", "not compressed", "empty"],
)
def test_compressed_responses_are_decompressed(answer, body):
    (received,) = RawServer(answer).ask(sent(READ), bytes_max=1 << 20)
    assert (received.status, received.body) == (200, body)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (compressed(b"{}"), "the answer is not gzip"),
        (compressed(gzip.compress(b"{}")[:-1]), "the gzip data of the answer has no end"),
        (compressed(b"{}", "br"), "the answer has the unknown Content-Encoding 'br'"),
        (compressed(gzip.compress(bytes(3 << 20))), "the answer has more than 2 MiB"),
        (
            compressed(gzip.compress(bytes(1 << 20)) + gzip.compress(bytes((1 << 20) + 1))),
            "the answer has more than 2 MiB",
        ),
    ],
    ids=["not compressed", "cut", "another encoding", "too long", "two members too long"],
)
def test_an_invalid_compressed_response_is_a_failed_connection(answer, problem):
    server = RawServer(answer, OK)
    refused, next_one = server.ask(sent(READ, READ), bytes_max=2 << 20)
    assert (refused.status, refused.message.split(" (")[0]) == (
        0,
        f"the connection failed: {problem}",
    )
    assert next_one.status == 201


def test_a_long_response_is_decompressed_in_parts(monkeypatch):
    monkeypatch.setattr(http_connection, "_STEP_BYTES", 1_000)
    body = bytes(range(256)) * 100
    members = gzip.compress(body) + gzip.compress(body)
    (received,) = RawServer(compressed(members)).ask(sent(READ), bytes_max=2 * len(body))
    assert received.body == 2 * body
    (refused,) = RawServer(compressed(members)).ask(sent(READ), bytes_max=2 * len(body) - 1)
    assert refused.message == "the connection failed: the answer has more than 0 MiB"


@pytest.mark.parametrize("zipped", [True, False], ids=["gzip", "plain"])
def test_the_total_size_of_several_responses_can_be_limited(zipped):
    body = bytes(1_000)
    length = len(body)
    plain = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + body
    answer = compressed(gzip.compress(body)) if zipped else plain
    total = http_connection.BodyLimit(2 * len(body) + 1)
    *read, refused = RawServer(*[answer] * 3).ask(sent(READ, READ, READ), bytes_max=total)
    assert [one.body for one in read] == [body, body]
    assert refused.status == 0
    assert "has more than" in refused.message


def test_an_endless_response_head_is_a_failed_connection(monkeypatch):
    monkeypatch.setattr(http_connection, "HEAD_BYTES_MAX", 1 << 20)
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1_000) for number in range(2_000))
    (answer,) = RawServer(b"HTTP/1.1 200 OK\r\n" + lines).ask(sent(READ))
    assert answer.message == "the connection failed: the head of the answer has more than 1 MiB"


class StoppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when a test changes `now_s`."""

    now_s = 0.0

    def time(self):
        return self.now_s


def test_a_read_continues_while_bytes_arrive(monkeypatch):
    is_received = asyncio.Event()
    receive = http_connection.HttpConnection.data_received

    def data_received(connection, data):
        receive(connection, data)
        is_received.set()

    async def slow(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for part in (b"HTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n\r\n", b"{", b"}"):
            asyncio.get_running_loop().now_s += 0.3
            for _ in range(3):  # a timer that is due now is handled
                await asyncio.sleep(0)
            is_received.clear()
            writer.write(part)
            await is_received.wait()
        writer.close()

    monkeypatch.setattr(http_connection.HttpConnection, "data_received", data_received)
    server = RawServer()
    server.handle = slow
    found = server.ask(lambda client: client.get("/x"), StoppedLoop, read_seconds_max=0.4)
    assert found == b"{}"


def test_a_read_without_new_bytes_is_a_timeout():
    async def silent(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await reader.read()
        writer.close()

    server = RawServer()
    server.handle = silent
    with pytest.raises(RequestError, match="the server did not answer in time"):
        server.ask(lambda client: client.get("/x"), read_seconds_max=0.1)


def test_a_read_with_a_truncated_response_is_not_repeated():
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}"
    server = RawServer(cut, OK)
    with pytest.raises(RequestError, match="the connection failed: the server closed it"):
        server.ask(lambda client: client.get("/x"))
    assert len(server.connections) == 1


def test_a_read_without_a_response_is_repeated(monkeypatch):
    monkeypatch.setattr(rest_client, "_pause_s", lambda *_: 0.0)
    server = RawServer(CLOSE, CLOSE, OK)
    assert server.ask(lambda client: client.get("/x")) == b"{}"


def test_reads_and_writes_need_no_aiohttp():
    code = "import sys, fairlead.client.rest_client; assert 'aiohttp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_line_breaks_in_a_path_are_escaped():
    server = RawServer(OK)
    server.ask(sent(ApiRequest("POST", "/a b\r\nX-Injected: 1", b"{}")))
    assert server.connections[0][0].startswith(b"POST /prefix/a%20b%0D%0AX-Injected:%201 HTTP/1.1")


def begun(*requests, seconds_max=60):
    """Open a connection with a write, then begin requests one after another on it."""

    async def work(client):
        assert not client.begin(WRITE, 60, None)
        await client.exchange(WRITE, 60)
        answers = []
        for request in requests:
            answer = asyncio.get_running_loop().create_future()
            if client.begin(request, seconds_max, answer.set_result):
                answers.append(await answer)
            else:
                answers.append("not sent")
        return answers

    return work


def test_a_begun_write_uses_the_open_connection():
    server = RawServer(OK, OK, OK)
    answers = server.ask(begun(WRITE, WRITE))
    assert [(one.status, one.body) for one in answers] == [(201, b"{}")] * 2
    assert [len(one) for one in server.connections] == [3]


def test_a_write_that_would_be_repeated_is_not_begun():
    server = RawServer(OK)
    assert server.ask(begun(REPLACE)) == ["not sent"]


def test_a_begun_write_without_a_response_has_status_0():
    answers = RawServer(OK, CLOSE).ask(begun(WRITE, WRITE))
    assert answers[0].status == 0
    assert "the server closed it" in answers[0].message
    assert answers[1] == "not sent"


def test_a_begun_write_with_rejected_credentials_is_left_to_exchange():
    unauthorized = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
    assert RawServer(OK, unauthorized).ask(begun(WRITE)) == [None]


def test_a_begun_write_fails_at_its_deadline():
    server = RawServer(OK, b"HTTP/1.1 201 Created\r\n")
    (answer,) = server.ask(begun(WRITE, seconds_max=0.2))
    assert (answer.status, answer.message) == (0, "the server did not answer in time")


def test_a_second_response_to_a_request_is_not_used_for_the_next_request():
    other = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    server = RawServer(OK + other, OK)
    answers = server.ask(sent(WRITE, WRITE))
    assert [one.status for one in answers] == [201, 201]
    assert len(server.connections) == 2
