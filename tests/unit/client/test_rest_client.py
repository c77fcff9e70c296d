"""REST requests: retries, refusals, and lists in pages; the server is a scripted one."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from fairlead.client import list_objects, rest_client
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import TIMED_OUT, TOO_LONG, RequestError
from fairlead.client.list_objects import list_objects as list_whole
from fairlead.client.rest_client import ApiRequest, RestClient

PODS = "/api/v1/pods"


class Scripted:
    """A server that sends its answers in order, and records the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def handle(self, request):
        self.requests.append(request)
        status, headers, body = self.answers.pop(0)
        if status == 0:
            request.transport.close()
            return web.Response()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, headers=headers, body=content)

    def ask(self, work, **fields):
        """Return the result of `work` for a client of this server."""

        async def run():
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = site._server.sockets[0].getsockname()[1]
            config = ConnectionConfig(name="context x", server=f"http://127.0.0.1:{port}", **fields)
            try:
                async with RestClient(config) as client:
                    return await work(client)
            finally:
                await runner.cleanup()

        return asyncio.run(run())


PAUSE_S = rest_client._pause_s


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(rest_client, "_pause_s", lambda *_: 0.0)
    monkeypatch.setattr(list_objects, "PAGE_PAUSES_S", (0.0, 0.0))


def get(client):
    return client.get(PODS)


def page(*names, then=""):
    items = [{"metadata": {"name": name}} for name in names]
    return 200, {}, {"kind": "PodList", "metadata": {"continue": then}, "items": items}


def names(items):
    return [json.loads(bytes(item))["metadata"]["name"] for item in items]


def test_the_token_is_sent_in_the_authorization_header():
    server = Scripted((200, {}, {}))
    assert server.ask(get, token="secret") == b"{}"
    assert server.requests[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_to_an_overloaded_server_is_repeated(status):
    server = Scripted((status, {"Retry-After": "1"}, {}), (200, {}, {}))
    assert server.ask(get) == b"{}"


def test_a_request_is_repeated_if_the_connection_was_closed():
    assert Scripted((0, {}, {}), (200, {}, {})).ask(get) == b"{}"


def test_a_server_that_closes_every_connection_is_reported_within_ten_seconds():
    """Otherwise a command would print nothing for more than a minute."""
    assert sum(PAUSE_S("", number) for number in range(1, rest_client.TRIES_MAX)) < 10
    assert PAUSE_S("7", 1) == 7


def test_a_refusal_carries_the_status():
    server = Scripted((403, {}, {"kind": "Status", "reason": "Forbidden", "message": "no pods"}))
    with pytest.raises(RequestError, match="no pods") as refusal:
        server.ask(get)
    assert (refusal.value.code, refusal.value.reason) == (403, "Forbidden")


def test_a_request_is_repeated_once_with_renewed_credentials(tmp_path):
    file = tmp_path / "token"
    file.write_text("old")
    server = Scripted((401, {}, {}), (401, {}, {"message": "Unauthorized"}))
    with pytest.raises(RequestError, match="Unauthorized"):
        server.ask(get, token_file=str(file))
    assert len(server.requests) == 2


def test_an_unreachable_server_is_named_in_the_error():
    async def ask():
        config = ConnectionConfig(name="context x", server="http://127.0.0.1:1")
        async with RestClient(config) as client:
            await client.get(PODS)

    with pytest.raises(RequestError, match=r"^http://127.0.0.1:1: cannot connect: "):
        asyncio.run(ask())


def test_a_list_is_read_page_by_page(monkeypatch):
    monkeypatch.setattr(list_objects, "PAGE_OBJECTS", 2)
    server = Scripted(page("a", "b", then="t"), page("c"))
    assert names(server.ask(lambda client: list_whole(client, PODS))) == ["a", "b", "c"]
    assert [dict(request.query) for request in server.requests] == [
        {"limit": "2"},
        {"limit": "2", "continue": "t"},
    ]


def test_a_list_that_expires_between_pages_is_read_again_without_pages():
    server = Scripted(page("a", then="t"), (410, {}, {"reason": "Expired"}), page("b", "c"))
    assert names(server.ask(lambda client: list_whole(client, PODS))) == ["b", "c"]
    assert "limit" not in server.requests[2].query


def test_a_list_without_a_limit_may_have_pages_too():
    expired = (410, {}, {"reason": "Expired"})
    server = Scripted(page("a", then="t"), expired, page("b", then="u"), page("c"))
    assert names(server.ask(lambda client: list_whole(client, PODS))) == ["b", "c"]
    assert dict(server.requests[3].query) == {"continue": "u"}


LEADER_CHANGED = {"kind": "Status", "message": "etcdserver: leader changed"}


def internal_error():
    return 500, {}, LEADER_CHANGED


@pytest.mark.parametrize(
    "failure", [internal_error(), (408, {}, {}), (429, {}, {}), (504, {}, b"gateway timeout")]
)
def test_a_later_page_that_fails_is_requested_again(failure):
    server = Scripted(page("a", then="t"), failure, failure, page("b"))
    assert names(server.ask(lambda client: list_whole(client, PODS))) == ["a", "b"]
    assert [request.query.get("continue") for request in server.requests] == [None, "t", "t", "t"]


@pytest.mark.parametrize("failures", [[internal_error()] * 3, [(403, {}, LEADER_CHANGED)]])
def test_a_page_that_keeps_failing_ends_the_list(failures):
    server = Scripted(page("a", then="t"), *failures)
    with pytest.raises(RequestError, match="/api/v1/pods: etcdserver: leader changed"):
        server.ask(lambda client: list_whole(client, PODS))
    assert len(server.requests) == 1 + len(failures)


class FailingLater:
    """A client that reads one page, and then fails each request without an answer."""

    config = ConnectionConfig(name="context x", server="https://x")

    def __init__(self, reason):
        self.reason = reason
        self.requests = 0

    async def get(self, _path, _query):
        self.requests += 1
        if self.requests == 1:
            return json.dumps(page("a", then="t")[2]).encode()
        raise RequestError("https://x", 0, self.reason, "no answer")


@pytest.mark.parametrize(("reason", "tries"), [("", 3), (TIMED_OUT, 1), (TOO_LONG, 1)])
def test_a_later_page_without_an_answer_is_requested_again_unless_it_took_long(reason, tries):
    """After a timeout, the client has already waited for two minutes."""
    client = FailingLater(reason)
    with pytest.raises(RequestError, match="no answer"):
        asyncio.run(list_whole(client, PODS))
    assert client.requests == 1 + tries


@pytest.mark.parametrize("tokens", ["tt", "tut"])
def test_an_endless_list_is_refused(tokens):
    server = Scripted(*(page("a", then=token) for token in tokens))
    with pytest.raises(RequestError, match="repeats a continue token"):
        server.ask(lambda client: list_whole(client, PODS))


def test_a_response_that_is_not_a_list_is_refused():
    server = Scripted((200, {}, ["no list"]))
    with pytest.raises(RequestError, match="/api/v1/pods: the answer is not a list"):
        server.ask(lambda client: list_whole(client, PODS))


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"kind": "Status", "code": 403, "message": "no"}, "required field `items`"),
        ({"items": [{"metadata": {"name": "a"}}, None]}, r"items\[1\] is not an object"),
        (b'{"items": [' + DEEP + b"]}", "it is nested too deeply"),
        (b'{"items": [{"a":' + DEEP + b"}]}", "it is nested too deeply"),
    ],
    ids=["a Status", "an item without fields", "deep", "a deep object"],
)
def test_a_response_with_other_contents_than_objects_is_refused(body, why):
    server = Scripted((200, {}, body))
    with pytest.raises(RequestError, match=f"/api/v1/pods: the answer is not a list.*{why}"):
        server.ask(lambda client: list_whole(client, PODS))


