"""The API server as an ASGI application: bodies, compression, warnings, watches."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from tests.leaping_loop import run_leaping
from tests.unit.apiserver.conftest import CountedIds

from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.endpoints.audit import AuditBackend
from fairlead.apiserver.endpoints.response import renderer
from fairlead.apiserver.endpoints.response.encoded_objects import EncodedObjects
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http import app as app_module
from fairlead.apiserver.http import request_body, suspended_steps, watch_stream
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN, Request, Response
from fairlead.apiserver.suspension import PAUSE

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """A client that sends one request to an ASGI application and records the response."""

    def __init__(self, app, method, url, body=b"", chunks=None, **headers):
        path, _, query = url.partition("?")
        named = {"authorization": "Bearer secret", **headers}
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in named.items()],
        }
        self.app = app
        self.incoming = asyncio.Queue()
        parts = chunks or [body]
        for number, part in enumerate(parts, 1):
            more = number < len(parts)
            self.incoming.put_nowait({"type": "http.request", "body": part, "more_body": more})
        self.sent = []
        self.changed = asyncio.Event()

    async def send(self, message):
        self.sent.append(message)
        self.changed.set()

    async def run(self):
        await self.app(self.scope, self.incoming.get, self.send)
        return self

    def leave(self):
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def begun(self):
        while len(self.sent) < 2:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)

    async def until(self, text):
        while text not in self.body:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 60)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return [(name.decode(), text.decode()) for name, text in self.sent[0]["headers"]]

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def is_complete(self):
        return not self.sent[-1].get("more_body", False)


@pytest.fixture
def server():
    return ApiServer(Store(CountedIds(), admission=()), clock=lambda: 0)


@pytest.fixture
def app(server):
    return ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0)


def ask(app, *arguments, **options):
    """Send one request and return the complete response."""
    return asyncio.run(_ask(app, *arguments, **options))


async def _ask(app, *arguments, **options):
    return await Client(app, *arguments, **options).run()


def make(app, name, **more):
    body = json.dumps({"metadata": {"name": name}, **more}).encode()
    return ask(app, "POST", CONFIG_MAPS, body)


def test_a_request_gets_a_response(app):
    made = make(app, "a")
    assert (made.status, json.loads(made.body)["metadata"]["name"]) == (201, "a")
    assert ("cache-control", "no-cache, private") in made.headers
    assert ("content-length", str(len(made.body))) in made.headers


def test_other_requests_are_handled_while_a_large_request_pauses(app):
    async def both():
        body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "v" * 100_000}}).encode()
        large = asyncio.ensure_future(_ask(app, "POST", CONFIG_MAPS, body))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        small = await _ask(app, "GET", CONFIG_MAPS)
        is_first = not large.done()
        return is_first, small.status, (await large).status

    assert asyncio.run(both()) == (True, 200, 201)


def test_a_wrong_token_is_refused(app):
    refused = ask(app, "GET", CONFIG_MAPS, authorization="Bearer wrong")
    assert (refused.status, json.loads(refused.body)["reason"]) == (401, "Unauthorized")


def test_a_response_has_the_audit_id_of_its_request(app):
    """A client can set the id; otherwise each request gets its own."""
    first, second = (dict(ask(app, "GET", "/version").headers)["audit-id"] for _ in range(2))
    assert len(first) == len("00000000-0000-4000-8000-000000000000")
    assert first != second
    chosen = ask(app, "GET", "/version", audit_id="mine")
    assert dict(chosen.headers)["audit-id"] == "mine"


def test_a_response_has_a_header_with_the_time_of_the_cluster(server):
    """The clock of a local cluster can be ahead of real time, or stopped."""
    now = 1_795_392_000 * 10**9
    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: now)
    headers = dict(ask(app, "GET", "/version").headers)
    assert headers["fairlead-time"] == "Mon, 23 Nov 2026 00:00:00 GMT"


def test_refused_requests_are_in_the_audit_log(server, monkeypatch):
    """Unauthenticated requests, and bodies that are too long."""
    lines = []
    audit = AuditBackend(lines.append)
    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0, audit=audit)
    monkeypatch.setattr(app_module, "BODY_BYTES_MAX", 10)
    ask(app, "GET", CONFIG_MAPS, authorization="Bearer wrong")
    ask(app, "POST", CONFIG_MAPS, b"x" * 11)
    ask(app, "GET", CONFIG_MAPS)
    events = [json.loads(line) for line in lines]
    assert [(one["user"]["username"], one["responseStatus"]["code"]) for one in events] == [
        ("", 401),
        (ADMIN.name, 413),
        (ADMIN.name, 200),
    ]


def test_a_body_can_arrive_in_chunks(app):
    text = json.dumps({"metadata": {"name": "a"}}).encode()
    assert ask(app, "POST", CONFIG_MAPS, chunks=[text[:5], text[5:]]).status == 201


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_above_the_size_limit_is_refused(app, monkeypatch, declared):
    monkeypatch.setattr(app_module, "BODY_BYTES_MAX", 10)
    length = {"content_length": "11"} if declared else {}
    refused = ask(app, "POST", CONFIG_MAPS, b"x" * 11, **length)
    assert refused.status == 413
    assert json.loads(refused.body)["message"] == "Request entity too large: limit is 10"


def test_a_body_is_not_read_before_its_request_is_authorized(store):
    """The request has no body, so reading the body would block until the timeout."""

    def nobody(attributes):
        raise ApiError("Forbidden", 403, "no")

    server = ApiServer(store, clock=lambda: 0, authorize=nobody)
    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0)

    async def headers_only():
        client = Client(app, "POST", CONFIG_MAPS)
        client.incoming = asyncio.Queue()
        return await asyncio.wait_for(client.run(), 60)

    assert asyncio.run(headers_only()).status == 403


def test_bodies_above_the_memory_budget_are_refused_until_others_end(app, monkeypatch):
    monkeypatch.setattr(request_body, "USER_BYTES_MAX", 100)
    text = json.dumps({"metadata": {"name": "a"}}).encode()

    async def three():
        half = Client(app, "POST", CONFIG_MAPS, chunks=[text.ljust(80), b""])
        rest = half.incoming
        half.incoming = asyncio.Queue()
        half.incoming.put_nowait(rest.get_nowait())
        task = asyncio.ensure_future(half.run())
        await asyncio.sleep(0)
        refused = await _ask(app, "POST", CONFIG_MAPS, text)
        half.incoming.put_nowait(rest.get_nowait())
        await task
        later = await _ask(app, "POST", CONFIG_MAPS, text.replace(b"a", b"b"))
        return refused, half.status, later.status

    refused, first, later = asyncio.run(three())
    assert (refused.status, first) == (429, 201)
    assert {("retry-after", "1"), ("connection", "close")} <= set(refused.headers)
    assert later != 429


def test_a_long_list_is_encoded_as_it_is_read(app, monkeypatch):
    """For a client that does not read, only the first parts of the list are encoded."""
    monkeypatch.setattr(renderer, "LIST_PART_BYTES", 1_000)
    monkeypatch.setattr(app_module, "GZIP_BYTES_MIN", 2_000)
    for number in range(20):
        body = json.dumps({"metadata": {"name": f"c{number:02}"}, "data": {"x": "y" * 900}})
        assert ask(app, "POST", CONFIG_MAPS, body.encode()).status == 201
    encoded = []
    item = EncodedObjects.item
    monkeypatch.setattr(EncodedObjects, "item", lambda *of: encoded.append(of[2]) or item(*of))

    async def unread():
        client = Client(app, "GET", CONFIG_MAPS)
        room = asyncio.Semaphore(2)  # the head and one part
        send = client.send

        async def slow(message):
            await room.acquire()
            await send(message)

        client.send = slow
        task = asyncio.ensure_future(client.run())
        for _ in range(10):
            await asyncio.sleep(0)
        before = len(encoded)
        for _ in range(100):
            room.release()
        await task
        return before, json.loads(client.body)["items"], dict(client.headers)

    before, items, headers = asyncio.run(unread())
    assert before < 10
    assert [one["metadata"]["name"] for one in items] == [f"c{n:02}" for n in range(20)]
    assert "content-length" not in headers


def test_a_body_that_arrives_too_slowly_is_refused(app, monkeypatch):
    monkeypatch.setattr(app_module, "BODY_SECONDS_MAX", 0.01)

    async def slow():
        client = Client(app, "POST", CONFIG_MAPS)
        client.incoming = asyncio.Queue()
        return await client.run()

    assert asyncio.run(slow()).status == 408


def test_a_disconnected_client_gets_no_response(app):
    async def leaving():
        client = Client(app, "POST", CONFIG_MAPS)
        client.incoming = asyncio.Queue()
        client.leave()
        return await client.run()

    assert asyncio.run(leaving()).sent == []


@pytest.mark.parametrize(
    ("accepted", "is_zipped"),
    [("deflate, gzip", True), ("gzip;q=0.5", False), ("*", False), ("GZIP", False), ("", False)],
)
def test_long_responses_are_compressed_if_gzip_is_accepted(app, monkeypatch, accepted, is_zipped):
    monkeypatch.setattr(app_module, "GZIP_BYTES_MIN", 100)
    make(app, "a", data={"k": "v" * 200})
    answer = ask(app, "GET", f"{CONFIG_MAPS}/a", accept_encoding=accepted)
    assert (("content-encoding", "gzip") in answer.headers) == is_zipped
    text = gzip.decompress(answer.body) if is_zipped else answer.body
    assert json.loads(text)["data"] == {"k": "v" * 200}


def test_each_warning_is_a_header(app):
    body = json.dumps({"metadata": {"name": "a"}, 'b"s': 1}).encode()
    made = ask(app, "POST", CONFIG_MAPS, body)
    assert ("warning", r'299 - "unknown field \"b\\\"s\""') in made.headers


def test_a_query_with_too_many_parameters_is_refused(app):
    query = "&".join(f"a{number}=1" for number in range(300))
    assert ask(app, "GET", f"{CONFIG_MAPS}?{query}").status == 400


@pytest.mark.parametrize("query", ["limit=a;watch=1", "labelSelector=%zz", "&&=&limit=%", "a"])
def test_malformed_query_parameters_are_ignored(app, query):
    """Like Go, the server drops malformed parameters: recorded from upstream 1.36.4."""
    assert ask(app, "GET", f"{CONFIG_MAPS}?{query}").status == 200


def test_additional_handlers_serve_paths_outside_of_kubernetes(server):
    async def act(request):
        return Response(200, (request.body,))

    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0, handlers={"/act": act})
    assert ask(app, "POST", "/act", b"hello").body == b"hello"


def test_a_response_waits_until_changes_are_durable(server):
    order = []

    async def wait_until_durable():
        order.append("safe")

    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0, wait_until_durable)
    make(app, "a")
    ask(app, "GET", CONFIG_MAPS)
    assert order == ["safe", "safe"]


def test_a_watch_sends_only_durable_changes(server):
    safe = asyncio.Event()

    async def watched():
        app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0, safe.wait)
        safe.set()
        client, task = await _watching(app, f"{CONFIG_MAPS}?watch=1")
        await client.begun()
        safe.clear()
        adding = asyncio.create_task(
            _ask(app, "POST", CONFIG_MAPS, json.dumps({"metadata": {"name": "a"}}).encode())
        )
        for _ in range(50):
            await asyncio.sleep(0)
        early_body = client.body
        safe.set()
        await adding
        await client.until(b'"ADDED"')
        client.leave()
        await asyncio.wait_for(task, 60)
        return early_body

    assert asyncio.run(watched()) == b""


def test_a_watch_ends_when_changes_cannot_be_made_durable(server):
    async def failing():
        raise ApiError("InternalError", 500, "the disk is full")

    async def ended():
        client = Client(app, "GET", f"{CONFIG_MAPS}?watch=1")
        watch = server.handle(Request("GET", CONFIG_MAPS, (("watch", "1"),), {}, b"", ADMIN), 0)
        server.handle(
            Request("POST", CONFIG_MAPS, (), {}, b'{"metadata": {"name": "a"}}', ADMIN), 0
        )
        await watch_stream.stream(watch, server.watches, client.incoming.get, client.send, failing)
        return client

    client = asyncio.run(ended())
    assert client.is_complete
    assert client.body == b""


async def _watching(app, url):
    client = Client(app, "GET", url)
    return client, asyncio.create_task(client.run())


def test_a_watch_sends_events_until_its_timeout(app, server):
    async def watched():
        client, task = await _watching(app, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
        await client.begun()
        await _ask(app, "POST", CONFIG_MAPS, json.dumps({"metadata": {"name": "a"}}).encode())
        await client.until(b'"ADDED"')
        assert not client.is_complete
        await asyncio.wait_for(task, 60)
        return client

    client = run_leaping(watched())
    assert client.is_complete
    assert server.watches.count() == 0


def test_a_disconnected_client_releases_its_watch(app, server):
    async def left():
        client, task = await _watching(app, f"{CONFIG_MAPS}?watch=1")
        await client.begun()
        client.leave()
        await asyncio.wait_for(task, 60)

    asyncio.run(left())
    assert server.watches.count() == 0


def test_closing_the_app_ends_all_watches(app, server):
    async def closed():
        pairs = [await _watching(app, f"{CONFIG_MAPS}?watch=1") for _ in range(20)]
        await asyncio.gather(*(client.begun() for client, _ in pairs))
        app.close()
        await asyncio.wait_for(asyncio.gather(*(task for _, task in pairs)), 60)
        return [client.is_complete for client, _ in pairs]

    assert all(asyncio.run(closed()))


def test_simultaneous_events_are_sent_together(app, server, monkeypatch):
    monkeypatch.setattr(watch_stream, "PAUSE_S_MIN", 0.01)

    async def busy():
        client, task = await _watching(app, f"{CONFIG_MAPS}?watch=1")
        await client.begun()
        for number in range(50):
            body = json.dumps({"metadata": {"name": f"c{number}"}}).encode()
            await _ask(app, "POST", CONFIG_MAPS, body)
        await client.until(b'"c49"')
        client.leave()
        await asyncio.wait_for(task, 60)
        return client

    client = run_leaping(busy())
    assert client.body.count(b'"ADDED"') == 50
    assert len(client.sent) < 25


@pytest.mark.parametrize(
    ("worked_s", "paused_s"), [(0, 0.005), (0.02, 0.02), (0.5, 0.03)], ids=["short", "long", "huge"]
)
def test_a_large_request_pauses_as_long_as_it_worked(app, monkeypatch, worked_s, paused_s):
    """Otherwise, the TLS handshake of another client needs one such pause for each message."""
    clock_s, pauses_s = [100.0], []

    def steps(request, now):
        clock_s[0] += worked_s
        yield PAUSE
        return Response(200, "application/json", b"{}")

    async def handle():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: clock_s[0])
        return await app.handle(Request("GET", CONFIG_MAPS, user=ADMIN))

    async def sleep(seconds):
        pauses_s.append(seconds)

    app._handle = steps
    monkeypatch.setattr(suspended_steps.asyncio, "sleep", sleep)
    assert asyncio.run(handle()).status == 200
    assert pauses_s == [pytest.approx(paused_s)]


def test_a_get_waits_only_for_the_version_of_its_object(server):
    """So the response does not wait for the writes of a busy control plane."""
    waited = []

    async def wait_until_durable(*version):
        waited.append(version)

    app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0, wait_until_durable)
    make(app, "a")
    found = json.loads(ask(app, "GET", f"{CONFIG_MAPS}/a").body)
    make(app, "b")
    waited.clear()
    ask(app, "GET", f"{CONFIG_MAPS}/a")
    ask(app, "GET", f"{CONFIG_MAPS}/missing")
    ask(app, "GET", CONFIG_MAPS)
    assert waited == [(int(found["metadata"]["resourceVersion"]),), (), ()]
