"""Bindings that an extender makes at an API server."""

from __future__ import annotations

import asyncio
import json

import pytest

from fairlead.api.extender import ProtocolError
from fairlead.worlds.extender import api_binding
from fairlead.worlds.extender.api_binding import ApiBinding, refuse_to_bind

BINDING = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}


def bind(url, **fields):
    """Return the extender's answer."""

    async def ask():
        async with ApiBinding(url) as binding:
            return json.loads(await binding.bind(json.dumps(BINDING | fields).encode()))

    return asyncio.run(ask())


@pytest.fixture
def bound(extender_at):
    """Binds through an API server with this response; returns the answer and the sent request."""

    def ask(respond, **fields):
        with extender_at(respond) as server:
            answer = bind(f"http://127.0.0.1:{server.port}/", **fields)
        return answer, server.requests

    return ask


def test_a_binding_is_made_at_the_api_server(bound):
    answer, [(path, _, body)] = bound(lambda _: (201, {"kind": "Status"}))
    assert answer == {"Error": ""}
    assert path == "/api/v1/namespaces/ns/pods/p/binding"
    assert body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }


def test_an_unknown_uid_is_omitted(bound):
    _, [(_, _, body)] = bound(lambda _: (201, {}), PodUID="")
    assert body["metadata"] == {"name": "p", "namespace": "ns"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (409, {"message": "pod p is already assigned"}, "pod p is already assigned"),
        (500, b"garbage", "the API server answers 500"),
        (404, [1], "the API server answers 404"),
    ],
)
def test_a_refusal_of_the_api_server_is_returned(bound, status, body, error):
    assert bound(lambda _: (status, body))[0] == {"Error": error}


def test_an_api_server_that_does_not_respond_is_a_timeout(bound, monkeypatch):
    monkeypatch.setattr(api_binding, "SECONDS_MAX", 0.05)

    def respond(request):
        request.server.over.wait(60)

    assert "did not answer" in bound(respond)[0]["Error"]


def test_an_unreachable_api_server_is_reported():
    assert "cannot be reached" in bind("http://127.0.0.1:1")["Error"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "a?b", "x" * 300])
@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "Node"])
def test_invalid_names_are_refused(field, name):
    with pytest.raises(ProtocolError, match=f"{field}: .* is not a name"):
        bind("http://127.0.0.1:1", **{field: name})


def test_a_binding_without_an_api_server_is_refused():
    answer = json.loads(asyncio.run(refuse_to_bind(json.dumps(BINDING).encode())))
    assert "--api-server" in answer["Error"]
    with pytest.raises(ProtocolError):
        asyncio.run(refuse_to_bind(b"x"))
