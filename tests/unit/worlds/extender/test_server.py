"""The extender server on a port: kube-scheduler's protocol, and slow or malicious clients."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from threading import Event, Thread

import pytest
import uvloop

from fairlead.apiserver.http import connection_timeouts
from fairlead.engine.extender_backend import ExtenderBackend
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.builders import make_node, make_pod
from fairlead.worlds.extender import server
from fairlead.worlds.extender.address import Address
from fairlead.worlds.extender.app import ExtenderApp
from fairlead.worlds.extender.extender_verbs import ExtenderVerbs

HEAD = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}


@contextmanager
def served(verbs):
    """Yield the port of an extender with these verbs."""
    ready = Event()
    app = ExtenderApp(verbs, ("127.0.0.1", "localhost"))
    made = server.make_server(app, ready.set)
    with Address("127.0.0.1", 0).open() as listening:
        thread = Thread(target=lambda: uvloop.run(made.serve([listening])))
        thread.start()
        try:
            assert ready.wait(60)
            yield listening.getsockname()[1]
        finally:
            made.should_exit = True
            thread.join()


def verbs_of(verbs):
    async def filter_(body):
        return verbs.filter(body)

    async def prioritize(body):
        return verbs.prioritize(body)

    async def preempt(body):
        return verbs.preempt(body)

    return {"filter": filter_, "prioritize": prioritize, "preempt": preempt}


@pytest.fixture(scope="module")
def port():
    """The port of an extender that checks CPU; one node is full."""
    plugins = (("PrioritySort", 0), ("NodeResourcesFit", 1), ("DefaultBinder", 0))
    config = SchedulerConfig((Profile(plugins=plugins),))
    full = make_pod("v", node="full", requests={"cpu": "4"}, uid="uv")
    backend = ExtenderBackend(config, [make_node("full"), make_node("free"), full])
    with served(verbs_of(ExtenderVerbs(backend))) as found:
        yield found


@pytest.fixture
def ask(port):
    """Sends requests of a standard client, all on one connection."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def question(verb, body, **headers):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
        connection.request("POST", f"/{verb}", text, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if response.status == 200 else content

    yield question
    connection.close()


@pytest.fixture
def call(port):
    """A raw connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        yield connection


def everything(connection):
    """Return the received bytes until the server closes the connection."""
    content = b""
    try:
        while chunk := connection.recv(1 << 16):
            content += chunk
    except ConnectionResetError:
        pass
    return content


def is_hung_up_on(connection, data, most):
    """Return whether the server closes the connection before `data` was sent `most` times."""
    for _ in range(most):
        try:
            connection.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            return True
    return False


def pod(cpu):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return POD | {"spec": {"containers": [container]}}


def test_a_request_with_node_names_is_answered_with_node_names(ask):
    arguments = {"Pod": pod("4"), "NodeNames": ["full", "free"]}
    status, answer = ask("filter", arguments)
    assert (status, answer["NodeNames"]) == (200, ["free"])
    assert answer["FailedNodes"] == {"full": "Insufficient cpu"}
    assert ask("prioritize", arguments | {"Pod": pod("1")}) == (
        200,
        [{"Host": "full", "Score": 0}, {"Host": "free", "Score": 9}],
    )
    victims = {"full": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 0}}
    assert ask("preempt", {"Pod": pod("4"), "NodeNameToMetaVictims": victims}) == (
        200,
        {"NodeNameToMetaVictims": victims},
    )


def test_a_request_with_nodes_is_answered_with_nodes(ask):
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "10"}
    node = {"metadata": {"name": "small"}, "status": {"allocatable": allocatable}}
    arguments = {"Pod": pod("1"), "Nodes": {"items": [node]}}
    status, answer = ask("filter", arguments)
    assert (status, answer["Nodes"], answer["NodeNames"]) == (200, {"items": [node]}, None)
    assert ask("filter", arguments | {"Pod": pod("4")})[1]["FailedAndUnresolvableNodes"] == {
        "small": "Insufficient cpu"
    }
    assert ask("prioritize", arguments)[1] == [{"Host": "small", "Score": 7}]
    victims = {"full": {"Pods": [{"metadata": {"uid": "uv"}}], "NumPDBViolations": 0}}
    assert ask("preempt", {"Pod": pod("4"), "NodeNameToVictims": victims})[1] == {
        "NodeNameToMetaVictims": {"full": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 0}}
    }


def test_a_client_can_send_requests_after_a_refusal(ask):
    assert ask("filter", b"garbage")[0] == 400
    assert ask("bind", {})[0] == 404
    assert ask("filter", {"Pod": POD, "NodeNames": []})[0] == 200


def test_a_content_length_above_the_limit_is_refused_at_once(call):
    call.sendall(HEAD + b"Content-Length: 99999999999\r\n\r\n")
    assert everything(call).startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_read(call):
    call.sendall(
        HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    )
    assert b"invalid character 'x'" in everything(call)


def test_a_request_that_is_not_http_is_refused(call):
    call.sendall(b"nonsense\r\n\r\n")
    assert everything(call).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("beginning", [b"", b"\r\n", HEAD, HEAD + b"X-"])
def test_an_incomplete_request_is_closed_after_a_timeout(monkeypatch, port, beginning):
    monkeypatch.setattr(connection_timeouts, "HEAD_SECONDS_MAX", 0.05)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(beginning)
        assert everything(connection) == b""


def test_an_incomplete_second_request_is_closed_after_a_timeout(monkeypatch, call):
    call.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
    answer = HTTPResponse(call)
    answer.begin()
    answer.read()
    monkeypatch.setattr(connection_timeouts, "HEAD_SECONDS_MAX", 0.05)
    call.sendall(b"\r\n")
    assert everything(call) == b""


def test_a_connection_with_endless_headers_is_closed(monkeypatch, call):
    monkeypatch.setattr(connection_timeouts, "LINGER_SECONDS_MAX", 0.05)
    call.sendall(HEAD)
    assert is_hung_up_on(call, b"X-More: and more\r\n" * 1000, most=1_000_000)


def test_the_connection_of_a_client_that_does_not_read_is_closed(monkeypatch):
    monkeypatch.setattr(connection_timeouts, "READING_SECONDS_MAX", 0.05)

    async def flood(_body):
        return b" " * (64 << 20)

    with (
        served({"filter": flood}) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
    ):
        connection.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert is_hung_up_on(connection, b" ", most=10_000_000)  # without reading anything
        assert len(everything(connection)) < 64 << 20


def test_connections_above_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)

    async def answer(_body):
        return b"{}"

    with (
        served({"filter": answer}) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60),
        socket.create_connection(("127.0.0.1", port), timeout=60) as second,
    ):
        second.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert everything(second).startswith(b"HTTP/1.1 503 ")
