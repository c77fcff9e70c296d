"""The ASGI application of an extender."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.api.extender import ProtocolError
from fairlead.engine.extender_backend import ExtenderBackendError
from fairlead.worlds.extender import app as module
from fairlead.worlds.extender.app import ExtenderApp

JSON = {"content-type": "application/json", "host": "localhost:8888"}


async def echo(body):
    return body


async def malformed(_body):
    raise ProtocolError("Pod:\nis required")


async def failing(_body):
    raise ExtenderBackendError("plugin failed")


async def broken(_body):
    raise KeyError("oops")


VERBS = {"filter": echo, "malformed": malformed, "failing": failing, "broken": broken}


def request(*parts, path="/filter", method="POST", headers=JSON, hosts=("localhost",)):
    """Return status, headers and body of the response; a part that is None never arrives."""
    sent, rest = [], list(parts)

    async def receive():
        if not rest:
            return {"type": "http.disconnect"}
        part = rest.pop(0)
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(rest)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), text.encode()) for name, text in headers.items()],
    }
    asyncio.run(ExtenderApp(VERBS, hosts)(scope, receive, send))
    if not sent:
        return None
    start, body = sent
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body["body"]


def test_a_response_is_json():
    status, headers, body = request(b'{"a"', b": 1}")
    assert (status, body) == (200, b'{"a": 1}')
    assert headers == {"content-type": "application/json", "content-length": "8"}


@pytest.mark.parametrize(
    ("what", "status", "line"),
    [
        ({"path": "/"}, 404, "no such path; known: /filter, /malformed, /failing, /broken"),
        ({"path": "/filter/x"}, 404, "no such path; known:"),
        ({"method": "GET"}, 405, "the method must be POST"),
        ({"headers": {"host": "localhost"}}, 415, "the content type must be application/json"),
        ({"headers": JSON | {"content-type": "text/plain"}}, 415, "the content type must be"),
        ({"headers": JSON | {"host": "evil.example:80"}}, 421, "the Host header names another"),
        ({"headers": JSON | {"content-length": "9" * 20}}, 413, "the body is longer than"),
        ({"path": "/malformed"}, 400, "Pod: is required"),
        ({"path": "/failing"}, 500, "plugin failed"),
        ({"path": "/broken"}, 500, "internal error: KeyError: 'oops'"),
    ],
)
def test_refusals_have_a_status_and_one_line(what, status, line):
    found, headers, body = request(b"{}", **what)
    assert found == status
    assert body.decode().startswith(line)
    assert body.count(b"\n") == 1
    assert headers["connection"] == "close"
    assert headers.get("allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "[::1]:80", "[::1]"])
def test_all_names_of_the_machine_are_accepted_in_the_host_header(host):
    headers = {"content-type": "application/json; charset=utf-8", "host": host}
    assert request(b"", headers=headers, hosts=("localhost", "[::1]"))[0] == 200


def test_any_host_header_is_accepted_at_other_addresses_than_loopback():
    assert request(b"", headers=JSON | {"host": "node-1.example"}, hosts=())[0] == 200


def test_a_body_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(module, "BODY_BYTES_MAX", 5)
    assert request(b"123", b"45")[0] == 200
    status, _, body = request(b"123", b"456", None)
    assert (status, body) == (413, b"the body is longer than 5 bytes\n")


def test_a_body_that_does_not_arrive_is_a_timeout(monkeypatch):
    monkeypatch.setattr(module, "BODY_SECONDS_MAX", 0.01)
    status, _, body = request(b"123", None)
    assert (status, body) == (408, b"the body took longer than 0.01 seconds\n")


def test_a_disconnected_client_gets_no_response():
    assert request() is None