def test_a_list_with_some_empty_pages_is_read_and_with_only_empty_pages_refused():
    server = Scripted(page("a", then="1"), page(then="2"), page(then="3"), page("b"))
    assert names(server.ask(lambda client: list_whole(client, PODS))) == ["a", "b"]
    server = Scripted(*(page(then=str(number)) for number in range(1_000)))
    with pytest.raises(RequestError, match="/api/v1/pods: the server repeats empty pages"):
        server.ask(lambda client: list_whole(client, PODS))


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, {"kind": "Status", "message": "etcd is broken"}, "etcd is broken"),
        (404, b"404 page not found\n", "status 404: 404 page not found"),
        (302, b"", "the server answered with status 302"),
        (500, DEEP, "status 500: " + "[" * 200),
        (500, {"message": "x" * 100_000}, "x" * 1_000),
    ],
    ids=["Status", "text", "empty", "deep", "long"],
)
def test_a_refused_list_is_named_in_the_error(status, body, message):
    server = Scripted((status, {}, body))
    with pytest.raises(RequestError) as refusal:
        server.ask(lambda client: list_whole(client, PODS))
    assert refusal.value.code == status
    assert refusal.value.message == f"/api/v1/pods: {message}"


@pytest.mark.parametrize("seconds", ["315360000", "9" * 400])
def test_the_retry_after_of_a_server_is_limited(seconds):
    server = Scripted((429, {"Retry-After": seconds}, {}))
    answer = server.ask(lambda client: client.exchange(ApiRequest("GET", PODS), 60))
    assert answer.retry_after_s == rest_client.RETRY_SECONDS_MAX


def test_the_retry_after_of_a_refused_watch_is_in_the_error():
    async def watch(client):
        async for _ in client.stream(PODS, {}, 60):
            pass

    with pytest.raises(RequestError) as refusal:
        Scripted((429, {"Retry-After": "17"}, {})).ask(watch)
    assert (refusal.value.code, refusal.value.retry_after_s) == (429, 17.0)


def test_the_body_of_a_refused_watch_is_not_read_completely(monkeypatch):
    monkeypatch.setattr(rest_client, "_REFUSAL_BYTES_MAX", 1_000)

    async def watch(client):
        async for _ in client.stream(PODS, {}, 60):
            pass

    with pytest.raises(RequestError) as refusal:
        Scripted((403, {}, b"x" * 1_000_000)).ask(watch)
    assert (refusal.value.code, refusal.value.message[:15]) == (403, "status 403: xxx")


def test_a_list_with_invalid_utf_8_is_refused():
    server = Scripted((200, {}, b'{"items": [{"metadata": {"name": "\xff"}}]}'))
    with pytest.raises(RequestError, match="/api/v1/pods: the answer is not a list"):
        server.ask(lambda client: list_whole(client, PODS))


def test_an_observer_gets_each_request_and_its_last_response():
    server = Scripted((401, {}, {}), (201, {}, {}), (200, {}, {}))
    seen = []

    def observe(request):
        return lambda answer: seen.append((request.method, request.path, answer.status))

    async def work(client):
        client._observe = observe
        client._credentials.renew = lambda _: True
        for body in (b"{}", None):
            await client.exchange(ApiRequest("POST" if body else "GET", PODS, body), 60)

    server.ask(work)
    assert seen == [("POST", PODS, 201), ("GET", PODS, 200)]
